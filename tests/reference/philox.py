"""Philox4x32-10 (Salmon et al., SC'11) and the keyed streams of docs/spec.md section 5."""

import numpy as np

_MASK = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL = 0x9E3779B9, 0xBB67AE85

INITIAL_WEIGHTS = 1
SAMPLER = 2
BATCH = 3
DROPOUT = 4
HELD_OUT_SPLIT = 5
EVALUATED_SUBNET = 6
CALIBRATION_BATCH = 7
FAIR = 10


def philox4x32_10(counter, key):
    """Four 32-bit words for every counter.

    `counter` holds four uint64 arrays (or numbers) with 32-bit values, `key` two integers.
    Returns uint64 arrays with 32-bit values, stacked along a last axis of length 4.
    """
    c0, c1, c2, c3 = np.broadcast_arrays(*(np.asarray(c, dtype=np.uint64) for c in counter))
    k0, k1 = key
    for _ in range(10):
        p0 = _MULTIPLIERS[0] * c0
        p1 = _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (
            (p1 >> _SHIFT) ^ c1 ^ np.uint64(k0),
            p1 & _MASK,
            (p0 >> _SHIFT) ^ c3 ^ np.uint64(k1),
            p0 & _MASK,
        )
        k0 = (k0 + _WEYL[0]) & 0xFFFFFFFF
        k1 = (k1 + _WEYL[1]) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=-1)


class Stream:
    """The words of one stream; `words` reads from the start, `below` consumes them in order."""

    _AHEAD = 256

    def __init__(self, seed, purpose, a=0, b=0, c=0):
        self._key = seed & 0xFFFFFFFF, seed >> 32
        self._counter = (purpose << 24) + a, b, c
        self._buffer = []
        self._blocks_taken = 0

    def words(self, count, first_block=0):
        blocks = np.arange(first_block, first_block + (count + 3) // 4, dtype=np.uint64)
        return philox4x32_10((blocks, *self._counter), self._key).reshape(-1)[:count]

    def _next(self):
        if not self._buffer:
            ahead = self.words(4 * self._AHEAD, self._blocks_taken)
            self._blocks_taken += self._AHEAD
            self._buffer = ahead.tolist()[::-1]
        return self._buffer.pop()

    def below(self, n):
        """An unbiased integer in [0, n) (Lemire 2019)."""
        product = self._next() * n
        low = product & 0xFFFFFFFF
        if low < n:
            threshold = (2**32 - n) % n
            while low < threshold:
                product = self._next() * n
                low = product & 0xFFFFFFFF
        return product >> 32


def uniform_float(words):
    """float32 in [0, 1), exact."""
    return (words >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)


def draw_samples(split, count, stream):
    """`count` different members of `split` by a partial Fisher-Yates shuffle of a fresh copy."""
    pool = list(split)
    for i in range(count):
        j = i + stream.below(len(pool) - i)
        pool[i], pool[j] = pool[j], pool[i]
    return pool[:count]
