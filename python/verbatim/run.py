"""Reads a record of a step run."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, cast

from verbatim import _native
from verbatim.errors import UsageError

if TYPE_CHECKING:
    import pandas

Scalar = str | int | float | bool
Status = Literal["running", "complete", "interrupted", "failed"]
LayerKind = Literal["parameter", "buffer", "captured"]


@dataclass(frozen=True, slots=True)
class Layer:
    """One named tensor of the model, or a captured one. Digests are 32 hexadecimal digits."""

    id: int
    name: str
    kind: LayerKind
    op: str
    """Kind, element type, shape and further names: "parameter float32[3,2] also decoder.weight"."""
    initial: str | None
    """Digest before the first step; None for captured tensors, and at record level "losses"."""


@dataclass(frozen=True, slots=True)
class Access:
    """Digests of one layer after one step's update; None where not recorded."""

    weights: str | None
    optimizer_state: str | None
    gradients: str | None


@dataclass(frozen=True, slots=True)
class Captured:
    """Digest of a captured tensor: the `occurrence`-th of that name within its step."""

    name: str
    occurrence: int
    digest: str


@dataclass(frozen=True, slots=True)
class Step:
    """One recorded step."""

    step: int
    """The trainer's own number."""
    seq: int
    """Index among the recorded steps: 0, 1, 2, …"""
    loss: float | None
    """The float32 loss; None where none was recorded."""
    batch: str | None
    """Digest of the batch; None where none was recorded."""
    parts: tuple[str, ...]
    """Digests of the batch's parts, where it had several (gradient accumulation)."""
    random_state: str | None
    settings: Mapping[str, Scalar]
    outside: tuple[str, ...]
    """Names of layers written by something else than an update, before this step read them."""
    layers: Mapping[str, Access]
    """By layer name; captured tensors are in `captured`."""
    captured: tuple[Captured, ...]


class Run:
    """An opened record. It may still be growing: `steps` reads what is there when asked.

    Use it as a context manager, or `close` it. One thread at a time.
    """

    path: str
    name: str
    seed: int | None
    status: Status
    status_detail: str
    spec: Mapping[str, Any]
    """What the Recorder was told: name, seed, every, rank, world_size, settings, …"""
    facts: Mapping[str, Any]
    """Of the run: record_level, device, started_utc, ended_utc, command_line, tool_version, …"""
    environment: Mapping[str, str]
    layers: tuple[Layer, ...]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._reading: _native.Reading | None = _native.Reading(self.path)
        facts = self._reading.run()
        self.spec = json.loads(facts.pop("spec"))["steps"]
        self.name = self.spec["name"]
        self.seed = self.spec["seed"]
        self.status = facts.pop("status")
        self.status_detail = facts.pop("status_detail")
        self.facts = facts
        self.environment = self._reading.environment()
        has_initial = facts["record_level"] != "losses"
        self.layers = tuple(_layer(has_initial, *row) for row in self._reading.layers())

    def __len__(self) -> int:
        """Number of recorded steps."""
        return self._open().step_count()

    @property
    def steps(self) -> Iterator[Step]:
        """The recorded steps in order, streamed: memory does not grow with the run."""
        for seq in count():
            row = self._open().step(seq)
            if row is None:
                return
            yield self._step(row)

    def step(self, number: int) -> Step:
        """The step with the trainer's own number. UsageError where it was not recorded."""
        low, high = 0, len(self) - 1
        while low <= high:
            middle = (low + high) // 2
            row = self._open().step(middle)
            if row is None or row["step"] > number:
                high = middle - 1
            elif row["step"] < number:
                low = middle + 1
            else:
                return self._step(row)
        raise UsageError(
            f"{self.path} has no step {number}",
            f"{len(self)} steps are recorded, every {self.spec['every']}.",
        )

    def to_pandas(self) -> pandas.DataFrame:
        """One row per step, index `step`: loss, batch, random_state, outside, and each setting of
        another name.

        Needs pandas.
        """
        columns = ["step", "loss", "batch", "random_state", "outside"]
        rows = [_frame_row(columns, step) for step in self.steps]
        frame = _pandas().DataFrame(rows or None, columns=None if rows else columns)
        return cast("pandas.DataFrame", frame.set_index("step"))

    def layers_to_pandas(self) -> pandas.DataFrame:
        """One row per step and layer: step, layer, weights, optimizer_state, gradients.

        Needs pandas.
        """
        rows = [
            (step.step, name, access.weights, access.optimizer_state, access.gradients)
            for step in self.steps
            for name, access in step.layers.items()
        ]
        columns = ["step", "layer", "weights", "optimizer_state", "gradients"]
        return cast("pandas.DataFrame", _pandas().DataFrame(rows, columns=columns))

    def close(self) -> None:
        """Lets go of the file. Calling it again does nothing."""
        self._reading = None

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<verbatim.Run {self.path!r}: {self.status}>"

    def _open(self) -> _native.Reading:
        if self._reading is None:
            raise UsageError(f"{self.path} was closed", "Open it again with verbatim.open.")
        return self._reading

    def _step(self, row: dict[str, Any]) -> Step:
        return Step(
            step=row["step"],
            seq=row["seq"],
            loss=_loss(row["loss_bits"]),
            batch=None if row["batch"] == _NO_DIGEST else row["batch"],
            parts=tuple(row["parts"]),
            random_state=row["random_state"],
            settings=json.loads(row["settings"]),
            outside=tuple(self.layers[layer].name for layer in row["outside"]),
            layers={
                self.layers[access["layer"]].name: Access(
                    access["weights"], access["optimizer_state"], access["gradients"]
                )
                for access in row["accesses"]
            },
            captured=tuple(
                Captured(self.layers[layer].name, occurrence, digest)
                for layer, occurrence, digest in row["captured"]
            ),
        )


def open(path: str | os.PathLike[str]) -> Run:
    """Opens a record of a step run, also one that is being written or was never closed.

    BadInputError where the file is missing, damaged or no record; UsageError where it records
    the training of a supernet.
    """
    return Run(path)


_NO_DIGEST = "0" * 32
_NO_LOSS = 0x7FC00000


def _loss(bits: int) -> float | None:
    if bits == _NO_LOSS:
        return None
    value: float = struct.unpack("<f", struct.pack("<I", bits))[0]
    return value


def _frame_row(columns: list[str], step: Step) -> dict[str, Any]:
    """A setting with the name of one of the columns is left out."""
    own = (step.step, step.loss, step.batch, step.random_state, ", ".join(step.outside))
    return {**dict.fromkeys(columns), **step.settings, **dict(zip(columns, own, strict=True))}


def _layer(
    has_initial: bool, id: int, name: str, op: str, versioned: bool, initial: str
) -> Layer:
    kind = cast(LayerKind, op.split(" ", 1)[0])
    return Layer(id, name, kind, op, initial if versioned and has_initial else None)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise UsageError("pandas is not installed", "pip install pandas") from None
    return pandas
