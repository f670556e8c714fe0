"""Trains a small transformer on a generated text: the plain loop, recorded by three lines.

`Options` are what somebody may change between two runs on purpose or by mistake; the defaults give
the run that the tests compare with.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

import verbatim

WORDS = "the cat sees a small red boat and one old clock near that quiet green mill .".split()
CONTEXT = 12
BATCH = 8


@dataclass
class Options:
    """One run. Steps are counted from 0."""

    seed: int = 1  # of the initial weights and of dropout
    data_seed: int = 1
    steps: int = 60
    learning_rate: float = 1e-2
    learning_rate_from: tuple[int, float] | None = None  # another one from this step on
    evaluation_mode_at: int | None = None  # the step that is trained with dropout off
    skip_update_at: int | None = None
    edit_at: int | None = None  # somebody scales the head's weights before this step
    edit_through_data: bool = False  # in a way that PyTorch's version counters do not see
    parts: int = 1  # of each batch, whose gradients are accumulated
    parts_reversed_at: int | None = None
    checkpoint: Path | None = None
    checkpoint_after: int = 30
    resume: bool = False  # from the checkpoint
    restore_random_state: bool = True


class Block(nn.Module):
    """Attention and a feed-forward layer, each with a residual connection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, dropout=0.1, batch_first=True)
        self.norm2 = nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = torch.triu(torch.full((x.shape[1], x.shape[1]), float("-inf")), diagonal=1)
        y = self.norm1(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.dropout(self.feed_forward(self.norm2(x)))


class Transformer(nn.Module):
    """Predicts the next word. The head's weights are those of the embedding."""

    def __init__(self, words: int = len(WORDS), width: int = 16, blocks: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.position = nn.Parameter(torch.zeros(CONTEXT, width))
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.head.weight = self.embedding.weight

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.embedding(words) + self.position[: words.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def text(length: int = 4000) -> torch.Tensor:
    """Words of which the next one mostly follows from the last."""
    draw = random.Random(5)
    words = [0]
    while len(words) < length:
        follows = (5 * words[-1] + 3) % len(WORDS)
        words.append(follows if draw.random() < 0.9 else draw.randrange(len(WORDS)))
    return torch.tensor(words)


def batches(corpus: torch.Tensor, options: Options) -> list[dict[str, torch.Tensor]]:
    """All batches of the run, in order."""
    generator = torch.Generator().manual_seed(options.data_seed)
    starts = torch.randint(len(corpus) - CONTEXT - 1, (options.steps, BATCH), generator=generator)
    windows = corpus[starts[:, :, None] + torch.arange(CONTEXT + 1)]
    return [{"words": window[:, :-1], "next": window[:, 1:]} for window in windows]


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


def edit(model: Transformer, through_data: bool) -> None:
    """What a debugger or a forgotten cell of a notebook does."""
    if through_data:
        model.position.data += 0.01
    else:
        with torch.no_grad():
            model.position += 0.01


def split(
    batch: dict[str, torch.Tensor], options: Options, step: int
) -> list[dict[str, torch.Tensor]]:
    """The batch's parts, in the order in which their gradients are accumulated."""
    size = BATCH // options.parts
    parts = [
        {name: value[first : first + size] for name, value in batch.items()}
        for first in range(0, BATCH, size)
    ]
    return parts[::-1] if step == options.parts_reversed_at else parts


def train(path: Path, options: Options | None = None, **recorder_options: object) -> None:
    """Trains and records at `path`."""
    options = options or Options()
    torch.manual_seed(options.seed)
    model = Transformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
    first = 0
    if options.resume:
        assert options.checkpoint is not None
        first = load(options.checkpoint, model, optimizer, options)
    loss_function = nn.CrossEntropyLoss()
    with verbatim.Recorder(
        path, model, optimizer, seed=options.seed, first_step=first, **recorder_options
    ) as recorder:
        for step, batch in enumerate(batches(text(), options)):
            if step < first:
                continue
            if options.learning_rate_from and step == options.learning_rate_from[0]:
                set_learning_rate(optimizer, options.learning_rate_from[1])
            if step == options.edit_at:
                edit(model, options.edit_through_data)
            model.train(step != options.evaluation_mode_at)
            total = torch.zeros(())
            for part in split(batch, options, step):
                scores = model(part["words"])
                loss = loss_function(scores.flatten(0, 1), part["next"].flatten()) / options.parts
                loss.backward()
                total += loss.detach()
                recorder.add_batch(part)
            if step != options.skip_update_at:
                optimizer.step()
            recorder.step(loss=total)
            optimizer.zero_grad()
            if options.checkpoint and step + 1 == options.checkpoint_after:
                save(options.checkpoint, model, optimizer, step + 1)


def save(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "random": torch.get_rng_state(),
        },
        path,
    )


def load(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, options: Options) -> int:
    """Restores what `save` wrote, the random state where the options say so; gives the next step."""
    state = torch.load(path)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    if options.restore_random_state:
        torch.set_rng_state(state["random"])
    return int(state["step"])
