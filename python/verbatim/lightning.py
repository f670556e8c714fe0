"""Records what a Lightning Trainer trains.

    from verbatim.lightning import RecorderCallback

    trainer = lightning.Trainer(callbacks=[RecorderCallback("run.db")], …)

Works with the packages `lightning` (2.0 or newer) and `pytorch-lightning`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import verbatim
from verbatim._loop import Parts, ReplicaChecks, missing_package

if TYPE_CHECKING:
    import lightning.pytorch as pl
    from lightning.pytorch.callbacks import Callback
else:
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:
        try:
            from pytorch_lightning.callbacks import Callback
        except ImportError:
            raise missing_package(__name__, "lightning") from None


class RecorderCallback(Callback):
    """Records every update of `Trainer.fit` into one file, per rank in a run of several.

    A step is one update, numbered as `trainer.global_step` after it: 1, 2, 3, …, and on from there
    where `fit` goes on from a checkpoint. Its batch is what `training_step` got, in parts where
    gradients are accumulated; its loss is what Lightning reports of these parts, added (with
    automatic optimization: their mean).

    The record is complete when training ends, and interrupted when it ends with an exception.

    Args:
        path: The record, a new file; "run.rank0.db" for "run.db" where there are several ranks.
        check_replicas: Compares the parameters of all ranks after every so many recorded steps,
            and raises `verbatim.distributed.ReplicasDifferError` where they differ; 0: never.
        batch: What to digest of a batch, where it is no tensor nor made of tensors:
            `batch=lambda batch: [batch.x, batch.y]`.
        options: More of `verbatim.Recorder`'s arguments: every, seed (default: what
            `seed_everything` was given), name, settings, …
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        check_replicas: int = 0,
        batch: Callable[[Any], Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self._path = path
        self._checks = ReplicaChecks(check_replicas)
        self._batch = batch
        self._options = options
        self._parts = Parts()
        self._steps_done = 0
        self.recorder: verbatim.Recorder | None = None
        """The recorder while `fit` runs, and the closed one afterwards."""

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._parts = Parts()
        self._steps_done = trainer.global_step
        options = {"seed": _seed(), "first_step": self._steps_done + 1, **self._options}
        options["settings"] = {**_settings(trainer), **(options.get("settings") or {})}
        optimizers = trainer.optimizers
        named = {str(number): optimizer for number, optimizer in enumerate(optimizers)}
        self.recorder = verbatim.Recorder(
            self._path, pl_module, optimizers[0] if len(optimizers) == 1 else named, **options
        )

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        # Lightning may call training_step without the module's own forward.
        assert self.recorder is not None
        self.recorder.begin()
        self.recorder.add_batch(self._batch(batch) if self._batch else batch)

    def on_train_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        assert self.recorder is not None
        self._parts.add(outputs.get("loss") if isinstance(outputs, dict) else outputs)
        if trainer.global_step == self._steps_done:
            return
        self._steps_done = trainer.global_step
        recorded = self.recorder.step(loss=self._parts.take_sum(), step=self._steps_done)
        self._checks.after_step(self.recorder, recorded)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self.recorder is not None:
            self.recorder.close()

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        if self.recorder is not None:
            self.recorder.close("interrupted", f"{type(exception).__name__}: {exception}")


def _seed() -> int | None:
    """What seed_everything left."""
    seed = os.environ.get("PL_GLOBAL_SEED")
    return int(seed) if seed else None


def _settings(trainer: pl.Trainer) -> dict[str, str | int | float]:
    """What of the trainer changes numbers."""
    settings: dict[str, str | int | float] = {
        "precision": str(trainer.precision),
        "accumulate_grad_batches": trainer.accumulate_grad_batches,
    }
    if trainer.gradient_clip_val is not None:
        settings["gradient_clip_val"] = trainer.gradient_clip_val
    return settings
