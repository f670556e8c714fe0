"""The digests of docs/format.md section 4: XXH3-128 of tensors and of named tensors, as hex."""

import struct

import numpy as np
import torch
import xxhash

_CHUNK_BYTES = 65536
_DTYPES = {"float32": 1, "int64": 5, "uint8": 7}  # those that occur in a record


def digest_bytes(content):
    return xxhash.xxh3_128_digest(content)


def _tensor_bytes(value):
    array = value.detach().numpy() if isinstance(value, torch.Tensor) else value
    content = np.ascontiguousarray(array).tobytes()
    message = struct.pack(f"<II{array.ndim}Q", _DTYPES[array.dtype.name], array.ndim, *array.shape)
    for first in range(0, len(content), _CHUNK_BYTES):
        message += digest_bytes(content[first : first + _CHUNK_BYTES])
    return digest_bytes(message)


def tensor(value):
    """The digest of one tensor or array."""
    return _tensor_bytes(value).hex()


def named(entries):
    """The digest of a list of (name, tensor or array), in its order."""
    message = b""
    for name, value in entries:
        encoded = name.encode()
        message += struct.pack("<I", len(encoded)) + encoded + _tensor_bytes(value)
    return digest_bytes(message).hex()
