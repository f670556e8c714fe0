"""Reads a record of a step run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas

Scalar = str | int | float | bool
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
    status: Literal["running", "complete", "interrupted", "failed"]
    status_detail: str
    spec: Mapping[str, Any]
    """What the Recorder was told: name, seed, every, rank, world_size, …"""
    environment: Mapping[str, str]
    layers: tuple[Layer, ...]

    def __len__(self) -> int:
        """Number of recorded steps."""
        raise NotImplementedError

    @property
    def steps(self) -> Iterator[Step]:
        """The recorded steps in order, streamed: memory does not grow with the run."""
        raise NotImplementedError

    def step(self, number: int) -> Step:
        """The step with the trainer's own number. UsageError where it was not recorded."""
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        """One row per step, index `step`: loss, batch, random_state, outside, and each setting.

        Needs pandas.
        """
        raise NotImplementedError

    def layers_to_pandas(self) -> pandas.DataFrame:
        """One row per step and layer: step, layer, weights, optimizer_state, gradients."""
        raise NotImplementedError

    def close(self) -> None:
        """Lets go of the file. Calling it again does nothing."""
        raise NotImplementedError

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def open(path: str | os.PathLike[str]) -> Run:
    """Opens a record of a step run, also one that is being written or was never closed.

    BadInputError where the file is missing, damaged, or no record of a step run.
    """
    raise NotImplementedError
