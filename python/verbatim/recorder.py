"""Records a training loop: `Recorder`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import torch

Scalar = str | int | float | bool
Models = "torch.nn.Module | Mapping[str, torch.nn.Module]"
Optimizers = "torch.optim.Optimizer | Mapping[str, torch.optim.Optimizer]"


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
        random_state: Whether the states of the random generators are digested (PyTorch's of CPU
            and CUDA, NumPy's global one, Python's).
        reads: How writes from outside are found: "versions" (PyTorch's version counters and
            addresses; misses writes through `.data`, NumPy or DLPack), "digests" (digests before
            the step's first forward pass too, which doubles the cost, finds all), "off".
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
        raise NotImplementedError

    @property
    def path(self) -> str:
        """Where the record is."""
        raise NotImplementedError

    @property
    def rank(self) -> int:
        """This process's rank in its run."""
        raise NotImplementedError

    @property
    def world_size(self) -> int:
        """Processes of the run."""
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        """Whether the record is closed."""
        raise NotImplementedError

    @property
    def layer_names(self) -> tuple[str, ...]:
        """Names of parameters and buffers, in the record's order."""
        raise NotImplementedError

    @property
    def last_weights(self) -> Mapping[str, bytes]:
        """Digests of parameters and buffers as recorded last (16 bytes each), by layer name."""
        raise NotImplementedError

    def begin(self) -> None:
        """Notes that a step begins: random state, modes, writes from outside.

        The first forward pass of `model` with gradients enabled does this by itself. Call it where
        the loop uses only parts of the model (`model.encoder(x)`), before the first of them.
        Calling it again within a step does nothing.
        """
        raise NotImplementedError

    def add_batch(self, batch: Any) -> None:
        """Digests one part of the step's batch now, where gradients are accumulated over several.

        Takes what `step(batch=…)` takes. The step's batch is then all parts in order.
        """
        raise NotImplementedError

    def capture(self, name: str, tensor: torch.Tensor) -> None:
        """Digests a tensor now, under one of the names declared as `tensors`, for this step.

        The same name may be given several times within a step: its occurrences are counted.
        """
        raise NotImplementedError

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
                than the last, or `first_step`.
            tensors: Tensors to digest, by names declared as `tensors`.

        Returns whether the step was recorded (see `every`). What is recorded is on the disk within
        a second; an error of the disk is raised by a later call, `close` at the latest.
        """
        raise NotImplementedError

    def close(
        self, status: Literal["complete", "interrupted", "failed"] = "complete", detail: str = ""
    ) -> None:
        """Writes what is queued and ends the record; removes all hooks.

        A second call does nothing. Raises the writer's first error.
        """
        raise NotImplementedError

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        raise NotImplementedError
