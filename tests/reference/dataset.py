"""Reads data sets and computes the held-out split (docs/spec.md section 2). Imports no torch."""

import gzip
import math
import os
from dataclasses import dataclass

import numpy as np

from philox import HELD_OUT_SPLIT, Stream


class DataError(Exception):
    """What is wrong with a data file."""


@dataclass
class Images:
    pixels: np.ndarray  # uint8, N x C x H x W
    labels: np.ndarray  # uint8, N


    @property
    def shape(self):
        return self.pixels.shape[1:]

    def named(self, prefix=""):
        return [(f"{prefix}pixels", self.pixels), (f"{prefix}labels", self.labels)]


class Text:
    """The bytes of a file, cut into samples."""

    def __init__(self, content, length, source):
        count = (len(content) - 1) // length
        if count < 1:
            raise DataError(f"{len(content)} bytes, one sample takes {length + 1}")
        self.content = np.frombuffer(content, dtype=np.uint8)
        self.shape = length, 1
        self.pieces = self.content[: count * length].reshape(count, length)
        self.labels = self.content[1 : count * length + 1].reshape(count, length)[:, source:]

    def named(self, prefix=""):
        return [(f"{prefix}bytes", self.content)]


@dataclass
class Data:
    train: Images  # or Text
    test: Images  # None where the folder has no test files
    classes: int


def _read(path):
    with open(path, "rb") as file:
        content = file.read()
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def _find(folder, name, suffix):
    for spelling in (f"{name}-{suffix}", f"{name}-{suffix}.gz", f"{name}.{suffix}",
                     f"{name}.{suffix}.gz"):
        path = os.path.join(folder, spelling)
        if os.path.exists(path):
            return path
    return None


def _idx(path, rank):
    content = _read(path)
    header = np.frombuffer(content[: 4 * (rank + 1)], dtype=">u4").tolist()
    if len(header) != rank + 1 or header[0] != 0x800 + rank or min(header[1:]) < 1:
        raise DataError(f"{path}: not an IDX file of unsigned bytes with {rank} dimensions")
    values = np.frombuffer(content, dtype=np.uint8, offset=4 * (rank + 1))
    if values.size != math.prod(header[1:]):
        raise DataError(f"{path}: {values.size} values, its header says {math.prod(header[1:])}")
    return values.reshape(header[1:])


def _idx_pair(folder, name):
    images = _find(folder, f"{name}-images", "idx3-ubyte")
    labels = _find(folder, f"{name}-labels", "idx1-ubyte")
    if images is None and labels is None and name == "t10k":
        return None
    if images is None or labels is None:
        raise DataError(f"{folder}: {name} images or labels are missing")
    pair = Images(_idx(images, 3)[:, None], _idx(labels, 1))
    if len(pair.pixels) != len(pair.labels):
        raise DataError(f"{images}: {len(pair.pixels)} images, {len(pair.labels)} labels")
    return pair


def _cifar(folder, names, label_bytes):
    content = b"".join(_read(os.path.join(folder, name)) for name in names)
    size = label_bytes + 3072
    if not content or len(content) % size:
        raise DataError(f"{folder}: {', '.join(names)} do not hold whole records of {size} bytes")
    records = np.frombuffer(content, dtype=np.uint8).reshape(-1, size)
    return Images(records[:, label_bytes:].reshape(-1, 3, 32, 32), records[:, label_bytes - 1])


def load(folder, form, options=None):
    """`options`: the spec's data, of which a text's file, length and source are used."""
    if form == "text":
        path = os.path.join(folder, options["file"])
        content = _read(path if os.path.exists(path) else path + ".gz")
        return Data(Text(content, options["length"], options["source"]), None, 256)
    if form == "cifar10":
        names = [f"data_batch_{i}.bin" for i in range(1, 6)]
        data = Data(_cifar(folder, names, 1), _cifar(folder, ["test_batch.bin"], 1), 10)
    elif form == "cifar100":
        data = Data(_cifar(folder, ["train.bin"], 2), _cifar(folder, ["test.bin"], 2), 100)
    else:
        train = _idx_pair(folder, "train")
        data = Data(train, _idx_pair(folder, "t10k"), int(train.labels.max()) + 1)
    for images in (data.train, data.test):
        if images is not None and images.labels.max() >= data.classes:
            raise DataError(f"{folder}: a label is not below the {data.classes} classes")
    return data


def split(count, holdout, seed):
    """(training samples, held-out samples) of a folder without test files, both ascending."""
    held_out = math.floor(count * holdout + 0.5)
    order = list(range(count))
    stream = Stream(seed, HELD_OUT_SPLIT)
    for i in range(count - 1, 0, -1):
        j = stream.below(i + 1)
        order[i], order[j] = order[j], order[i]
    return sorted(order[held_out:]), sorted(order[:held_out])


def normalise(pixels, mean, std):
    """(byte - mean) / std in float32; mean and std are one number or one per channel."""
    mean, std = (np.array(v, dtype=np.float32).reshape(-1, 1, 1) for v in (mean, std))
    return (pixels.astype(np.float32) - mean) / std
