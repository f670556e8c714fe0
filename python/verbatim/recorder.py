"""Records a training loop: `Recorder`."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Literal

import torch

from verbatim import _native, circumstances, environment
from verbatim.arguments import (
    as_utf8,
    at_least,
    checked_names,
    checked_path,
    checked_seed,
)
from verbatim.digests import Digester, NamedTensor, flatten
from verbatim.distributed import rank as rank_of_process
from verbatim.distributed import is_split, rank_path
from verbatim.distributed import world_size as size_of_world
from verbatim.errors import UsageError
from verbatim.going_on import Captures, GoingOn, loss_bits
from verbatim.hooks import Hooks
from verbatim.layers import ModelLayers, named_models, named_optimizers
from verbatim.numbering import Numbering
from verbatim.writes import Writes

Scalar = str | int | float | bool


class Recorder:
    """Records every step of a training loop into one file.

    Before the first step it digests the model; then the loop calls `step` once per update, after
    `optimizer.step()` and before `zero_grad()`. What is recorded of a step: the loss, digests of the
    batch, of every parameter and buffer after the update and of its optimizer state, the settings
    of the optimizer, the state of the random generators before the step's first forward pass, and
    which layers something else than the update has written since the step before.

    Args:
        path: The record, a new file. With `overwrite`, an old record is replaced.
        model: A module, or several as a dict by name ("name.parameter" is then a layer's name).
            Wrappers (DistributedDataParallel, torch.compile) are looked through. All parameters
            and buffers must exist: initialise lazy modules by one forward pass before. None: only
            losses, batches, settings and `tensors` are recorded.
        optimizer: An optimizer, or several as a dict by name. Their settings are recorded as they
            are when `optimizer.step()` is called: "lr", "betas[0]"; "0.lr", "1.lr" where there are
            several groups, "name.lr" where there are several optimizers.
        seed: The seed that the run was started with; only noted, and named by `verbatim diff`.
        name: A name for the run.
        every: Records only steps whose number is a multiple. Between them nothing is digested;
            writes from outside are still noticed.
        steps: How many steps (recorded or not) are planned. A run that closes as complete with
            fewer is then told as unfinished by `verbatim verify`.
        settings: Further facts of the whole run, by name: a data path, a git commit.
        buffers: Whether buffers are layers (running means, not what is rebuilt anew: buffers with
            persistent=False are left out).
        optimizer_state: Whether the optimizer's state is digested.
        gradients: Whether gradients are digested. `step` must then be called before `zero_grad()`.
        activations: Names of submodules whose outputs are digested, by forward hooks, in forward
            passes of training (gradients enabled).
        tensors: Names that `step(tensors=…)` and `capture` may give.
        random_state: Whether the states of the random generators are digested that a step drew from
            (PyTorch's of CPU and CUDA, NumPy's global one, Python's), as they were when it began.
        reads: How writes from outside are found: "versions" (of parameters PyTorch's version
            counters and addresses, which miss writes through `.data`, NumPy or DLPack; of buffers
            digests), "digests" (of all before the step's first forward pass too, which finds every
            write and doubles the cost), "off". In a run of several processes buffers are left out.
        rank: This process's rank in a run of several; each records a file of its own.
        world_size: How many processes the run has. Both default to torch.distributed's where it
            is initialised, else to 0 of 1.
        overwrite: Whether an old record at `path` is replaced.
        first_step: Number of the first step: for a run that goes on from a checkpoint.
        threads: Threads that digest, default: as many as PyTorch computes with.

    It is a context manager: leaving it closes the record as complete, or as interrupted with the
    exception's type and message. Without either, the record stays "running", as of a run that was
    killed; everything up to the last second is then in it.

    Not thread-safe; and not for use in a forked child, such as a DataLoader's worker. Any error is
    a `verbatim.Error`; `step` either records the step or raises.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        model: torch.nn.Module | Mapping[str, torch.nn.Module] | None = None,
        optimizer: torch.optim.Optimizer | Mapping[str, torch.optim.Optimizer] | None = None,
        *,
        seed: int | None = None,
        name: str = "",
        every: int = 1,
        steps: int | None = None,
        settings: Mapping[str, Scalar] | None = None,
        buffers: bool = True,
        optimizer_state: bool = True,
        gradients: bool = False,
        activations: Iterable[str] = (),
        tensors: Iterable[str] = (),
        random_state: bool = True,
        reads: Literal["versions", "digests", "off"] = "versions",
        rank: int | None = None,
        world_size: int | None = None,
        overwrite: bool = False,
        first_step: int = 0,
        threads: int | None = None,
    ) -> None:
        self._closed = True  # until all is well
        self._process = os.getpid()
        self._numbering = Numbering(
            at_least(0, "first_step", first_step), at_least(1, "every", every)
        )
        self._recorded = False
        self._rank = rank_of_process() if rank is None else rank
        self._world_size = size_of_world() if world_size is None else world_size
        self._path = checked_path(rank_path(path, self._rank, self._world_size))

        self._models = named_models(model)
        self._optimizers = named_optimizers(optimizer)
        self._layers = ModelLayers(self._models, buffers=buffers)
        self._takes_state = optimizer_state and bool(self._optimizers)
        self._takes_gradients = gradients
        self._takes_random_state = random_state
        self._digester = Digester(None if threads is None else at_least(1, "threads", threads))
        activations = checked_names("activations", activations)
        tensors = checked_names("tensors", tensors)
        if activations and any(is_split(one) for one in self._models.values()):
            raise UsageError(
                "activations: DataParallel runs copies of the model in several threads",
                "Use DistributedDataParallel, or record without activations.",
            )
        self._captures = Captures(activations + tensors, len(self._layers.all), self._digester)
        self._weights = self._layers.digest(self._digester)
        self._writes = Writes(
            self._layers,
            self._digester,
            reads,
            leave_out_buffers=self._world_size > 1,
            initial=self._weights,
        )
        self._now = GoingOn()
        self._hooks = Hooks(self)
        modules = self._layers.modules_named(activations)

        classes = circumstances.optimizer_classes(self._optimizers)
        self._recording = self._open(name, seed, {**classes, **(settings or {})}, steps, overwrite)
        self._closed = False
        self._hooks.add_to_models(self._models.values(), modules)
        self._hooks.add_to_optimizers(self._optimizers)

    @property
    def path(self) -> str:
        """Where the record is."""
        return self._path

    @property
    def rank(self) -> int:
        """This process's rank in its run."""
        return self._rank

    @property
    def world_size(self) -> int:
        """Processes of the run."""
        return self._world_size

    @property
    def closed(self) -> bool:
        """Whether the record is closed."""
        return self._closed

    @property
    def recorded(self) -> bool:
        """Whether the latest `step` was recorded."""
        return self._recorded

    @property
    def last_step(self) -> int | None:
        """Number of the latest step, recorded or not; None before the first."""
        return self._numbering.last

    @property
    def layer_names(self) -> tuple[str, ...]:
        """Names of parameters and buffers, in the record's order."""
        return tuple(layer.name for layer in self._layers.all)

    @property
    def layer_ops(self) -> Mapping[str, str]:
        """What each layer is, by name: "parameter float32[3,2] (Shard(dim=0) of [6,2])"."""
        return {layer.name: layer.describe() for layer in self._layers.all}

    @property
    def last_weights(self) -> Mapping[str, bytes]:
        """Digests of parameters and buffers as recorded last (16 bytes each), by layer name."""
        return dict(zip(self.layer_names, self._weights, strict=True))

    def begin(self) -> None:
        """Notes that a step begins: random state, modes, writes from outside.

        The first forward pass of `model` with gradients enabled does this by itself. Call it where
        the loop uses only parts of the model (`model.encoder(x)`), before the first of them.
        Calling it again within a step does nothing.
        """
        self._check_usable("begin")
        if self._now.began:
            return
        gathers = self._gathers()
        self._writes.look(thoroughly=gathers)
        self._now.began = True
        if not gathers:
            return
        if self._takes_random_state:
            self._now.random_state = circumstances.random_state()
        self._now.evaluating = circumstances.modules_in_evaluation(self._models)

    def add_batch(self, batch: Any) -> None:
        """Digests one part of the step's batch now, where gradients are accumulated over several.

        Takes what `step(batch=…)` takes, which adds the last part. A step with several parts has
        their digests, in order.
        """
        self._check_usable("add_batch")
        if self._gathers():
            self._now.parts.append(self._batch_digest(batch))

    def capture(self, name: str, tensor: torch.Tensor) -> None:
        """Digests a tensor now, under one of the names declared as `tensors`, for this step.

        The same name may be given several times within a step: its occurrences are counted.
        """
        self._check_usable("capture")
        if self._gathers():
            self._captures.add(name, tensor)

    def step(
        self,
        *,
        loss: torch.Tensor | float | None = None,
        batch: Any = None,
        step: int | None = None,
        tensors: Mapping[str, torch.Tensor] | None = None,
    ) -> bool:
        """Records one step; call it after `optimizer.step()` and before `zero_grad()`.

        Args:
            loss: One number, recorded as float32.
            batch: What the step was trained on: a tensor or array, or lists, tuples and dicts of
                them, of numbers and of text. With `add_batch`, leave it out.
            step: The trainer's own number of this step, greater than the last; default: one more
                than the last, or `first_step`. With `every`, numbers should ascend by the same: a
                step whose number comes as a surprise cannot be recorded, and raises.
            tensors: Tensors to digest, by names declared as `tensors`.

        Returns whether the step was recorded (see `every`). What is recorded is on the disk within
        a second; an error of the disk is raised by a later call, `close` at the latest.
        """
        self._check_usable("step")
        number = self._numbering.number(step)
        is_due = self._numbering.is_recorded(number)
        if is_due:
            self._record(number, loss, batch, tensors or {})
        self._recorded = is_due
        self._numbering.end(number, is_given=step is not None)
        self._now = GoingOn()
        self._captures.clear()
        self._writes.settle(
            self._weights if is_due else None, is_next_due=self._numbering.may_be_recorded()
        )
        return is_due

    def close(
        self, status: Literal["complete", "interrupted", "failed"] = "complete", detail: str = ""
    ) -> None:
        """Writes what is queued and ends the record; removes all hooks.

        A second call does nothing. Raises the writer's first error.
        """
        if self._closed:
            return
        self._check_usable("close")
        if status not in ("complete", "interrupted", "failed"):
            raise UsageError(
                f'a run does not end as "{status}"', "Close it as complete, interrupted or failed."
            )
        self._closed = True
        self._hooks.remove()
        self._digester.release()
        self._recording.close(status, as_utf8(detail))

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if os.getpid() != self._process:
            return  # a forked child leaves the record to its parent
        if exception is None:
            self.close()
            return
        text = str(exception)
        detail = type(exception).__qualname__ + (f": {text}" if text else "")
        try:
            self.close("interrupted", detail)
        except UsageError:
            raise
        except Exception as error:  # the loop's exception is the one to be seen
            exception.__context__ = exception.__context__ or error

    def __del__(self) -> None:
        if getattr(self, "_closed", True) or os.getpid() != self._process:
            return
        self._hooks.remove()
        warnings.warn(
            f"the recorder of {self._path} was not closed: its run stays running",
            ResourceWarning,
            source=self,
            stacklevel=2,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        raise UsageError(
            f"the recorder of {self._path} cannot be copied or sent to another process",
            "Record in the process that opened the recorder.",
        )

    def _open(
        self,
        name: str,
        seed: int | None,
        settings: Mapping[str, Scalar],
        steps: int | None,
        overwrite: bool,
    ) -> _native.Recording:
        is_full = self._takes_gradients or bool(self._captures.names)
        level = "full" if is_full else "weights" if self._layers.all else "losses"
        device = self._device()
        planned = 0 if steps is None else self._numbering.planned(at_least(1, "steps", steps))
        return _native.open_recording(
            self._path,
            name=as_utf8(name),
            seed=checked_seed(seed),
            every=self._numbering.every,
            rank=self._rank,
            world_size=self._world_size,
            optimizer_state=self._takes_state,
            gradients=self._takes_gradients,
            settings=settings,
            level=level,
            folder=as_utf8(os.getcwd()),
            command_line=as_utf8(shlex.join(sys.orig_argv)),
            device=str(device),
            steps_planned=planned,
            layers=self._layers.rows(self._weights) + self._captures.rows(),
            environment=environment.describe(device),
            overwrite=overwrite,
        )

    def _record(
        self, number: int, loss: Any, batch: Any, tensors: Mapping[str, torch.Tensor]
    ) -> None:
        self._check_began()
        self._check_gathered(number)
        bits = loss_bits(loss)
        parts = [*self._now.parts, *([] if batch is None else [self._batch_digest(batch)])]
        captured = self._captures.with_more(tensors)
        weights = self._layers.digest(self._digester)
        current = self._layers.tensors()
        states = self._digest_states(current)
        gradients = self._digest_gradients(current)
        self._recording.record(
            step=number,
            loss_bits=bits,
            batch=_native.named_digest([(str(i), part) for i, part in enumerate(parts)])
            if len(parts) > 1
            else (parts[0] if parts else None),
            parts=parts if len(parts) > 1 else [],
            random_state=self._digest_random_state(),
            settings=self._settings(),
            outside=self._writes.found(),
            layers=[
                (layer.id, weights[layer.id], states.get(layer.id), gradients.get(layer.id))
                for layer in self._layers.all
            ],
            captured=captured,
        )
        self._weights = weights

    def _settings(self) -> dict[str, Scalar]:
        settings = {
            **circumstances.optimizer_settings(self._optimizers),
            **self._now.settings,
        }
        if self._now.evaluating:
            settings["eval_modules"] = self._now.evaluating
        return settings

    def _digest_random_state(self) -> bytes | None:
        if self._now.random_state is None:
            return None
        return self._digester.named([circumstances.drawn_from(self._now.random_state)])[0]

    def _digest_states(self, tensors: list[torch.Tensor]) -> dict[int, bytes]:
        if not self._takes_state:
            return {}
        states = self._layers.optimizer_states(tensors, self._optimizers)
        return dict(zip(states, self._digester.named(list(states.values())), strict=True))

    def _digest_gradients(self, tensors: list[torch.Tensor]) -> dict[int, bytes]:
        """Those noted when the optimizers stepped, and what gradients there are of others."""
        if not self._takes_gradients:
            return {}
        noted = self._now.gradients
        self._note_gradients(tensors, [one.id for one in self._layers.all if one.id not in noted])
        return noted

    def _note_gradients(self, tensors: list[torch.Tensor], ids: Iterable[int]) -> None:
        found: dict[int, NamedTensor] = {}
        for layer in (self._layers.all[i] for i in ids):
            gradient = tensors[layer.id].grad if layer.kind == "parameter" else None
            if gradient is not None:
                found[layer.id] = (f"the gradient of {layer.name}", gradient)
        digests = self._digester.tensors(found.values())
        self._now.gradients.update(zip(found, digests, strict=True))

    def _batch_digest(self, batch: Any) -> bytes:
        return self._digester.named([list(flatten(batch, "batch"))])[0]

    # What hooks.py calls.

    def on_forward(self) -> None:
        if not self._closed and os.getpid() == self._process and torch.is_grad_enabled():
            self.begin()

    def on_activation(self, name: str, output: Any) -> None:
        if self._closed or os.getpid() != self._process or not torch.is_grad_enabled():
            return
        if self._gathers():
            self._captures.add(name, output)

    def before_update(self, name: str) -> None:
        if self._gathers():
            self._now.settings.update(
                circumstances.optimizer_settings({name: self._optimizers[name]})
            )

    def after_update(self, name: str) -> None:
        """Other optimizers' gradients may be of the step before still; the latest update counts."""
        if self._takes_gradients and self._gathers():
            ids = self._layers.updated_by(self._optimizers[name])
            self._note_gradients(self._layers.tensors(), ids)

    def _gathers(self) -> bool:
        """Whether to note things of the step that goes on; remembers that some were not."""
        gathers = self._numbering.may_be_recorded()
        self._now.lacks = self._now.lacks or not gathers
        return gathers

    def _check_usable(self, call: str) -> None:
        if os.getpid() != self._process:
            raise UsageError(
                f"{call}: this process was forked from the one that records {self._path}",
                "Record in the process that opened the recorder.",
            )
        if self._closed:
            raise UsageError(
                f"{call}: the recorder of {self._path} is closed",
                "Make another Recorder, with another path, to record another run.",
            )

    def _check_began(self) -> None:
        wants = self._takes_random_state or self._writes.are_watched
        if self._models and wants and not self._now.began:
            raise UsageError(
                "step: no forward pass of the model was seen since the step before",
                "Call the model itself, `model(x)`, with gradients enabled; or, where only parts "
                "of it are called or it was compiled apart, recorder.begin() before the step.",
            )

    def _check_gathered(self, number: int) -> None:
        if self._now.lacks:
            raise UsageError(
                f"step {number}: after step {self._numbering.last} another number was expected, "
                "one that is not recorded, and so its batch and generators were not noted",
                "Pass step numbers that ascend by one, or record every step (every=1).",
            )

    def _device(self) -> torch.device:
        tensors = self._layers.tensors()
        return tensors[0].device if tensors else torch.device("cpu")
