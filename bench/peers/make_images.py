#!/usr/bin/env python3
"""Makes a data set of CIFAR-10's shape: noise around one pattern per class, for benchmarks.

usage: make_images.py FOLDER [IMAGES]

Writes data_batch_1.bin … data_batch_5.bin (IMAGES in all, 2000 by default) and test_batch.bin (a
tenth of that). The same numbers each time; nothing is downloaded.
"""

import sys
from pathlib import Path

import numpy as np

CLASSES, PIXELS, FILES = 10, 3072, 5


def records(random, patterns, count):
    labels = random.integers(0, CLASSES, count)
    noise = random.integers(0, 192, (count, PIXELS))
    pixels = noise + patterns[labels]
    return np.concatenate([labels[:, None], pixels], axis=1).astype(np.uint8).tobytes()


def make(folder, images=2000):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.Generator(np.random.PCG64(1))
    patterns = random.integers(0, 64, (CLASSES, PIXELS))
    for number in range(1, FILES + 1):
        content = records(random, patterns, images // FILES)
        (folder / f"data_batch_{number}.bin").write_bytes(content)
    (folder / "test_batch.bin").write_bytes(records(random, patterns, max(1, images // 10)))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    make(sys.argv[1], *map(int, sys.argv[2:]))
