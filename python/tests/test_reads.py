"""Writes to layers by something else than an update are found, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from training import Convolutions, small, steps_of, train, update

import verbatim

Write = Callable[[torch.nn.Module], object]


def add_in_place(model: torch.nn.Module) -> None:
    with torch.no_grad():
        model.get_parameter("0.weight").add_(1)


def replace_data(model: torch.nn.Module) -> None:
    weight = model.get_parameter("0.weight")
    weight.data = weight.data + 1


def replace_parameter(model: torch.nn.Module) -> None:
    model[0].weight = torch.nn.Parameter(torch.ones(4, 3))  # type: ignore[index]


def load_by_assignment(model: torch.nn.Module) -> None:
    state = {name: tensor + 1 for name, tensor in model.state_dict().items()}
    model.load_state_dict(state, assign=True)


def evaluate_in_training_mode(model: torch.nn.Module) -> None:
    with torch.no_grad():
        model(torch.randn(5, 3))


def write_behind(model: torch.nn.Module) -> None:
    model.get_parameter("0.weight").data.add_(1)


def found_after(path: Path, write: Write, **options: Any) -> list[tuple[str, ...]]:
    """What is found at each of four steps, where `write` is done between the second and third."""
    model, optimizer = small()
    with verbatim.Recorder(path, model, optimizer, **options) as recorder:
        for step in range(4):
            if step == 2:
                write(model)
            update(model, optimizer)
            recorder.step()
    return [step.outside for step in steps_of(path)]


ALL = ("0.weight", "0.bias", "1.weight", "1.bias", "2.weight", "2.bias")
BUFFERS = ("1.running_mean", "1.running_var", "1.num_batches_tracked")


@pytest.mark.parametrize(
    "write, names",
    [
        (add_in_place, ("0.weight",)),
        (replace_data, ("0.weight",)),
        (replace_parameter, ("0.weight",)),
        (load_by_assignment, ALL + BUFFERS),
        (evaluate_in_training_mode, BUFFERS),
        (lambda model: model(torch.randn(5, 3)), ()),  # a forward pass begins the step
        (lambda model: model.eval(), ()),
        (lambda model: model.double().float(), ()),  # other memory, equal values
    ],
)
@pytest.mark.parametrize("reads", ["versions", "digests"])
def test_writes_that_pytorch_knows_of(
    tmp_path: Path, write: Write, names: tuple[str, ...], reads: str
) -> None:
    assert found_after(tmp_path / "a.db", write, reads=reads) == [(), (), names, ()]


def test_writes_behind_pytorchs_back_need_digests(tmp_path: Path) -> None:
    assert found_after(tmp_path / "a.db", write_behind) == [()] * 4
    found = found_after(tmp_path / "b.db", write_behind, reads="digests")
    assert found == [(), (), ("0.weight",), ()]


def test_off_looks_for_nothing(tmp_path: Path) -> None:
    assert found_after(tmp_path / "a.db", add_in_place, reads="off") == [()] * 4


def test_before_the_first_step(tmp_path: Path) -> None:
    model, optimizer = small()
    with verbatim.Recorder(tmp_path / "a.db", model, optimizer) as recorder:
        add_in_place(model)
        update(model, optimizer)
        recorder.step()
    assert steps_of(tmp_path / "a.db")[0].outside == ("0.weight",)


@pytest.mark.parametrize("reads", ["versions", "digests"])
def test_between_steps_that_are_not_recorded(tmp_path: Path, reads: Any) -> None:
    model, optimizer = small()
    with verbatim.Recorder(tmp_path / "a.db", model, optimizer, every=4, reads=reads) as recorder:
        for step in range(9):
            if step in (2, 5):
                add_in_place(model)
            if step == 8:
                write_behind(model)
            update(model, optimizer)
            recorder.step()
    found = [step.outside for step in steps_of(tmp_path / "a.db")]
    assert found == [(), ("0.weight",), ("0.weight",)]


def test_several_processes_leave_out_buffers(tmp_path: Path) -> None:
    write, options = evaluate_in_training_mode, dict(rank=1, world_size=2)
    model, optimizer = small()
    with verbatim.Recorder(tmp_path / "a.db", model, optimizer, **options) as recorder:  # type: ignore[arg-type]
        write(model)
        update(model, optimizer)
        recorder.step()
        assert recorder.path.endswith("a.rank1.db")
    assert steps_of(tmp_path / "a.rank1.db")[0].outside == ()


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, foreach=True),
        lambda p: torch.optim.SGD(p, 0.1, foreach=False),
        lambda p: torch.optim.SGD(p, 0.1, fused=True),
        lambda p: torch.optim.Adam(p, fused=True),
        lambda p: torch.optim.AdamW(p, amsgrad=True, weight_decay=0.1),
        lambda p: torch.optim.RMSprop(p),
        lambda p: torch.optim.Adagrad(p),
    ],
)
def test_updates_are_not_writes_from_outside(tmp_path: Path, make: Any) -> None:
    model, _ = small()
    optimizer = make(model.parameters())
    with verbatim.Recorder(tmp_path / "a.db", model, optimizer, reads="digests") as recorder:
        for _ in range(3):
            update(model, optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            recorder.step()
    steps = steps_of(tmp_path / "a.db")
    assert [step.outside for step in steps] == [()] * 3
    assert steps[0].layers["0.weight"].weights != steps[1].layers["0.weight"].weights


def test_closures_and_evaluations_are_no_writes(tmp_path: Path) -> None:
    model, _ = small()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3, history_size=2)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss: torch.Tensor = model(torch.ones(3, 3)).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    with verbatim.Recorder(tmp_path / "a.db", model, optimizer) as recorder:
        for _ in range(3):
            optimizer.step(closure)  # type: ignore[arg-type]
            recorder.step()
            model.eval()
            with torch.no_grad():
                model(torch.randn(4, 3))
            model.train()
    steps = steps_of(tmp_path / "a.db")
    assert [step.outside for step in steps] == [()] * 3
    assert steps[0].layers["0.weight"].optimizer_state is not None


def test_what_was_written_is_read_by_the_step(tmp_path: Path) -> None:
    """The record of a run that was written to differs from one that was not."""

    def write(step: int, model: Convolutions) -> None:
        if step == 1:
            with torch.no_grad():
                model.head.bias.mul_(2).add_(1)

    plain = train(tmp_path / "a.db", Convolutions)
    written = train(tmp_path / "b.db", Convolutions, between=write)
    assert plain[0] == written[0]
    assert written[1].outside == ("head.bias",)
    assert plain[1].loss != written[1].loss
