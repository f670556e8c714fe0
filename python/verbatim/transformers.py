"""Records what a Hugging Face Trainer trains.

    from verbatim.transformers import RecorderCallback

    trainer = transformers.Trainer(…, callbacks=[RecorderCallback("run.db")])

Works with `transformers` 4.46 or newer, and with trainers built on its Trainer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import verbatim
from verbatim._loop import Parts, ReplicaChecks, missing_package
from verbatim.digests import flatten
from verbatim.errors import UsageError
from verbatim.hooks import Hook
from verbatim.layers import inner_optimizer

if TYPE_CHECKING:
    import torch
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
else:
    try:
        from transformers import TrainerCallback
    except ImportError:
        raise missing_package(__name__, "transformers") from None

# Arguments of the trainer that change numbers; those of them that are set are settings of the run.
_ARGUMENTS = (
    "adafactor",
    "average_tokens_across_devices",
    "bf16",
    "data_seed",
    "dataloader_drop_last",
    "fp16",
    "gradient_accumulation_steps",
    "gradient_checkpointing",
    "label_smoothing_factor",
    "learning_rate",
    "lr_scheduler_type",
    "max_grad_norm",
    "max_steps",
    "num_train_epochs",
    "optim",
    "per_device_train_batch_size",
    "tf32",
    "torch_compile",
    "warmup_steps",
    "weight_decay",
)


class RecorderCallback(TrainerCallback):
    """Records every update of `Trainer.train` into one file, per rank in a run of several.

    A step is one update, numbered as `state.global_step` after it: 1, 2, 3, …, and on from there
    where training resumes from a checkpoint. Its batch is what the model's forward was called
    with, in parts where gradients are accumulated; its loss is the model's own, over all parts
    (absent where the model returns none, as with a loss function of the trainer's).

    The record is complete when training ends. The Trainer tells its callbacks of no exception:
    after one the record says "running", like that of a run that was killed, unless you call
    `close`.

    Args:
        path: The record, a new file; "run.rank0.db" for "run.db" where there are several ranks.
        check_replicas: Compares the parameters of all ranks after every so many recorded steps,
            and raises `verbatim.distributed.ReplicasDifferError` where they differ; 0: never.
        options: More of `verbatim.Recorder`'s arguments: every, seed (default: the trainer's),
            name, settings, …
    """

    def __init__(
        self, path: str | os.PathLike[str], *, check_replicas: int = 0, **options: Any
    ) -> None:
        self._path = path
        self._checks = ReplicaChecks(check_replicas)
        self._options = options
        self._parts = Parts()
        self._loss_is_sum = False
        self._hooks: list[torch.utils.hooks.RemovableHandle] = []
        self.recorder: verbatim.Recorder | None = None
        """The recorder while training runs, and the closed one afterwards."""

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        *,
        model: Any = None,
        optimizer: Any = None,
        **kwargs: Any,
    ) -> None:
        if args.n_gpu > 1:
            raise UsageError(
                f"the Trainer splits its batches over {args.n_gpu} GPUs by DataParallel",
                "Start it with torchrun, a process per GPU, or let it see one: "
                "CUDA_VISIBLE_DEVICES=0.",
            )
        self._remove_hooks()  # of a training that ended with an exception
        options = {"seed": args.seed, "first_step": state.global_step + 1, **self._options}
        options["settings"] = {**_settings(args), **(options.get("settings") or {})}
        self._parts = Parts()
        self.recorder = verbatim.Recorder(self._path, model, inner_optimizer(optimizer), **options)
        self._hooks = [
            model.register_forward_pre_hook(Hook(self, _tell_input), with_kwargs=True),
            model.register_forward_hook(Hook(self, _tell_output), with_kwargs=True),
        ]

    def on_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        # At on_step_end the gradients are gone.
        assert self.recorder is not None
        loss = self._parts.take_sum() if self._loss_is_sum else self._parts.take_mean()
        recorded = self.recorder.step(loss=loss, step=state.global_step + 1)
        self._checks.after_step(self.recorder, recorded)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self.close()

    def close(self, status: str = "complete", detail: str = "") -> None:
        """Ends the record, where training ended with an exception: close("interrupted", "why")."""
        self._remove_hooks()
        if self.recorder is not None:
            self.recorder.close(status, detail)  # type: ignore[arg-type]

    def _remove_hooks(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def _before_forward(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not _is_training():
            return
        assert self.recorder is not None
        self._loss_is_sum = kwargs.get("num_items_in_batch") is not None
        self.recorder.begin()
        self.recorder.add_batch(_recordable(args, kwargs))

    def _after_forward(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> None:
        if not _is_training():
            return
        if isinstance(output, Mapping):
            self._parts.add(output.get("loss"))
        elif isinstance(output, tuple) and output and kwargs.get("labels") is not None:
            self._parts.add(output[0])


def _tell_input(callback: RecorderCallback, event: tuple[Any, ...]) -> None:
    callback._before_forward(*event)


def _tell_output(callback: RecorderCallback, event: tuple[Any, ...]) -> None:
    callback._after_forward(*event)


def _is_training() -> bool:
    import torch

    return torch.is_grad_enabled()


def _recordable(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments of forward that are data, by name; positional ones by their number."""
    named = {**{str(number): value for number, value in enumerate(args)}, **kwargs}
    return {name: value for name, value in named.items() if _is_data(value)}


def _is_data(value: Any) -> bool:
    try:
        return bool(list(flatten(value, "")))
    except UsageError:
        return False


def _settings(args: TrainingArguments) -> dict[str, str | int | float]:
    settings = {}
    for name in _ARGUMENTS:
        value = getattr(args, name, None)
        value = getattr(value, "value", value)  # of an enumeration
        if isinstance(value, (bool, int, float, str)):
            settings[name] = value
    return settings
