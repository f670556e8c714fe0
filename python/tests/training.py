"""What the tests of the recorder train: small networks, and loops of a few steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

import verbatim


class Transformer(torch.nn.Module):
    """Two layers of a language model whose embedding and head are tied."""

    def __init__(self, words: int = 17, width: int = 8) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(words, width)
        block = torch.nn.TransformerEncoderLayer(width, 2, 16, dropout=0.1, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(block, 2)
        self.head = torch.nn.Linear(width, words, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.encoder(self.embedding(words)))
        return logits

    @staticmethod
    def batch() -> tuple[torch.Tensor, torch.Tensor]:
        words = torch.randint(17, (4, 6))
        return words[:, :-1], words[:, 1:]

    def loss(self, batch: Any) -> torch.Tensor:
        logits = self(batch[0])
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[1].flatten())


class Convolutions(torch.nn.Module):
    """A convolution with batch normalisation and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU()
        )
        self.dropout = torch.nn.Dropout(0.2)
        self.head = torch.nn.Linear(4, 5)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.dropout(self.features(images).mean((2, 3))))
        return scores

    @staticmethod
    def batch() -> dict[str, torch.Tensor]:
        return {"images": torch.randn(4, 3, 7, 7), "labels": torch.randint(5, (4,))}

    def loss(self, batch: Any) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(self(batch["images"]), batch["labels"])


def small() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """A network with parameters, buffers and tied nothing; Adam."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)
    )
    return model, torch.optim.Adam(model.parameters(), lr=0.1)


def update(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> torch.Tensor:
    """One step of `small`."""
    optimizer.zero_grad()
    loss: torch.Tensor = model(torch.randn(6, 3)).square().mean()
    loss.backward()
    optimizer.step()
    return loss


def train(
    path: Path,
    make: Callable[[], Any] = Transformer,
    steps: int = 4,
    seed: int = 7,
    between: Callable[[int, Any], None] | None = None,
    **options: Any,
) -> list[verbatim.Step]:
    """Trains and records a model of this file from its seed, and reads the record."""
    torch.manual_seed(seed)
    model = make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    with verbatim.Recorder(path, model, optimizer, seed=seed, **options) as recorder:
        for step in range(steps):
            if between is not None:
                between(step, model)
            batch = model.batch()
            loss = model.loss(batch)
            loss.backward()
            optimizer.step()
            recorder.step(loss=loss, batch=batch)
            optimizer.zero_grad()
    return steps_of(path)


def steps_of(path: Path) -> list[verbatim.Step]:
    """All steps of a record."""
    with verbatim.open(path) as run:
        return list(run.steps)


def random_tensors(seed: int, count: int) -> Iterator[torch.Tensor]:
    """Tensors of random shapes, element types and strides."""
    generator = torch.Generator().manual_seed(seed)
    dtypes = [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.uint8]
    for _ in range(count):
        rank = int(torch.randint(4, (), generator=generator))
        shape = torch.randint(5, (rank,), generator=generator).tolist()
        dtype = dtypes[int(torch.randint(len(dtypes), (), generator=generator))]
        tensor = torch.randint(0, 2, shape, generator=generator).to(dtype)
        if rank >= 2 and bool(torch.randint(2, (), generator=generator)):
            tensor = tensor.transpose(0, 1)
        yield tensor
