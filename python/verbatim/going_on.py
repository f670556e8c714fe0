"""What is known of a step while it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import torch

from verbatim import _native
from verbatim.circumstances import Scalar
from verbatim.digests import Digester, NamedTensor, local_part
from verbatim.errors import UsageError

Captured = tuple[int, int, bytes]


@dataclass(slots=True)
class GoingOn:
    """Facts gathered between two calls of `Recorder.step`."""

    began: bool = False
    lacks: bool = False
    """Whether something was not gathered, since no step was expected that is recorded."""
    random_state: list[NamedTensor] | None = None
    """Of all generators, as they were when the step began."""
    evaluating: str = ""
    settings: dict[str, Scalar] = field(default_factory=dict)
    """Of the optimizers, as they were when these stepped."""
    parts: list[bytes] = field(default_factory=list)
    gradients: dict[int, bytes] = field(default_factory=dict)


class Captures:
    """Digests of captured tensors within a step. Their layers come after `first_layer` others."""

    def __init__(self, names: tuple[str, ...], first_layer: int, digester: Digester) -> None:
        for name in names:
            if not isinstance(name, str) or not name or names.count(name) > 1:
                raise UsageError(
                    f"activations and tensors name {name!r}"
                    + (" twice" if names.count(name) > 1 else ""),
                    "Give each name once, as text that is not empty.",
                )
        self.names = {name: first_layer + index for index, name in enumerate(names)}
        self._digester = digester
        self._found: list[Captured] = []

    def add(self, name: str, value: Any) -> None:
        """Digests a value: a lone tensor, or all that it holds, under their names in it."""
        self._found.append(self._digest(name, value, self._found))

    def with_more(self, tensors: Mapping[str, torch.Tensor]) -> list[Captured]:
        """What was added, and these; they are not kept."""
        found = list(self._found)
        for name, tensor in tensors.items():
            found.append(self._digest(name, tensor, found))
        return found

    def clear(self) -> None:
        self._found = []

    def rows(self) -> list[_native.Layer]:
        return [("captured", name, "", (), "", (), None) for name in self.names]

    def _digest(self, name: str, value: Any, before: list[Captured]) -> Captured:
        layer = self.names.get(name)
        if layer is None:
            near = get_close_matches(name, self.names, 1)
            raise UsageError(
                f'the tensor "{name}" was not declared',
                f'Did you mean "{near[0]}"?' if near else f'Recorder(…, tensors=["{name}"])',
            )
        occurrence = sum(other == layer for other, _, _ in before)
        return (layer, occurrence, self._digester.value(value, name))


def loss_bits(loss: Any) -> int | None:
    """The bits of a loss as float32."""
    if loss is None:
        return None
    if not isinstance(loss, torch.Tensor):
        try:
            loss = torch.tensor(float(loss), dtype=torch.float64)
        except (TypeError, ValueError):
            raise UsageError(
                f"the loss is a {type(loss).__name__}", "Give a number or a tensor of one."
            ) from None
    value = local_part(loss.detach())
    if value.numel() != 1 or value.is_complex():
        raise UsageError(
            f"the loss is a tensor of shape {list(value.shape)} and type {value.dtype}",
            "Give one real number: the loss that the backward pass started from.",
        )
    bits = value.to(torch.float32).reshape(()).cpu().view(torch.int32)
    return int(bits.item()) & 0xFFFFFFFF
