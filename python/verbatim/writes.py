"""Finds layers that somebody wrote between a step's update and the next step's forward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import torch

from verbatim.errors import UsageError
from verbatim.layers import ModelLayers

Reads = Literal["versions", "digests", "off"]


class Writes:
    """Compares marks of all layers (address, PyTorch's version counter) with what they were at the
    end of the step before, at every step, recorded or not; with "digests" also their digests, before
    the recorded ones."""

    def __init__(
        self,
        layers: ModelLayers,
        reads: Reads,
        *,
        leave_out_buffers: bool,
        digest: Callable[[Iterable[torch.Tensor]], list[bytes]],
    ) -> None:
        if reads not in ("versions", "digests", "off"):
            raise UsageError(f"reads is {reads!r}", 'One of "versions", "digests", "off".')
        self._layers = layers
        self._reads = reads
        self._digest = digest
        # DistributedDataParallel sends rank 0's buffers to all before a forward pass.
        self._watched = [
            layer.id for layer in layers.all
            if not (leave_out_buffers and layer.kind == "buffer")
        ]
        self._found: set[int] = set()
        self._marks: list[object] = []
        self._digests: list[bytes] | None = None
        self.settle(None, is_next_due=True)

    @property
    def are_watched(self) -> bool:
        return self._reads != "off"

    def look(self, *, thoroughly: bool) -> None:
        """Before a step's first forward pass."""
        if self._reads == "off":
            return
        marks = self._layers.marks()
        self._found.update(i for i in self._watched if marks[i] != self._marks[i])
        if thoroughly and self._digests is not None:
            digests = self._digest(self._layers.tensors())
            self._found.update(i for i in self._watched if digests[i] != self._digests[i])

    def found(self) -> list[int]:
        """Ids of the layers found since the recorded step before, ascending."""
        return sorted(self._found)

    def settle(self, recorded: list[bytes] | None, *, is_next_due: bool) -> None:
        """After a step's update. `recorded`: the layers' digests, where the step was recorded."""
        if recorded is not None:
            self._found.clear()
        if self._reads == "off":
            return
        self._marks = self._layers.marks()
        self._digests = recorded
        if self._reads != "digests":
            self._digests = None
        elif is_next_due and recorded is None:
            self._digests = self._digest(self._layers.tensors())
