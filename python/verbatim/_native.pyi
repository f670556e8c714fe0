"""Types of the compiled part. Digests are 16 bytes; hexadecimal where they are str."""

from collections.abc import Mapping, Sequence
from typing import Any

Tensor = tuple[int, int, str, tuple[int, ...]]
"""Address in host memory, bytes, element type, shape; contiguous, and alive during the call."""

def version() -> str: ...
def processor_facts() -> dict[str, str]: ...
def dtype_names() -> list[str]: ...
def digest_tensors(tensors: Sequence[Tensor], threads: int) -> list[bytes]:
    """Each tensor's digest. Lets go of the lock while it computes."""

def named_digest(tensors: Sequence[tuple[str, bytes]]) -> bytes:
    """The digest of named tensors, of their digests in order."""

Layer = tuple[str, str, str, Sequence[int], str, Sequence[str], bytes | None]
"""Kind ("parameter", "buffer", "captured"), name, element type, shape, placement, further names,
initial digest."""

LayerDigests = tuple[int, bytes | None, bytes | None, bytes | None]
"""Layer, digests of its weights, optimizer state, gradients."""

def open_recording(
    path: str,
    *,
    name: str,
    seed: int | None,
    every: int,
    rank: int,
    world_size: int,
    optimizer_state: bool,
    gradients: bool,
    settings: Mapping[str, str | int | float | bool],
    level: str,
    folder: str,
    command_line: str,
    device: str,
    steps_planned: int,
    layers: Sequence[Layer],
    environment: Mapping[str, str],
    overwrite: bool,
) -> Recording: ...

class Recording:
    def record(
        self,
        *,
        step: int,
        loss_bits: int | None,
        batch: bytes | None,
        parts: Sequence[bytes],
        random_state: bytes | None,
        settings: Mapping[str, str | int | float | bool],
        outside: Sequence[int],
        layers: Sequence[LayerDigests],
        captured: Sequence[tuple[int, int, bytes]],
    ) -> None: ...
    def close(self, status: str, detail: str) -> None: ...

class Reading:
    def __init__(self, path: str) -> None: ...
    def run(self) -> dict[str, Any]: ...
    def environment(self) -> dict[str, str]: ...
    def layers(self) -> list[tuple[int, str, str, bool, str]]:
        """Id, name, op, whether versioned, initial digest."""

    def step_count(self) -> int: ...
    def step(self, seq: int) -> dict[str, Any] | None: ...
