"""Trains a small convolution net on generated images, with a sum that two threads add to.

`ThreadedPool` is nondeterministic the way a scatter with atomic additions is: two threads add their
rows to the same sums, and which goes first is up to the machine. Addition of floats depends on the
order, so the same inputs give other bits. Tests say which thread goes first, to have that difference
when they want it; `Options(first_thread=None)` leaves it to the machine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

import verbatim

SIDE = 8
BATCH = 8


@dataclass
class Options:
    """One run. Steps are counted from 0."""

    seed: int = 1
    data_seed: int = 1
    steps: int = 60
    first_thread: Callable[[int], int] | None = lambda step: 0  # by step: 0 or 1


class ThreadedPool(nn.Module):
    """Adds up all pixels of each channel: one thread the upper half's rows, one the lower half's."""

    def __init__(self) -> None:
        super().__init__()
        self.first_thread: int | None = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            sums = self._sums(x)
        # The gradient is that of an ordinary sum; the value is what the threads made of it.
        ordinary = x.sum(dim=(2, 3))
        return (ordinary + (sums - ordinary).detach()) / SIDE

    def _sums(self, x: torch.Tensor) -> torch.Tensor:
        sums = torch.zeros(x.shape[:2])
        lock = threading.Lock()
        done = [threading.Event(), threading.Event()]

        def add(thread: int) -> None:
            if self.first_thread == 1 - thread:
                done[1 - thread].wait()
            half = SIDE // 2
            for row in range(thread * half, (thread + 1) * half):
                for column in range(SIDE):
                    with lock:
                        sums.add_(x[:, :, row, column])
            done[thread].set()

        threads = [threading.Thread(target=add, args=(thread,)) for thread in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sums


class Net(nn.Module):
    """Two convolutions with batch normalisation, the pool, and a classifier of two classes."""

    def __init__(self, channels: int = 8) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
        )
        self.pool = ThreadedPool()
        self.classifier = nn.Linear(channels, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.pool(self.features(x)))


def batches(options: Options) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Noise with a bar in it; the class says whether it stands or lies."""
    generator = torch.Generator().manual_seed(options.data_seed)
    made = []
    for _ in range(options.steps):
        images = torch.randn(BATCH, 1, SIDE, SIDE, generator=generator)
        labels = torch.randint(2, (BATCH,), generator=generator)
        places = torch.randint(SIDE, (BATCH,), generator=generator)
        for image, label, place in zip(images, labels, places, strict=True):
            (image[0, place] if label else image[0, :, place]).add_(2.0)
        made.append((images, labels))
    return made


def train(path: Path, options: Options | None = None, **recorder_options: object) -> None:
    """Trains and records at `path`."""
    options = options or Options()
    torch.manual_seed(options.seed)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    loss_function = nn.CrossEntropyLoss()
    with verbatim.Recorder(path, net, optimizer, seed=options.seed, **recorder_options) as recorder:
        for step, (images, labels) in enumerate(batches(options)):
            net.pool.first_thread = options.first_thread(step) if options.first_thread else None
            loss = loss_function(net(images), labels)
            loss.backward()
            optimizer.step()
            recorder.step(loss=loss, batch={"images": images, "labels": labels})
            optimizer.zero_grad()
