"""A real loop under Accelerate records through its recorder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from trainings import ranks

import verbatim

accelerate = pytest.importorskip("accelerate", reason="needs accelerate")

from verbatim.accelerate import Recorder  # noqa: E402


def train(path: Path, *, accumulate: int = 1, data_seed: int = 1, **options: Any) -> Path:
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=accumulate)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Dropout(0.1), nn.Linear(7, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(data_seed)
    data = torch.utils.data.TensorDataset(
        torch.randn(48, 5, generator=generator), torch.randint(2, (48,), generator=generator)
    )
    loader = torch.utils.data.DataLoader(data, batch_size=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    with Recorder(accelerator, path, model, optimizer, seed=1, **options) as recorder:
        for inputs, labels in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(inputs), labels)
                accelerator.backward(loss)
                optimizer.step()
                recorder.step(loss=loss, batch=[inputs, labels])
                optimizer.zero_grad()
    return path


def train_on_a_rank(path: Path, options: ranks.Options) -> None:
    train(path, check_replicas=1)


def test_two_loops_are_equal(tmp_path: Path) -> None:
    a = train(tmp_path / "a.db", gradients=True)
    b = train(tmp_path / "b.db", gradients=True)
    assert verbatim.diff(a, b)["verdict"] == "equal"
    assert verbatim.verify(a)["verdict"] == "intact"
    with verbatim.open(a) as run:
        assert run.status == "complete"
        steps = list(run.steps)
        assert [layer.name for layer in run.layers][:2] == ["0.weight", "0.bias"]
    assert [step.step for step in steps] == list(range(12))
    assert steps[3].settings["lr"] == 1e-2
    assert steps[3].layers["0.weight"].gradients is not None
    assert steps[3].layers["0.weight"].optimizer_state is not None


def test_accumulated_gradients_are_one_step(tmp_path: Path) -> None:
    a = train(tmp_path / "a.db", accumulate=3)
    with verbatim.open(a) as run:
        steps = list(run.steps)
        assert run.spec["settings"]["gradient_accumulation_steps"] == 3
    assert [step.step for step in steps] == list(range(4))
    assert all(len(step.parts) == 3 for step in steps)
    assert all(step.loss is not None for step in steps)


def test_other_data_is_found(tmp_path: Path) -> None:
    a = train(tmp_path / "a.db")
    b = train(tmp_path / "b.db", data_seed=2)
    difference = verbatim.diff(a, b)["first_difference"]
    assert (difference["class"], difference["step"]) == ("batch bytes", 0)


def test_every_counts_updates(tmp_path: Path) -> None:
    a = train(tmp_path / "a.db", accumulate=2, every=2)
    with verbatim.open(a) as run:
        assert [step.step for step in run.steps] == [0, 2, 4]


def test_ranks_have_records_of_their_own(tmp_path: Path) -> None:
    records = ranks.on_two_ranks(train_on_a_rank, tmp_path / "a", ranks.Options())
    assert not list((tmp_path / "a").glob("error.*"))
    assert verbatim.diff(*records, "--replicas")["verdict"] == "equal"
    for path in records:
        assert verbatim.verify(path)["verdict"] == "intact"
        with verbatim.open(path) as run:
            assert len(run) == 6
            assert [layer.name for layer in run.layers][0] == "0.weight"
