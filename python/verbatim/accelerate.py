"""Records a loop that runs under Hugging Face Accelerate.

from verbatim.accelerate import Recorder

model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
with Recorder(accelerator, "run.db", model, optimizer) as recorder:
    for batch in loader:
        with accelerator.accumulate(model):
            loss = model(**batch).loss
            accelerator.backward(loss)
            optimizer.step()
            recorder.step(loss=loss, batch=batch)
            optimizer.zero_grad()
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import verbatim
from verbatim._loop import Parts, ReplicaChecks, missing_package
from verbatim.layers import inner_optimizer

if TYPE_CHECKING:
    import torch
    from accelerate import Accelerator
else:
    try:
        from accelerate import Accelerator
    except ImportError:
        raise missing_package(__name__, "accelerate") from None


class Recorder(verbatim.Recorder):
    """A `verbatim.Recorder` that knows when Accelerate accumulates gradients.

    `step` is called after every `optimizer.step()`, within `accelerator.accumulate`. While
    gradients are only accumulated it takes loss and batch as a part of the step and records
    nothing; at the update it records the step, with the mean of the parts' losses.

    Args:
        accelerator: The Accelerator that prepared `model` and `optimizer`.
        path: The record, a new file; "run.rank0.db" for "run.db" where there are several.
        model: What `prepare` returned, or several as a dict by name.
        optimizer: What `prepare` returned, or several as a dict by name.
        check_replicas: Compares the parameters of all processes after every so many recorded
            steps, and raises `verbatim.distributed.ReplicasDifferError` where they differ; 0:
            never.
        options: More of `verbatim.Recorder`'s arguments: every, seed, name, settings, …
    """

    def __init__(
        self,
        accelerator: Accelerator,
        path: str | os.PathLike[str],
        model: Any = None,
        optimizer: Any = None,
        *,
        check_replicas: int = 0,
        **options: Any,
    ) -> None:
        self._accelerator = accelerator
        self._checks = ReplicaChecks(check_replicas)
        self._losses = Parts()
        own = {
            "mixed_precision": accelerator.mixed_precision,
            "gradient_accumulation_steps": accelerator.gradient_accumulation_steps,
        }
        options["settings"] = {**own, **(options.get("settings") or {})}
        if isinstance(optimizer, Mapping):
            optimizer = {name: inner_optimizer(one) for name, one in optimizer.items()}
        elif optimizer is not None:
            optimizer = inner_optimizer(optimizer)
        super().__init__(path, model, optimizer, **options)

    def step(
        self,
        *,
        loss: torch.Tensor | float | None = None,
        batch: Any = None,
        step: int | None = None,
        tensors: Mapping[str, torch.Tensor] | None = None,
    ) -> bool:
        """Takes a part of a step, or records the step where this was an update.

        Arguments as of `verbatim.Recorder.step`; `step` and `tensors` count at an update only.
        Returns whether a step was recorded.
        """
        self._losses.add(loss)
        if batch is not None:
            self.add_batch(batch)
        if not self._accelerator.sync_gradients:
            return False
        recorded = super().step(loss=self._losses.take_mean(), step=step, tensors=tensors)
        self._checks.after_step(self, recorded)
        return recorded
