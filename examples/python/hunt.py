#!/usr/bin/env python3
"""Trains a small classifier of sentences. Two runs of it differ; docs/python.md hunts down why.

usage: examples/python/hunt.py RUN.db [--fixed 0|1|2|3]

The seed is set, the data are the same, the loss curves look alike, and still no two runs end with
the same weights: three mistakes see to that. --fixed says how many of them are mended, in the order
in which the records show them.
"""

from __future__ import annotations

import argparse
import random
import time

import torch
from torch import nn

import verbatim

PEOPLE = ["Ada", "Emil", "Greta", "Jonas", "Mina", "Otto"]
GLAD = ["sings", "laughs", "dances", "smiles", "cheers"]
SAD = ["cries", "sighs", "frowns", "mourns", "weeps"]
PLACES = ["home", "here", "outside", "there", "upstairs"]
STEPS = 200
BATCH = 16


def sentences() -> list[tuple[list[str], int]]:
    """Sentences, and whether they are glad: who does what, and not the opposite."""
    made = []
    for person in PEOPLE:
        for place in PLACES:
            for verb in GLAD + SAD:
                glad = verb in GLAD
                made.append(([person, verb, place], int(glad)))
                made.append(([person, "never", verb, place], int(not glad)))
    return made


def vocabulary(data: list[tuple[list[str], int]], fixed: bool) -> dict[str, int]:
    """A number for every word; 0 fills up short sentences."""
    words = {word for sentence, _ in data for word in sentence}
    # Mistake 1: a set of strings is in another order in every process.
    return {word: number + 1 for number, word in enumerate(sorted(words) if fixed else words)}


class Classifier(nn.Module):
    """An embedding, residual blocks of which some are skipped in training, and a vote."""

    def __init__(self, words: int, width: int = 32, blocks: int = 3) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words + 1, width, padding_idx=0)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(4 * width, 64), nn.ReLU(), nn.Linear(64, 4 * width))
            for _ in range(blocks)
        )
        self.head = nn.Linear(4 * width, 2)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.embedding(words).flatten(1)
        for block in self.blocks:
            # Mistake 2: Python's generator is not the one that torch.manual_seed sets.
            if not self.training or random.random() < 0.8:
                x = x + block(x)
        return self.head(x)


def encode(sentence: list[str], numbers: dict[str, int]) -> list[int]:
    return ([numbers[word] for word in sentence] + [0, 0, 0, 0])[:4]


def train(path: str, fixed: int) -> float:
    """Trains and records at `path`; gives the last loss."""
    torch.manual_seed(1)
    if fixed >= 2:
        random.seed(1)
    data = sentences()
    numbers = vocabulary(data, fixed >= 1)
    words = torch.tensor([encode(sentence, numbers) for sentence, _ in data])
    labels = torch.tensor([label for _, label in data])
    model = Classifier(len(numbers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    began = time.monotonic()
    with verbatim.Recorder(path, model, optimizer, seed=1, name="hunt") as recorder:
        for step in range(STEPS):
            # Mistake 3: the rate falls when the time is half over, not when the steps are.
            late = step >= 100 if fixed >= 3 else time.monotonic() - began > 0.2
            optimizer.param_groups[0]["lr"] = 0.002 if late else 0.02
            chosen = torch.randint(len(data), (BATCH,))
            batch = {"words": words[chosen], "labels": labels[chosen]}
            loss = nn.functional.cross_entropy(model(batch["words"]), batch["labels"])
            loss.backward()
            optimizer.step()
            recorder.step(loss=loss, batch=batch)
            optimizer.zero_grad()
    return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("record", metavar="RUN.db")
    parser.add_argument("--fixed", type=int, choices=range(4), default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    loss = train(options.record, options.fixed)
    print(f"recorded {STEPS} steps in {options.record}, last loss {loss:.3f}")


if __name__ == "__main__":
    main()
