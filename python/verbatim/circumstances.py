"""What a step's results follow from besides weights and batch: generators, settings, modes."""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from verbatim.digests import NamedTensor, is_cuda_in_use

Scalar = str | int | float | bool


def random_state() -> list[NamedTensor]:
    """The states of all generators: PyTorch's of the CPU and of each CUDA device in use, NumPy's
    global one where NumPy is loaded, Python's."""
    states = [("torch.cpu", torch.get_rng_state())]
    if is_cuda_in_use():
        for device, generator in enumerate(torch.cuda.default_generators):
            states.append((f"torch.cuda:{device}", generator.get_state()))
    if "numpy" in sys.modules:
        states.append(("numpy", _bytes(_numpy_state())))
    version, words, gauss = random.getstate()
    text = f"{version} {gauss!r} ".encode()
    states.append(("python", _bytes(text + struct.pack(f"<{len(words)}I", *words))))
    return states


def drawn_from(before: list[NamedTensor]) -> list[NamedTensor]:
    """Those of the generators that have been drawn from since, as they were before.

    Others had no effect, and differ where nobody seeds them: NumPy's and Python's start from the
    system's entropy.
    """
    now = dict(random_state())
    return [
        (name, state)
        for name, state in before
        if name not in now or not torch.equal(state, now[name])
    ]


def _numpy_state() -> bytes:
    state: Any = sys.modules["numpy"].random.get_state(legacy=True)
    if not isinstance(state, tuple):
        return repr(state).encode()
    name, keys, *numbers = state
    return f"{name} {numbers!r} ".encode() + bytes(keys.astype("<u4").tobytes())


def _bytes(value: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(value), dtype=torch.uint8)


def optimizer_classes(optimizers: Mapping[str, torch.optim.Optimizer]) -> dict[str, Scalar]:
    """Settings of the run: "optimizer", or "name.optimizer"."""
    return {
        (f"{name}.optimizer" if name else "optimizer"): type(optimizer).__qualname__
        for name, optimizer in optimizers.items()
    }


_PARAMETERS = ("params", "param_names")


def optimizer_settings(optimizers: Mapping[str, torch.optim.Optimizer]) -> dict[str, Scalar]:
    """Every number, text and bool of the parameter groups: "lr", "betas[0]", "1.lr", "name.lr"."""
    settings: dict[str, Scalar] = {}
    for name, optimizer in optimizers.items():
        groups = optimizer.param_groups
        for index, group in enumerate(groups):
            prefix = (f"{name}." if name else "") + (f"{index}." if len(groups) > 1 else "")
            for key, value in group.items():
                if key not in _PARAMETERS:
                    settings.update(_scalars(prefix + key, value))
    return settings


def _scalars(key: str, value: Any) -> Iterator[tuple[str, Scalar]]:
    if isinstance(value, (str, bool, int, float)):
        yield key, value
    elif isinstance(value, torch.Tensor) and value.numel() == 1 and not value.is_complex():
        yield key, value.item()
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from _scalars(f"{key}[{index}]", inner)


def modules_in_evaluation(models: Mapping[str, torch.nn.Module]) -> str:
    """Names of the modules in evaluation mode: of a module that is so with all within it its own
    alone. "(all)" is a whole model."""
    return ", ".join(
        name for prefix, model in models.items() for name in _evaluating(prefix, model)[0]
    )


def _evaluating(name: str, module: torch.nn.Module) -> tuple[list[str], bool]:
    """Names within a module, and whether all of it is in evaluation mode."""
    names: list[str] = []
    are_all = not module.training
    for key, child in module._modules.items():
        if child is not None:
            more, is_all = _evaluating(f"{name}.{key}" if name else key, child)
            names += more
            are_all = are_all and is_all
    if are_all:
        return [name or "(all)"], True
    if not module.training:
        names.insert(0, name or "(root)")
    return names, False
