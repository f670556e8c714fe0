#!/usr/bin/env python3
"""Measures what recording a PyTorch training from Python costs.

usage: bench/python_cost.py [--rounds N] [--steps N] [--threads N] [--width N] [--layers N]
                            [--tokens N] [--batch N] [--only REGEX] [--json FILE]

Trains copies of one transformer side by side, in one process: one without a recorder, and one for
each way of recording. In each round every copy trains the same steps on the same batches; a way's
cost is its time over that of the copy without a recorder in the same round. Prints the medians and
ranges of these ratios, for wall-clock and processor time, as Markdown. Needs PyTorch and the
installed package `verbatim`.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

import verbatim

WORDS = 512
# What to record, by name; None: nothing.
WAYS: dict[str, dict[str, Any] | None] = {
    "without": None,
    "again without": None,
    "parameters": {"optimizer_state": False},
    "parameters, every=10": {"optimizer_state": False, "every": 10},
    "parameters, optimizer state": {},
    "parameters, optimizer state, every=10": {"every": 10},
    "parameters, optimizer state, gradients": {"gradients": True},
    'parameters, optimizer state, reads="digests"': {"reads": "digests"},
}


class Transformer(nn.Module):
    """A decoder of PyTorch's own layers."""

    def __init__(self, width: int, layers: int, tokens: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width)
        self.position = nn.Parameter(torch.zeros(tokens, width))
        layer = nn.TransformerEncoderLayer(
            width, width // 64, 4 * width, dropout=0.1, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, WORDS)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(words.shape[1])
        x = self.embedding(words) + self.position
        return self.head(self.layers(x, mask=mask, is_causal=True))


class Training:
    """One copy of the model, and what records it."""

    def __init__(self, model: nn.Module, path: Path, recording: dict[str, Any] | None) -> None:
        self.model = copy.deepcopy(model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.recorder = None
        if recording is not None:
            self.recorder = verbatim.Recorder(path, self.model, self.optimizer, **recording)

    def train(self, batches: list[torch.Tensor]) -> tuple[float, float]:
        """Trains a step per batch; gives seconds of the clock and of the processor."""
        wall, processor = time.perf_counter(), time.process_time()
        for batch in batches:
            scores = self.model(batch[:, :-1])
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
            loss.backward()
            self.optimizer.step()
            if self.recorder is not None:
                self.recorder.step(loss=loss, batch=batch)
            self.optimizer.zero_grad()
        return time.perf_counter() - wall, time.process_time() - processor


def measure(options: argparse.Namespace) -> dict[str, Any]:
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    model = Transformer(options.width, options.layers, options.tokens)
    times: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        trainings = {
            name: Training(model, Path(folder) / f"{number}.db", recording)
            for number, (name, recording) in enumerate(WAYS.items())
            if recording is None or re.search(options.only, name)
        }
        for round_number in range(options.rounds + 1):
            shape = (options.steps, options.batch, options.tokens + 1)
            batches = list(torch.randint(WORDS, shape))
            names = list(trainings)
            if round_number % 2:
                names.reverse()
            for name in names:
                taken = trainings[name].train(batches)
                if round_number:  # the first one warms up
                    times.setdefault(name, []).append(taken)
        for training in trainings.values():
            if training.recorder is not None:
                training.recorder.close()
    return {
        "torch": torch.__version__,
        "threads": options.threads,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "tokens_per_batch": options.batch * options.tokens,
        "steps_per_round": options.steps,
        "seconds": {name: times[name] for name in trainings},
    }


def ratios(seconds: dict[str, list[tuple[float, float]]], name: str, clock: int) -> list[float]:
    pairs = zip(seconds[name], seconds["without"], strict=True)
    return [mine[clock] / plain[clock] for mine, plain in pairs]


def print_table(result: dict[str, Any]) -> None:
    plain = [wall for wall, _ in result["seconds"]["without"]]
    print(
        f"{result['parameters'] / 1e6:.1f} million parameters, {result['tokens_per_batch']:,} "
        f"tokens per batch, {result['threads']} threads, {len(plain)} rounds of "
        f"{result['steps_per_round']} steps; a step without a recorder takes "
        f"{1e3 * statistics.median(plain) / result['steps_per_round']:.0f} ms\n"
    )
    print("| recorded | processor time over without | wall-clock time over without |")
    print("|---|---|---|")
    for name in result["seconds"]:
        if name == "without":
            continue
        cells = []
        for clock in (1, 0):
            values = ratios(result["seconds"], name, clock)
            middle = statistics.median(values)
            cells.append(f"{middle:.4f} ({min(values):.3f} to {max(values):.3f})")
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=10, help="of each copy in each round")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch's operators")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=128, help="of a sequence")
    parser.add_argument("--batch", type=int, default=8, help="sequences of a batch")
    parser.add_argument("--only", default="", help="ways of recording whose name matches")
    parser.add_argument("--json", type=Path, help="writes every round's seconds")
    options = parser.parse_args()
    result = measure(options)
    print_table(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
