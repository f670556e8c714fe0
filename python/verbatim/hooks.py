"""Where a recorder listens to modules and optimizers.

A hook holds its recorder, or whoever else listens, weakly. Copied or pickled with its model (an
average of weights, a checkpoint) it becomes one that does nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle

    from verbatim.recorder import Recorder


Listener = Callable[[Any, tuple[Any, ...]], None]


class Hook:
    """Tells its owner of an event, and never from within compiled code."""

    def __init__(self, owner: object = None, listener: Listener | None = None) -> None:
        self._owner = None if owner is None else weakref.ref(owner)
        self._listener = listener
        disable: Any = torch.compiler.disable
        self._call = disable(self._listen)

    def __call__(self, *event: Any) -> None:
        if self._owner is not None:
            self._call(event)

    def _listen(self, event: tuple[Any, ...]) -> None:
        owner = None if self._owner is None else self._owner()
        if owner is not None and self._listener is not None:
            self._listener(owner, event)

    def __deepcopy__(self, memo: Any) -> Hook:
        return Hook()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_do_nothing_hook, ())


def _do_nothing_hook() -> Hook:
    return Hook()


class Hooks:
    """All hooks of one recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = weakref.ref(recorder)
        self._handles: list[RemovableHandle] = []

    def add_to_models(
        self, models: Iterable[torch.nn.Module], captured: Mapping[str, torch.nn.Module]
    ) -> None:
        """Listens to forward passes of the models, and to outputs of modules by name."""
        recorder = self._recorder()
        for model in models:
            # First of all hooks: those of FSDP put other tensors into the parameters' place.
            hook = Hook(recorder, lambda to, _: to.on_forward())
            self._handles.append(model.register_forward_pre_hook(hook, prepend=True))
        for name, module in captured.items():
            hook = Hook(recorder, partial(_tell_output, name))
            self._handles.append(module.register_forward_hook(hook))

    def add_to_optimizers(self, optimizers: Mapping[str, torch.optim.Optimizer]) -> None:
        """Listens to `optimizer.step()`."""
        recorder = self._recorder()
        for name, optimizer in optimizers.items():
            before = Hook(recorder, partial(_tell_update, name))
            after = Hook(recorder, partial(_tell_updated, name))
            self._handles.append(optimizer.register_step_pre_hook(before))
            self._handles.append(optimizer.register_step_post_hook(after))

    def remove(self) -> None:
        """Listens no longer."""
        for handle in self._handles:
            handle.remove()
        self._handles = []


def _tell_output(name: str, recorder: Recorder, event: tuple[Any, ...]) -> None:
    recorder.on_activation(name, event[2])


def _tell_update(name: str, recorder: Recorder, event: tuple[Any, ...]) -> None:
    recorder.before_update(name)


def _tell_updated(name: str, recorder: Recorder, event: tuple[Any, ...]) -> None:
    recorder.after_update(name)
