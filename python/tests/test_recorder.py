"""What a record says of a run is what the loop did."""

from __future__ import annotations

import copy
import math
import os
import pickle
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from training import Convolutions, Transformer, small, steps_of, train, update

import verbatim
from verbatim import environment
from verbatim.digests import Digester


@pytest.mark.parametrize("make", [Transformer, Convolutions])
@pytest.mark.parametrize("options", [{}, {"reads": "digests", "gradients": True}, {"threads": 3}])
def test_recorded_twice_is_equal(
    tmp_path: Path, make: Callable[[], Any], options: dict[str, Any]
) -> None:
    first = train(tmp_path / "a.db", make, **options)
    second = train(tmp_path / "b.db", make, **options)
    assert first == second
    assert len(first) == 4
    assert not any(step.outside for step in first)


def test_recording_changes_no_result(tmp_path: Path) -> None:
    model, optimizer = small()
    losses = [update(model, optimizer) for _ in range(5)]
    watched, optimizer = small()
    options: Any = dict(gradients=True, reads="digests", activations=["0"])
    with verbatim.Recorder(tmp_path / "a.db", watched, optimizer, **options) as recorder:
        for loss in losses:
            assert torch.equal(update(watched, optimizer), loss)
            recorder.step()
    for before, after in zip(model.state_dict().values(), watched.state_dict().values()):
        assert torch.equal(before, after)


def test_other_seeds_and_data_differ(tmp_path: Path) -> None:
    def other_batch(step: int, model: Any) -> None:
        if step == 2:
            torch.rand(1)

    first = train(tmp_path / "a.db")
    seeds = train(tmp_path / "b.db", seed=8)
    draws = train(tmp_path / "c.db", between=other_batch)
    assert first[0].random_state != seeds[0].random_state
    assert first[0].layers != seeds[0].layers
    assert first[:2] == draws[:2]
    assert first[2].batch != draws[2].batch
    assert first[2].random_state != draws[2].random_state


def test_digests_are_those_of_the_tensors(tmp_path: Path) -> None:
    model, optimizer = small()
    initial = copy.deepcopy(model.state_dict())
    digester = Digester()
    with verbatim.Recorder(tmp_path / "a.db", model, optimizer, gradients=True) as recorder:
        update(model, optimizer)
        recorder.step()
        tensors = [(name, model.state_dict()[name]) for name in recorder.layer_names]
        weights = [digest.hex() for digest in digester.tensors(tensors)]
        assert [digest.hex() for digest in recorder.last_weights.values()] == weights
    weight = model.get_parameter("0.weight")
    state = [[(key, optimizer.state[weight][key]) for key in ("exp_avg", "exp_avg_sq", "step")]]
    with verbatim.open(tmp_path / "a.db") as run:
        (step,) = run.steps
        assert [access.weights for access in step.layers.values()] == weights
        first = step.layers["0.weight"]
        assert first.optimizer_state == digester.named(state)[0].hex()
        assert weight.grad is not None
        assert first.gradients == digester.tensors([("gradient", weight.grad)])[0].hex()
        buffer = step.layers["1.running_mean"]
        assert buffer.optimizer_state is None and buffer.gradients is None
        initials = [(layer.name, initial[layer.name]) for layer in run.layers]
        found = [layer.initial for layer in run.layers]
        assert found == [digest.hex() for digest in digester.tensors(initials)]


@pytest.mark.parametrize(
    "loss, bits",
    [
        (0.1, 0x3DCCCCCD),
        (torch.tensor(0.1, dtype=torch.float64), 0x3DCCCCCD),
        (torch.tensor([[1.5]], dtype=torch.bfloat16), 0x3FC00000),
        (-0.0, 0x80000000),
        (3, 0x40400000),
        (math.inf, 0x7F800000),
        (1e300, 0x7F800000),
    ],
)
def test_losses_are_kept_bit_for_bit(tmp_path: Path, loss: Any, bits: int) -> None:
    with verbatim.Recorder(tmp_path / "a.db") as recorder:
        recorder.step(loss=loss)
    (step,) = steps_of(tmp_path / "a.db")
    assert step.loss is not None
    assert struct.unpack("<I", struct.pack("<f", step.loss))[0] == bits


