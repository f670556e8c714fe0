"""Digests of tensors, wherever they lie, and of nested values that hold tensors.

A tensor's digest is over its element type, shape and row-major bytes (docs/format.md, "Digests"),
so that device, strides and being a view do not matter. A tensor that consists of several (sparse
ones, subclasses) has the digest of these as named tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from verbatim import _native
from verbatim.errors import UsageError

NamedTensor = tuple[str, torch.Tensor]

_DTYPES = {
    getattr(torch, name): name for name in _native.dtype_names() if hasattr(torch, name)
}
_STAGING_BYTES = 64 << 20


class Digester:
    """Computes digests on `threads` threads. One thread at a time."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or torch.get_num_threads()
        self._staging = _Staging()

    @torch.no_grad()
    def tensors(self, tensors: Iterable[NamedTensor]) -> list[bytes]:
        """The digest of each; the names are for errors alone."""
        plain: list[torch.Tensor] = []
        parts: list[list[str]] = []
        for name, tensor in tensors:
            parts.append([])
            for part, dense in _plain_parts(name, tensor, ""):
                parts[-1].append(part)
                plain.append(dense)
        digests = iter(self._plain(plain))
        return [_joined([(part, next(digests)) for part in names]) for names in parts]

    def named(self, groups: Sequence[Sequence[NamedTensor]]) -> list[bytes]:
        """For each group the digest of its tensors under their names."""
        digests = iter(self.tensors(tensor for group in groups for tensor in group))
        return [
            _native.named_digest([(name, next(digests)) for name, _ in group]) for group in groups
        ]

    def value(self, value: Any, what: str) -> bytes:
        """The digest of a nested value: a lone tensor's own, else of its tensors as named ones."""
        if isinstance(value, torch.Tensor):
            return self.tensors([(what, value)])[0]
        return self.named([list(flatten(value, what))])[0]

    def release(self) -> None:
        """Lets go of memory that is kept between digests."""
        self._staging = _Staging()

    def _plain(self, tensors: list[torch.Tensor]) -> list[bytes]:
        digests: list[bytes] = []
        for hosted in self._staging.batches(tensors):
            described = [
                (t.data_ptr(), t.numel() * t.element_size(), _DTYPES[dtype], tuple(shape))
                for t, dtype, shape in hosted
            ]
            digests += _native.digest_tensors(described, self._threads)
        return digests


Hosted = tuple[torch.Tensor, torch.dtype, torch.Size]


class _Staging:
    """Brings tensors to host memory: those of a CUDA device through one pinned buffer."""

    def __init__(self) -> None:
        self._buffer: torch.Tensor | None = None

    def batches(self, tensors: list[torch.Tensor]) -> Iterator[list[Hosted]]:
        """The tensors in order, in host memory, as many at a time as the buffer holds."""
        batch: list[Hosted] = []
        devices: set[torch.device] = set()
        used = 0
        for tensor in tensors:
            byte_size = tensor.numel() * tensor.element_size()
            if not self._is_staged(tensor):
                batch.append((tensor.cpu().contiguous(), tensor.dtype, tensor.shape))
                continue
            if used and used + byte_size > self._capacity(byte_size):
                _wait_for(devices)
                yield batch
                batch, used = [], 0
                devices.clear()
            room = self._room(used, byte_size, tensor)
            room.copy_(tensor.contiguous().view(-1).view(torch.uint8), non_blocking=True)
            if tensor.device.type == "cuda":
                devices.add(tensor.device)
            batch.append((room, tensor.dtype, tensor.shape))
            used += -(-byte_size // 64) * 64
        _wait_for(devices)
        yield batch

    def _is_staged(self, tensor: torch.Tensor) -> bool:
        return tensor.device.type == "cuda" and tensor.numel() > 0

    def _capacity(self, byte_size: int) -> int:
        return max(_STAGING_BYTES, byte_size)

    def _room(self, used: int, byte_size: int, tensor: torch.Tensor) -> torch.Tensor:
        capacity = self._capacity(byte_size)
        if self._buffer is None or self._buffer.numel() < capacity:
            # Only an empty buffer is too small: what is staged in it has been digested.
            self._buffer = torch.empty(
                capacity, dtype=torch.uint8, pin_memory=tensor.device.type == "cuda"
            )
        return self._buffer[used : used + byte_size]


def _wait_for(devices: set[torch.device]) -> None:
    """Until their copies are done, which each device's current stream makes."""
    for device in devices:
        torch.cuda.current_stream(device).synchronize()


def _joined(parts: list[tuple[str, bytes]]) -> bytes:
    if len(parts) == 1 and parts[0][0] == "":
        return parts[0][1]
    return _native.named_digest(parts)


def _plain_parts(name: str, tensor: torch.Tensor, part: str) -> Iterator[NamedTensor]:
    """The dense tensors that make up `tensor`; a dense one is its own only part."""
    if is_lazy(tensor):
        raise UsageError(
            f"{name} has no shape yet: its module is lazy",
            "Run one forward pass before the Recorder is made.",
        )
    if tensor.is_meta:
        raise UsageError(
            f"{name} is on the meta device and has no values",
            "Initialise the model before the Recorder is made (to_empty, load_state_dict).",
        )
    local = local_part(tensor)
    if local is not tensor:
        yield from _plain_parts(name, local, part)
    elif tensor.layout != torch.strided:
        for key, inner in _sparse_parts(name, tensor):
            yield from _plain_parts(name, inner, _below(part, key))
    elif type(tensor) not in _PLAIN_TYPES and hasattr(tensor, "__tensor_flatten__"):
        keys, context = tensor.__tensor_flatten__()
        for key in keys:
            yield from _plain_parts(name, getattr(tensor, key), _below(part, key))
    elif tensor.dtype not in _DTYPES:
        raise UsageError(
            f"{name} has element type {dtype_name(tensor.dtype)}, which cannot be digested",
            "Leave it out of what is recorded, or register it with persistent=False.",
        )
    else:
        yield part, _dense(name, tensor)


_PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)


