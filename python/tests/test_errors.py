"""Whatever is wrong is said by name, with what to do, and costs nothing of the record before it."""

from __future__ import annotations

import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from training import small, steps_of, update

import verbatim


def record(path: Path, **options: Any) -> tuple[Any, Any, verbatim.Recorder]:
    """A recorder of `small` that has recorded one step."""
    model, optimizer = small()
    recorder = verbatim.Recorder(path, model, optimizer, **options)
    update(model, optimizer)
    recorder.step()
    return model, optimizer, recorder


def grow_buffer(model: Any) -> None:
    model[1].running_mean = torch.zeros(5)


def change_dtype(model: Any) -> None:
    model[2].to(torch.float64)


def add_parameter(model: Any) -> None:
    model[0].register_parameter("late", torch.nn.Parameter(torch.zeros(1)))


def add_module(model: Any) -> None:
    model.append(torch.nn.Linear(1, 1))


def replace_module(model: Any) -> None:
    model[0] = torch.nn.Linear(3, 4)


def delete_parameter(model: Any) -> None:
    model[0].bias = None


@pytest.mark.parametrize(
    "change, message",
    [
        (grow_buffer, r"layer 1.running_mean is float32\[5\] now, and was float32\[4\] before"),
        (change_dtype, r"layer 2.weight is float64\[1,4\] now, and was float32\[1,4\]"),
        (add_parameter, "a parameter or buffer came since the Recorder was made: 0.late"),
        (add_module, "the module 3 came, went or was replaced"),
        (replace_module, "the module 0 came, went or was replaced"),
        (delete_parameter, "a parameter or buffer went since the Recorder was made: 0.bias"),
    ],
)
def test_models_that_change_their_form(
    tmp_path: Path, change: Callable[[Any], None], message: str
) -> None:
    model, optimizer, recorder = record(tmp_path / "a.db")
    model(torch.randn(6, 3))
    change(model)
    with pytest.raises(verbatim.UsageError, match=message) as error:
        recorder.step()
    assert error.value.hint and error.value.code == 2
    recorder.close("failed", str(error.value))
    assert len(steps_of(tmp_path / "a.db")) == 1


def test_tied_weights_are_one_layer_and_stay_so(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    model[1].weight = model[0].weight
    model[1].register_buffer("view", model[0].weight.detach())
    optimizer = torch.optim.Adam(model.parameters())
    with verbatim.Recorder(tmp_path / "a.db", model, optimizer) as recorder:
        assert recorder.layer_names == ("0.weight", "0.bias", "1.bias", "1.view")
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        recorder.step()
        model(torch.ones(1, 2))
        model[1].weight = torch.nn.Parameter(torch.ones(2, 2))
        with pytest.raises(verbatim.UsageError, match="0.weight and 1.weight were one tensor"):
            recorder.step()
    with verbatim.open(tmp_path / "a.db") as run:
        assert run.layers[0].op == "parameter float32[2,2] also 1.weight"


def test_activations_of_data_parallel_are_refused(tmp_path: Path) -> None:
    model = torch.nn.DataParallel(small()[0])
    verbatim.Recorder(tmp_path / "a.db", model, activations=["0"]).close()
    model.device_ids = [0, 1]
    with pytest.raises(verbatim.UsageError, match="DataParallel"):
        verbatim.Recorder(tmp_path / "b.db", model, activations=["0"])


def test_texts_that_are_not_utf8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"caf\xe9".decode("utf-8", "surrogateescape")
    monkeypatch.setattr(sys, "orig_argv", ["python", text])
    monkeypatch.setenv("MKL_CBWR", text)
    with pytest.raises(OSError), verbatim.Recorder(tmp_path / "a.db", name=text):
        raise OSError(f"no file {text}")
    with verbatim.open(tmp_path / "a.db") as run:
        assert (run.status, run.status_detail) == ("interrupted", "OSError: no file caf?")
        assert "caf?" in run.facts["command_line"] and run.name == "caf?"
    with pytest.raises(verbatim.UsageError, match=r"caf\?.db is not UTF-8"):
        verbatim.Recorder(tmp_path / f"{text}.db")


def test_lazy_modules_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(verbatim.UsageError, match="weight has no shape yet"):
        verbatim.Recorder(tmp_path / "a.db", torch.nn.LazyLinear(3))
    assert not (tmp_path / "a.db").exists()


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(every=0), "every is 0"),
        (dict(every=True), "every is True"),
        (dict(first_step=-1), "first_step is -1"),
        (dict(steps=0), "steps is 0"),
        (dict(seed=-1), "seed is -1"),
        (dict(seed=1.5), "seed is 1.5"),
        (dict(seed=2**64), "seed is 18446744073709551616"),
        (dict(threads=0), "threads is 0"),
        (dict(reads="version"), "reads is 'version'"),
        (dict(activations=["3"]), 'the model has no module "3"'),
        (dict(activations=["0", "0"]), "name '0' twice"),
        (dict(tensors=[""]), "name ''"),
        (dict(tensors=["0.weight"]), "two layers are called '0.weight'"),
        (dict(tensors="logits"), "tensors is a str"),
        (dict(settings={"a": [1]}), 'setting "a" is a list'),
        (dict(rank=2, world_size=2), "rank"),
        (dict(model=3), "model is a int"),
        (dict(model={"": torch.nn.Linear(1, 1)}), "model '' is a Linear"),
        (dict(optimizer="adam"), "optimizer is a str"),
        (dict(optimizer={"a": 1}), "optimizer 'a' is a int"),
    ],
)
def test_arguments_that_make_no_sense(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    model, optimizer = small()
    given: dict[str, Any] = {"model": model, "optimizer": optimizer, **options}
    with pytest.raises(verbatim.UsageError) as error:
        verbatim.Recorder(tmp_path / "a.db", **given)
    assert message in error.value.message
    assert list(tmp_path.iterdir()) == []
    assert not model._forward_pre_hooks and not optimizer._optimizer_step_pre_hooks  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "step, message",
    [
        (dict(loss=torch.ones(2)), r"the loss is a tensor of shape \[2\]"),
        (dict(loss="low"), "the loss is a str"),
        (dict(loss=1j), "the loss is a complex"),
        (dict(batch={"x": object()}), "batch.x is a builtins.object"),
        (dict(tensors={"logit": torch.ones(1)}), 'Did you mean "logits"'),
        (dict(step=-1), "step -1 after step 0"),
        (dict(step="1"), "step is '1'"),
    ],
)
def test_steps_that_make_no_sense_are_refused_and_can_be_repeated(
    tmp_path: Path, step: dict[str, Any], message: str
) -> None:
    model, optimizer, recorder = record(tmp_path / "a.db", tensors=["logits"])
    update(model, optimizer)
    with pytest.raises(verbatim.UsageError, match=message):
        recorder.step(**step)
    recorder.step(loss=1.0)
    recorder.close()
    assert [one.step for one in steps_of(tmp_path / "a.db")] == [0, 1]