def test_a_record_without_model_has_losses_and_batches(tmp_path: Path) -> None:
    with verbatim.Recorder(tmp_path / "a.db", settings={"data": "x"}) as recorder:
        recorder.step(loss=1.0, batch=[1, 2])
        recorder.step(batch=[2, 1])
        recorder.step()
    with verbatim.open(tmp_path / "a.db") as run:
        one, two, three = run.steps
        assert run.facts["record_level"] == "losses"
        assert run.spec["settings"] == {"data": "x"}
    assert (one.loss, two.loss, three.batch) == (1.0, None, None)
    assert one.batch != two.batch
    assert one.layers == {}


def test_settings_are_those_of_the_update(tmp_path: Path) -> None:
    model, _ = small()
    optimizer = torch.optim.SGD(
        [{"params": model[0].parameters(), "lr": 0.5}, {"params": model[2].parameters()}],  # type: ignore[index]
        lr=0.25,
        momentum=0.9,
    )
    optimizer.param_groups[0]["param_names"] = ["weight", "bias"]  # of newer PyTorch
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    with verbatim.Recorder(tmp_path / "a.db", model, optimizer) as recorder:
        for _ in range(2):
            update(model, optimizer)
            schedule.step()
            recorder.step()
        model[1].eval()  # type: ignore[index]
        update(model, optimizer)
        recorder.step()
    settings = [step.settings for step in steps_of(tmp_path / "a.db")]
    assert [one["0.lr"] for one in settings] == [0.5, 0.25, 0.125]
    assert [one["1.lr"] for one in settings] == [0.25, 0.125, 0.0625]
    assert settings[0]["1.momentum"] == 0.9 and settings[0]["0.nesterov"] is False
    assert not any("param_names" in key for key in settings[0])
    assert "eval_modules" not in settings[1]
    assert settings[2]["eval_modules"] == "1"


def test_several_models_and_optimizers_have_names(tmp_path: Path) -> None:
    models = {name: torch.nn.Linear(2, 2) for name in ("maker", "judge")}
    optimizers = {name: torch.optim.SGD(m.parameters(), lr=0.1) for name, m in models.items()}
    with verbatim.Recorder(tmp_path / "a.db", models, optimizers) as recorder:
        for _ in range(2):
            models["judge"](models["maker"](torch.ones(1, 2))).sum().backward()
            for optimizer in optimizers.values():
                optimizer.step()
            recorder.step()
        names = recorder.layer_names
    assert names == ("maker.weight", "maker.bias", "judge.weight", "judge.bias")
    step = steps_of(tmp_path / "a.db")[0]
    assert step.settings["judge.lr"] == 0.1
    assert list(step.layers) == list(names)


def test_every_and_numbers_of_steps(tmp_path: Path) -> None:
    model, optimizer = small()
    options: Any = dict(every=3, first_step=4, steps=8)
    with verbatim.Recorder(tmp_path / "a.db", model, optimizer, **options) as recorder:
        recorded = []
        for _ in range(8):
            update(model, optimizer)
            recorded.append(recorder.step())
        assert (recorder.last_step, recorder.recorded) == (11, False)
    assert recorded == [step % 3 == 0 for step in range(4, 12)]
    with verbatim.open(tmp_path / "a.db") as run:
        assert [(step.seq, step.step) for step in run.steps] == [(0, 6), (1, 9)]
        assert run.facts["steps_planned"] == 2
        assert run.step(9).seq == 1
        with pytest.raises(verbatim.UsageError, match="has no step 7"):
            run.step(7)


def test_a_trainer_may_number_its_steps(tmp_path: Path) -> None:
    with verbatim.Recorder(tmp_path / "a.db", every=5) as recorder:
        assert [recorder.step(step=n) for n in (1, 5, 7, 10, 13)] == [False, True, False, True, False]
        with pytest.raises(verbatim.UsageError, match="step 13 after step 13"):
            recorder.step(step=13)
        with pytest.raises(verbatim.UsageError, match="step is 1.5"):
            recorder.step(step=1.5)  # type: ignore[arg-type]
    assert [step.step for step in steps_of(tmp_path / "a.db")] == [5, 10]