def _below(part: str, key: str) -> str:
    return f"{part}.{key}" if part else key


def _sparse_parts(name: str, tensor: torch.Tensor) -> list[NamedTensor]:
    shape = ("shape", torch.tensor(tensor.shape, dtype=torch.int64))
    if tensor.layout == torch.sparse_coo:
        merged = tensor.detach().coalesce()
        return [shape, ("indices", merged.indices()), ("values", merged.values())]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [
            shape,
            ("crow_indices", tensor.crow_indices()),
            ("col_indices", tensor.col_indices()),
            ("values", tensor.values()),
        ]
    raise UsageError(
        f"{name} has layout {tensor.layout}, which cannot be digested",
        "Leave it out of what is recorded.",
    )


def _dense(name: str, tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.numel() > 0 and plain.data_ptr() == 0:
        raise UsageError(
            f"{name} has no memory of its own: another object holds its values",
            "Record the tensors that hold them; of FSDP, use fully_shard.",
        )
    return plain


def local_part(tensor: torch.Tensor) -> torch.Tensor:
    """What this process holds of a DTensor; any other tensor itself."""
    to_local = getattr(tensor, "_local_tensor", None)
    return to_local if isinstance(to_local, torch.Tensor) else tensor


def placement(tensor: torch.Tensor) -> str:
    """How a DTensor is laid out over its mesh, "" of other tensors: "Shard(dim=0) of [128,64]"."""
    if local_part(tensor) is tensor:
        return ""
    places = " ".join(repr(place) for place in tensor.placements)  # type: ignore[attr-defined]
    return f"{places} of [{','.join(str(size) for size in tensor.shape)}]"


def is_cuda_in_use() -> bool:
    """Whether this process has used a CUDA device."""
    ask: Any = torch.cuda.is_initialized
    return bool(ask())


def dtype_name(dtype: torch.dtype) -> str:
    """ "float32" """
    return str(dtype).removeprefix("torch.")


def flatten(value: Any, name: str) -> Iterator[NamedTensor]:
    """The tensors of a nested value, by the way to each: "name.key.0".

    Numbers are tensors of rank 0 (bool, int64, float64), a list of numbers of one type a tensor of
    rank 1, text and bytes uint8 tensors; None is left out. Dicts keep their order, sets have none
    and are refused.
    """
    if value is None:
        return
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from flatten(inner, _below(name, str(key)))
    elif isinstance(value, (list, tuple)):
        if _are_numbers(value):
            yield name, torch.tensor(value, dtype=_NUMBER_DTYPES[type(value[0])])
        else:
            for index, inner in enumerate(value):
                yield from flatten(inner, _below(name, str(index)))
    else:
        yield name, _leaf(value, name)


_NUMBER_DTYPES = {bool: torch.bool, int: torch.int64, float: torch.float64}


def _fits(value: Any) -> bool:
    return type(value) in _NUMBER_DTYPES and (type(value) is not int or -(2**63) <= value < 2**63)


def _are_numbers(values: Sequence[Any]) -> bool:
    return bool(values) and all(type(v) is type(values[0]) and _fits(v) for v in values)


def _leaf(value: Any, name: str) -> torch.Tensor:
    if _fits(value):
        return torch.tensor(value, dtype=_NUMBER_DTYPES[type(value)])
    if isinstance(value, int):
        return _bytes_tensor(str(value).encode())
    if isinstance(value, str):
        return _bytes_tensor(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, (bytes, bytearray)):
        return _bytes_tensor(bytes(value))
    if hasattr(value, "__array__") and hasattr(value, "dtype"):
        return _array(value, name)
    raise UsageError(
        f"{name} is a {type(value).__module__}.{type(value).__qualname__}, "
        "which cannot be digested",
        "Give tensors, arrays, numbers and text, in lists, tuples and dicts.",
    )


def _bytes_tensor(value: bytes) -> torch.Tensor:
    if not value:
        return torch.empty(0, dtype=torch.uint8)
    return torch.frombuffer(bytearray(value), dtype=torch.uint8)


def _array(value: Any, name: str) -> torch.Tensor:
    import numpy

    array = numpy.ascontiguousarray(value).reshape(numpy.shape(value))
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    if array.dtype.kind in "US":
        return _bytes_tensor(array.tobytes())
    try:
        return torch.from_numpy(array if array.flags.writeable else array.copy())
    except TypeError:
        raise UsageError(
            f"{name} is an array of {array.dtype}, which cannot be digested",
            "Give arrays of numbers, bools or text.",
        ) from None
