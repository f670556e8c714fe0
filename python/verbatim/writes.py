"""Finds layers that somebody wrote between a step's update and the next step's forward pass."""

from __future__ import annotations

from typing import Literal

from verbatim.digests import Digester
from verbatim.errors import UsageError
from verbatim.layers import ModelLayers

Reads = Literal["versions", "digests", "off"]


class Writes:
    """Compares marks of all layers (address, PyTorch's version counter) with what they were at the
    end of the step before, at every step, recorded or not (and the digests of those with other
    marks, where that step was recorded); and digests, before the recorded ones:
    with "digests" of all layers, with "versions" of buffers, since batch normalisation writes its
    statistics without counting."""

    def __init__(
        self,
        layers: ModelLayers,
        digester: Digester,
        reads: Reads,
        *,
        leave_out_buffers: bool,
        initial: list[bytes],
    ) -> None:
        if reads not in ("versions", "digests", "off"):
            raise UsageError(f"reads is {reads!r}", 'One of "versions", "digests", "off".')
        self._layers = layers
        self._digester = digester
        self.are_watched = reads != "off"
        # DistributedDataParallel sends rank 0's buffers to all before a forward pass.
        self._marked = [
            layer.id
            for layer in layers.all
            if self.are_watched and not (leave_out_buffers and layer.kind == "buffer")
        ]
        self._digested = [
            i for i in self._marked if reads == "digests" or layers.all[i].kind == "buffer"
        ]
        self._found: set[int] = set()
        self._marks: list[object] = []
        self._known: list[bytes] | None = None
        """Digests of all layers after the step before, where that was recorded."""
        self._digests: list[bytes] | None = None
        self.settle(initial, is_next_due=True)

    def look(self, *, thoroughly: bool) -> None:
        """Before a step's first forward pass."""
        if not self._marked:
            return
        marks = self._layers.marks()
        self._found.update(self._others([i for i in self._marked if marks[i] != self._marks[i]]))
        if thoroughly and self._digests is not None:
            now = self._layers.digest(self._digester, self._digested)
            changes = zip(self._digested, now, self._digests, strict=True)
            self._found.update(i for i, digest, before in changes if digest != before)

    def _others(self, ids: list[int]) -> list[int]:
        """Of layers with other marks those that differ, as far as can be told: a model that goes to
        another device and back has other marks and the same values."""
        if self._known is None or not ids:
            return ids
        now = self._layers.digest(self._digester, ids)
        return [i for i, digest in zip(ids, now, strict=True) if digest != self._known[i]]

    def found(self) -> list[int]:
        """Ids of the layers found since the recorded step before, ascending."""
        return sorted(self._found)

    def settle(self, recorded: list[bytes] | None, *, is_next_due: bool) -> None:
        """After a step's update. `recorded`: all layers' digests, where the step was recorded."""
        if recorded is not None:
            self._found.clear()
        if not self._marked:
            return
        self._marks = self._layers.marks()
        self._known = recorded
        if recorded is not None:
            self._digests = [recorded[i] for i in self._digested]
        elif is_next_due:
            self._digests = self._layers.digest(self._digester, self._digested)
        else:
            self._digests = None