def test_numbers_that_come_as_a_surprise(tmp_path: Path) -> None:
    model, optimizer = small()

    def step(recorder: verbatim.Recorder, number: int) -> bool:
        recorder.add_batch([number])
        update(model, optimizer)
        return recorder.step(step=number)

    with verbatim.Recorder(tmp_path / "a.db", model, optimizer, every=4) as recorder:
        # From the first number and from the second nothing can be foreseen, then 6 and 8.
        assert [step(recorder, n) for n in (2, 4, 6, 8)] == [False, True, False, True]
        assert not step(recorder, 11)
        assert step(recorder, 12)  # irregular by now: always prepared
    assert all(one.batch and one.random_state for one in steps_of(tmp_path / "a.db"))
    with verbatim.Recorder(tmp_path / "b.db", model, optimizer, every=4) as recorder:
        for number in (1, 2, 3):
            assert not step(recorder, number)
        assert step(recorder, 4)
        with pytest.raises(verbatim.UsageError, match="step 8: after step 4 another number"):
            step(recorder, 8)
    assert [one.step for one in steps_of(tmp_path / "b.db")] == [4]


def test_parts_of_a_batch(tmp_path: Path) -> None:
    with verbatim.Recorder(tmp_path / "a.db") as recorder:
        for parts in ([[1], [2]], [[2], [1]], [[1]]):
            for part in parts[:-1]:
                recorder.add_batch(part)
            recorder.step(batch=parts[-1])
    one, two, three = steps_of(tmp_path / "a.db")
    assert one.parts == two.parts[::-1] and len(one.parts) == 2
    assert one.batch != two.batch
    assert three.parts == () and three.batch == one.parts[0]


def test_captured_tensors_and_activations(tmp_path: Path) -> None:
    model, optimizer = small()
    options: Any = dict(activations=["0", "2"], tensors=["out"], every=2)
    with verbatim.Recorder(tmp_path / "a.db", model, optimizer, **options) as recorder:
        for _ in range(4):
            inputs = torch.randn(6, 3)
            hidden = model[0](inputs)  # type: ignore[index]
            loss = model(inputs).mean()
            loss.backward()
            with torch.no_grad():
                model(inputs)  # an evaluation
            optimizer.step()
            recorder.capture("out", hidden)
            recorder.step(tensors={"out": loss})
    one, two = steps_of(tmp_path / "a.db")
    assert [(c.name, c.occurrence) for c in one.captured] == [
        ("0", 0), ("2", 0), ("out", 0), ("0", 1), ("out", 1)
    ]  # fmt: skip
    assert one.captured[0].digest == one.captured[2].digest == one.captured[3].digest
    assert [c.name for c in two.captured] == [c.name for c in one.captured]