def test_a_step_without_forward_pass(tmp_path: Path) -> None:
    model, optimizer, recorder = record(tmp_path / "a.db")
    with pytest.raises(verbatim.UsageError, match=r"(?s)no forward pass.*recorder.begin\(\)"):
        recorder.step()
    recorder.begin()
    recorder.step()
    recorder.close()


def test_a_closed_recorder(tmp_path: Path) -> None:
    _, _, recorder = record(tmp_path / "a.db", tensors=["x"])
    recorder.close()
    calls: list[Callable[[], object]] = [
        recorder.step, recorder.begin, lambda: recorder.add_batch(1),
        lambda: recorder.capture("x", torch.ones(1)),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(verbatim.UsageError, match="the recorder of .*a.db is closed"):
            call()
    with pytest.raises(verbatim.UsageError, match="is closed"), recorder:
        recorder.step()


def test_two_recorders_of_one_file(tmp_path: Path) -> None:
    _, _, recorder = record(tmp_path / "a.db")
    with pytest.raises(verbatim.UsageError, match="exists"):
        verbatim.Recorder(tmp_path / "a.db")
    with pytest.raises(verbatim.FailedError, match="another process|is being written"):
        verbatim.Recorder(tmp_path / "a.db", overwrite=True)
    recorder.close()
    assert len(steps_of(tmp_path / "a.db")) == 1
    verbatim.Recorder(tmp_path / "a.db", overwrite=True).close()
    assert len(steps_of(tmp_path / "a.db")) == 0


def test_a_forked_child_leaves_the_record_alone(tmp_path: Path) -> None:
    model, optimizer, recorder = record(tmp_path / "a.db")
    child = os.fork()
    if child == 0:
        refused = 0
        try:
            with recorder:
                model(torch.ones(2, 3))  # hooks do nothing
                for call in (recorder.step, recorder.close, recorder.begin):
                    try:
                        call()
                    except verbatim.UsageError as error:
                        refused += "was forked from the one that records" in str(error)
            del recorder
        finally:
            os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    update(model, optimizer)
    recorder.step()
    recorder.close()
    assert len(steps_of(tmp_path / "a.db")) == 2


def test_a_recorder_is_not_sent_to_other_processes(tmp_path: Path) -> None:
    with verbatim.Recorder(tmp_path / "a.db") as recorder:
        with pytest.raises(verbatim.UsageError, match="cannot be copied"):
            pickle.dumps(recorder)


def test_an_error_within_the_loop_is_the_one_that_is_seen(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        with verbatim.Recorder(tmp_path / "a.db") as recorder:
            recorder.step()
            1 / 0
    with verbatim.open(tmp_path / "a.db") as run:
        assert run.status_detail == "ZeroDivisionError: division by zero"


def test_ends_that_there_are_not(tmp_path: Path) -> None:
    with verbatim.Recorder(tmp_path / "a.db") as recorder:
        with pytest.raises(verbatim.UsageError, match='does not end as "running"'):
            recorder.close("running")  # type: ignore[arg-type]
        assert not recorder.closed


def test_places_where_no_record_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(verbatim.UsageError, match="missing"):
        verbatim.Recorder(tmp_path / "missing" / "a.db")
    with pytest.raises(verbatim.UsageError, match="is a folder"):
        verbatim.Recorder(tmp_path, overwrite=True)
    with pytest.raises(verbatim.UsageError, match="file"):
        verbatim.Recorder(tmp_path / "file", overwrite=True)
    assert (tmp_path / "file").read_text() == "mine"
    with pytest.raises(verbatim.Error):
        verbatim.Recorder(tmp_path / "file" / "a.db")
    with pytest.raises(verbatim.FailedError):
        verbatim.Recorder("/proc/a.db")


READ_ONLY = """
import os, sys, verbatim
if os.geteuid() == 0:
    os.setgid(65534), os.setuid(65534)
try:
    verbatim.Recorder(sys.argv[1])
except verbatim.FailedError as error:
    print(error)
"""


def test_a_read_only_folder(tmp_path: Path) -> None:
    folder = tmp_path / "ours"
    folder.mkdir(mode=0o755)
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    if os.geteuid() != 0:
        folder.chmod(0o555)
    done = run_script(READ_ONLY, str(folder / "a.db"))
    assert str(folder) in done.stdout, done.stderr
    assert list(folder.iterdir()) == []


FULL_DISK = """
import sys, verbatim
recorder = verbatim.Recorder(sys.argv[1] + "/a.db")
try:
    for step in range(100000):
        recorder.step(loss=step, batch=step)
except verbatim.FailedError as error:
    print("step:", error.message)
try:
    recorder.close()
except verbatim.FailedError as error:
    print("close:", error.message)
with verbatim.open(sys.argv[1] + "/a.db") as run:
    losses = [step.loss for step in run.steps]
    print("kept:", losses == list(range(len(losses))), len(losses) > 100, run.status)
"""


def test_a_full_disk(tmp_path: Path) -> None:
    """What was committed before stays readable, and the loop hears of it."""
    mount = 'mount -t tmpfs -o size=600k none "$1" && shift && exec "$@"'
    unshare = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh", str(tmp_path)]
    if shutil.which("unshare") is None or subprocess.run([*unshare, "true"]).returncode != 0:
        pytest.skip("this machine allows no mount namespaces")
    done = run_script(FULL_DISK, str(tmp_path), prefix=unshare)
    assert "step: " in done.stdout, done.stderr
    assert "close: " in done.stdout
    assert "kept: True True" in done.stdout


def run_script(
    script: str, *arguments: str, prefix: list[str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a script in a process of its own, with this one's packages."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(
        [*(prefix or []), sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=500,
    )


def test_files_that_are_no_records(tmp_path: Path) -> None:
    with pytest.raises(verbatim.BadInputError, match="missing.db") as error:
        verbatim.open(tmp_path / "missing.db")
    assert error.value.code == 3
    (tmp_path / "text.db").write_text("no record at all, and a little longer than a header")
    with pytest.raises(verbatim.BadInputError, match="text.db"):
        verbatim.open(tmp_path / "text.db")
    verbatim.Recorder(tmp_path / "a.db").close()
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute("PRAGMA user_version = 99")
    connection.commit()
    connection.close()
    with pytest.raises(verbatim.BadInputError, match="version"):
        verbatim.open(tmp_path / "a.db")


def test_damaged_rows_are_named(tmp_path: Path) -> None:
    _, _, recorder = record(tmp_path / "a.db")
    recorder.close()
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute("UPDATE steps SET facts = '{\"outside\":[7,3]}'")
    connection.commit()
    connection.close()
    with verbatim.open(tmp_path / "a.db") as run, pytest.raises(verbatim.BadInputError, match="steps"):
        list(run.steps)


def test_a_closed_run(tmp_path: Path) -> None:
    verbatim.Recorder(tmp_path / "a.db").close()
    run = verbatim.open(tmp_path / "a.db")
    run.close()
    with pytest.raises(verbatim.UsageError, match="was closed"):
        len(run)


def test_the_command_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VERBATIM_BINARY", str(tmp_path / "none"))
    with pytest.raises(verbatim.UsageError, match="none"):
        verbatim.verify(tmp_path / "a.db")
