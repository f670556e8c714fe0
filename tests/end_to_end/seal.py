"""Writes content digests anew, so that a changed record agrees with itself again: what a run that
computed other numbers would have left. The bytes are those of docs/format.md section 5."""

import ctypes
import ctypes.util
import json
import sqlite3
import struct


class _Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


# The program's own dependency, so that no Python package is needed.
_xxhash = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0").XXH3_128bits
_xxhash.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
_xxhash.restype = _Hash


def _digest(content):
    value = _xxhash(content, len(content))
    return struct.pack(">QQ", value.high, value.low)


def _numbers(values):
    return struct.pack(f"<I{len(values)}I", len(values), *values)


def _access(layer, read_seq, base_seq, *digests):
    present = sum(1 << i for i, digest in enumerate(digests) if digest is not None)
    return struct.pack("<IqqB", layer, read_seq, base_seq, present) + b"".join(
        digest for digest in digests if digest is not None)


def _content(database, seq, choices, samples, batch_digest, loss_bits):
    accesses = database.execute(
        "SELECT layer, read_seq, coalesce(base_seq, read_seq), weights, optimizer_state, gradients "
        "FROM accesses WHERE access BETWEEN ? AND ? ORDER BY access",
        (seq << 20, seq << 20 | 0xFFFFF)).fetchall()
    activations = database.execute("SELECT microbatch, position, digest FROM activations "
                                   "WHERE seq = ? ORDER BY microbatch, position", (seq,)).fetchall()
    return b"".join((
        struct.pack("<q", seq), _numbers(json.loads(choices)),
        _numbers(struct.unpack(f"<{len(samples) // 4}I", samples)), batch_digest,
        struct.pack("<II", loss_bits, len(accesses)), *(_access(*row) for row in accesses),
        struct.pack("<I", len(activations)),
        *(struct.pack("<II", *row[:2]) + row[2] for row in activations)))


def seal(record):
    """Of all its subnets."""
    database = sqlite3.connect(record)
    try:
        with database:
            for row in database.execute("SELECT seq, choices, samples, batch_digest, loss_bits "
                                        "FROM subnets").fetchall():
                database.execute("UPDATE subnets SET content_digest = ? WHERE seq = ?",
                                 (_digest(_content(database, *row)), row[0]))
    finally:
        database.close()
