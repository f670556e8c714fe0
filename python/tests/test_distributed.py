"""Runs of two ranks: a record each, replicas compared at the step and afterwards, and shards."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from trainings import ranks

import verbatim
from verbatim import distributed


def test_paths_of_ranks() -> None:
    assert distributed.rank_path("runs/a.db", 0, 1) == Path("runs/a.db")
    assert distributed.rank_path("runs/a.db", 3, 4) == Path("runs/a.rank3.db")
    assert distributed.rank_path("runs/a", 1, 2) == Path("runs/a.rank1")
    assert (distributed.rank(), distributed.world_size()) == (0, 1)


def test_wrappers_are_looked_through() -> None:
    model = nn.Linear(2, 2)
    assert distributed.unwrap(model) is model
    assert distributed.unwrap(nn.DataParallel(model)) is model
    assert distributed.unwrap(torch.compile(nn.DataParallel(model))) is model


def test_check_needs_a_process_group(tmp_path: Path) -> None:
    model = nn.Linear(2, 2)
    with verbatim.Recorder(tmp_path / "a.db", model) as recorder:
        model(torch.ones(2))
        recorder.step()
        with pytest.raises(verbatim.UsageError, match="init_process_group"):
            distributed.check_replicas(recorder)


def test_replicas_are_equal(tmp_path: Path) -> None:
    a = ranks.on_two_ranks(ranks.replicated, tmp_path / "a", ranks.Options(check=True))
    assert not list((tmp_path / "a").glob("error.*"))
    # No parameter differs; statistics of batches do until the next forward pass.
    difference = verbatim.diff(*a, "--replicas")["first_difference"]
    assert difference["layer_name"] == "norm.running_mean"
    assert difference["cause"].startswith("no parameter differs")
    for number, path in enumerate(a):
        assert verbatim.verify(path)["verdict"] == "intact"
        with verbatim.open(path) as run:
            assert len(run) == 12
            assert run.spec["rank"] == number
            assert run.spec["world_size"] == 2
            assert [layer.name for layer in run.layers][0] == "features.weight"
    # The same run again, rank by rank.
    b = ranks.on_two_ranks(ranks.replicated, tmp_path / "b", ranks.Options())
    for one, other in zip(a, b, strict=True):
        assert verbatim.diff(one, other)["verdict"] == "equal"


def test_a_parameter_left_out_is_named_at_the_step(tmp_path: Path) -> None:
    options = ranks.Options(check=True, left_out="classifier.bias")
    ranks.on_two_ranks(ranks.replicated, tmp_path / "a", options)
    for rank in range(2):
        error = (tmp_path / "a" / f"error.{rank}").read_text()
        assert error.startswith(
            "ReplicasDifferError: replicas differ after step 0: layer classifier.bias is "
        )
    with verbatim.open(tmp_path / "a" / "run.rank0.db") as run:
        assert run.status == "interrupted"
        assert "classifier.bias" in run.status_detail


def test_a_parameter_left_out_is_named_afterwards(tmp_path: Path) -> None:
    options = ranks.Options(left_out="classifier.bias")
    a = ranks.on_two_ranks(ranks.replicated, tmp_path / "a", options)
    difference = verbatim.diff(*a, "--replicas")["first_difference"]
    assert difference["class"] == "computation"
    assert difference["step"] == 0
    assert difference["layer_name"] == "classifier.bias"


def test_shards_are_recorded_and_compared(tmp_path: Path) -> None:
    a = ranks.on_two_ranks(ranks.sharded, tmp_path / "a", ranks.Options())
    b = ranks.on_two_ranks(ranks.sharded, tmp_path / "b", ranks.Options())
    for one, other in zip(a, b, strict=True):
        assert verbatim.verify(one)["verdict"] == "intact"
        assert verbatim.diff(one, other)["verdict"] == "equal"
    with verbatim.open(a[0]) as run:
        ops = {layer.name: layer.op for layer in run.layers}
        states = list(run.steps)[-1].layers["features.weight"].optimizer_state
    # Nine rows are cut into five and four; of the local ones the digest is.
    assert "Shard(dim=0)" in ops["features.weight"]
    assert "[5,6]" in ops["features.weight"]
    assert states is not None


def test_a_difference_between_sharded_runs_is_found(tmp_path: Path) -> None:
    a = ranks.on_two_ranks(ranks.sharded, tmp_path / "a", ranks.Options())
    other = ranks.Options(learning_rate_from=(7, 1e-3))
    b = ranks.on_two_ranks(ranks.sharded, tmp_path / "b", other)
    for one, changed in zip(a, b, strict=True):
        difference = verbatim.diff(one, changed)["first_difference"]
        assert (difference["class"], difference["step"]) == ("hyper-parameters", 7)