def test_random_state_covers_all_generators(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    draws: list[Callable[[], object]] = [
        lambda: None, lambda: torch.rand(1), random.random, numpy.random.rand, lambda: None
    ]  # fmt: skip
    model, optimizer = small()
    with verbatim.Recorder(tmp_path / "a.db", model, optimizer) as recorder:
        for draw in draws:
            torch.manual_seed(1), random.seed(1), numpy.random.seed(1)
            recorder.begin()
            draw()
            model(torch.ones(6, 3)).sum().backward()
            optimizer.step()
            recorder.step()
    states = [step.random_state for step in steps_of(tmp_path / "a.db")]
    assert states[0] == states[4]
    assert len(set(states)) == 4


def test_generators_that_nobody_draws_from_do_not_matter(tmp_path: Path) -> None:
    states = []
    for seed in (1, 2):
        random.seed(seed)
        model, optimizer = small()
        with verbatim.Recorder(tmp_path / f"{seed}.db", model, optimizer) as recorder:
            update(model, optimizer)
            recorder.step()
        states += [step.random_state for step in steps_of(tmp_path / f"{seed}.db")]
    assert states[0] == states[1] is not None


def test_frozen_parameters_and_plain_sgd_have_no_state(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 1)
    model.bias.requires_grad_(False)
    optimizer = torch.optim.SGD([model.weight], lr=0.1)
    with verbatim.Recorder(tmp_path / "a.db", model, optimizer, gradients=True) as recorder:
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        recorder.step()
    (step,) = steps_of(tmp_path / "a.db")
    assert step.layers["weight"].optimizer_state is None
    assert step.layers["weight"].gradients is not None
    assert step.layers["bias"].gradients is None


def test_gradients_are_those_of_the_update_even_after_zero_grad(tmp_path: Path) -> None:
    model, optimizer = small()
    with verbatim.Recorder(tmp_path / "a.db", model, optimizer, gradients=True) as recorder:
        update(model, optimizer)
        optimizer.zero_grad()
        recorder.step()
    (step,) = steps_of(tmp_path / "a.db")
    assert step.layers["0.weight"].gradients is not None


def test_an_optimizer_around_another_is_recorded_where_it_has_a_state(tmp_path: Path) -> None:
    class Around(torch.optim.Optimizer):
        def __init__(self, optimizer: torch.optim.Optimizer) -> None:
            self.optimizer = optimizer
            super().__init__([{"params": optimizer.param_groups[0]["params"]}], {"pull": 0.5})

        def step(self, closure: Any = None) -> None:
            self.optimizer.step(closure)
            for parameter in self.param_groups[0]["params"]:
                self.state[parameter]["slow"] = parameter.detach().clone()

    class Thin(Around):
        def __init__(self, optimizer: torch.optim.Optimizer) -> None:
            super().__init__(optimizer)
            self.state, self.param_groups = optimizer.state, optimizer.param_groups

    found = {}
    for kind in (Around, Thin):
        model, optimizer = small()
        around = kind(optimizer)
        with verbatim.Recorder(tmp_path / f"{kind.__name__}.db", model, around) as recorder:
            update(model, around)
            recorder.step()
        found[kind] = steps_of(tmp_path / f"{kind.__name__}.db")[0]
    assert (found[Around].settings["pull"], found[Thin].settings["lr"]) == (0.5, 0.1)
    assert found[Around].layers["0.weight"].optimizer_state is not None


def test_gradients_are_those_of_each_optimizers_last_update(tmp_path: Path) -> None:
    models = {name: torch.nn.Linear(2, 1, bias=False) for name in ("maker", "judge")}
    optimizers = {name: torch.optim.SGD(m.parameters(), lr=0.1) for name, m in models.items()}
    options: Any = dict(gradients=True, random_state=False, reads="off")
    gradients: dict[str, torch.Tensor] = {}

    def update_one(name: str, factor: float) -> None:
        optimizers[name].zero_grad()
        (models[name](torch.ones(1, 2)).sum() * factor).backward()
        optimizers[name].step()
        gradients[name] = torch.full((1, 2), factor)

    with verbatim.Recorder(tmp_path / "a.db", models, optimizers, **options) as recorder:
        for step in range(2):
            # While the judge is updated the maker's gradients are those of the step before.
            for name, factor in (("judge", 2.0), ("judge", 3.0), ("maker", 4.0)):
                update_one(name, factor + 10 * step)
            recorder.step()
    last = steps_of(tmp_path / "a.db")[1].layers
    for name, gradient in gradients.items():
        digest = Digester().tensors([(name, gradient)])[0].hex()
        assert last[f"{name}.weight"].gradients == digest


def test_the_end_of_a_run(tmp_path: Path) -> None:
    def status(name: str) -> tuple[str, str]:
        with verbatim.open(tmp_path / name) as run:
            return run.status, run.status_detail

    with pytest.raises(ValueError), verbatim.Recorder(tmp_path / "a.db"):
        raise ValueError("the loss is NaN")
    assert status("a.db") == ("interrupted", "ValueError: the loss is NaN")
    with pytest.raises(KeyboardInterrupt), verbatim.Recorder(tmp_path / "b.db"):
        raise KeyboardInterrupt
    assert status("b.db") == ("interrupted", "KeyboardInterrupt")
    recorder = verbatim.Recorder(tmp_path / "c.db")
    recorder.close("failed", "the disk is on fire")
    recorder.close()
    assert status("c.db") == ("failed", "the disk is on fire")
    left = verbatim.Recorder(tmp_path / "d.db")
    left.step(loss=1.0)
    with pytest.warns(ResourceWarning, match="was not closed"):
        del left
    assert status("d.db") == ("running", "")
    assert len(steps_of(tmp_path / "d.db")) == 1


def test_copies_of_a_model_are_not_recorded(tmp_path: Path) -> None:
    model, optimizer = small()
    with verbatim.Recorder(tmp_path / "a.db", model, optimizer, activations=["0"]) as recorder:
        average = copy.deepcopy(model)
        loaded = pickle.loads(pickle.dumps(model))
        average(torch.randn(2, 3)), loaded(torch.randn(2, 3))
        with pytest.raises(verbatim.UsageError, match="no forward pass of the model was seen"):
            recorder.step()
        update(model, optimizer)
        recorder.step()
    assert len(steps_of(tmp_path / "a.db")[0].captured) == 1


def test_a_closed_recorder_leaves_no_hooks(tmp_path: Path) -> None:
    model, optimizer = small()
    recorder = verbatim.Recorder(tmp_path / "a.db", model, optimizer, activations=["0"])
    recorder.close()
    for module in model.modules():
        assert not module._forward_hooks and not module._forward_pre_hooks
    update(model, optimizer)


def test_compiled_models(tmp_path: Path) -> None:
    model, optimizer = small()
    compile: Any = torch.compile
    compiled = compile(model, backend="eager")
    with verbatim.Recorder(tmp_path / "a.db", compiled, optimizer) as recorder:
        for _ in range(3):
            update(compiled, optimizer)
            recorder.step()
        assert recorder.layer_names[0] == "0.weight"
    model, optimizer = small()
    model.compile(backend="eager")
    with verbatim.Recorder(tmp_path / "b.db", model, optimizer, activations=["0"]) as recorder:
        for _ in range(3):
            update(model, optimizer)
            recorder.step()
    assert [len(step.captured) for step in steps_of(tmp_path / "b.db")] == [1, 1, 1]


def test_environment_is_recorded(tmp_path: Path) -> None:
    with verbatim.Recorder(tmp_path / "a.db", name="first", seed=2**64 - 1):
        pass
    with verbatim.open(tmp_path / "a.db") as run:
        assert run.environment["libtorch.version"] == torch.__version__
        assert run.environment["cpu.instruction_sets"]
        assert (run.name, run.seed, len(run)) == ("first", 2**64 - 1, 0)
        assert run.facts["command_line"].split()[0].endswith(("python", "python3"))
        assert run.facts["device"] == "cpu"
        assert os.fspath(tmp_path / "a.db") == run.path


def test_environment_where_precisions_were_set_by_the_newer_interface(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backends: Any = torch.backends
    if not hasattr(backends.mkldnn, "matmul"):
        pytest.skip("this PyTorch has no fp32_precision")

    def refuse() -> str:
        raise RuntimeError("a mix of the legacy and new APIs")

    monkeypatch.setattr(torch, "get_float32_matmul_precision", refuse)
    facts = environment.describe(torch.device("cpu"))
    assert facts["float32_matmul_precision"].startswith("mkldnn ")


def test_frames_of_pandas(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    train(tmp_path / "a.db", steps=3)
    with verbatim.open(tmp_path / "a.db") as run:
        steps, layers = run.to_pandas(), run.layers_to_pandas()
        assert steps.index.tolist() == [0, 1, 2]
        assert steps["lr"].tolist() == [0.01] * 3
        assert len(layers) == 3 * len(run.layers)
    model, optimizer = small()
    optimizer.param_groups[0].update(step=7, loss=8)
    with verbatim.Recorder(tmp_path / "c.db", model, optimizer) as recorder:
        loss = update(model, optimizer)
        recorder.step(loss=loss)
    with verbatim.open(tmp_path / "c.db") as run:
        frame = run.to_pandas()
        assert frame.index.tolist() == [0] and frame["loss"].tolist() == [loss.item()]
    with verbatim.Recorder(tmp_path / "b.db"):
        pass
    with verbatim.open(tmp_path / "b.db") as run:
        assert len(run.to_pandas()) == 0 and len(run.layers_to_pandas()) == 0


def test_a_growing_record_can_be_read(tmp_path: Path) -> None:
    recorder = verbatim.Recorder(tmp_path / "a.db")
    with verbatim.open(tmp_path / "a.db") as run:
        assert len(run) == 0 and run.status == "running"
        for step in range(300):
            recorder.step(loss=step)
        recorder.close()
        assert [step.loss for step in run.steps] == list(range(300))
