"""What changes between two runs is found: its class, its step, and where there is one, its layer.

Two small trainings (tests/trainings) are recorded as they are and with one thing changed; the
command `verbatim diff` or `verify` gets nothing but the records.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trainings import images, text

import verbatim


@pytest.fixture(scope="module")
def text_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "a.db"
    text.train(path)
    return path


@pytest.fixture(scope="module")
def images_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("images") / "a.db"
    images.train(path, activations=["pool"])
    return path


def first_difference(a: Path, b: Path) -> dict[str, Any]:
    verdict = verbatim.diff(a, b)
    assert verdict["verdict"] == "different"
    assert verdict["exit_code"] == 1
    difference = verdict["first_difference"]
    assert isinstance(difference, dict)
    return difference


def assert_equal(a: Path, b: Path) -> dict[str, Any]:
    verdict = verbatim.diff(a, b)
    assert verdict["first_difference"] is None, verdict["summary"]
    assert verdict["verdict"] == "equal"
    assert verdict["exit_code"] == 0
    return verdict


def test_text_twice_is_equal(text_run: Path, tmp_path: Path) -> None:
    text.train(tmp_path / "b.db")
    assert_equal(text_run, tmp_path / "b.db")
    assert verbatim.verify(text_run)["verdict"] == "intact"


def test_images_twice_is_equal(images_run: Path, tmp_path: Path) -> None:
    images.train(tmp_path / "b.db", activations=["pool"])
    assert_equal(images_run, tmp_path / "b.db")
    assert verbatim.verify(images_run)["verdict"] == "intact"


def test_trainings_learn(text_run: Path, images_run: Path) -> None:
    for path in (text_run, images_run):
        with verbatim.open(path) as run:
            losses = [step.loss for step in run.steps]
        assert len(losses) == 60
        assert losses[-1] is not None and losses[0] is not None
        assert losses[-1] < 0.8 * losses[0]


def test_another_seed(text_run: Path, tmp_path: Path) -> None:
    text.train(tmp_path / "b.db", text.Options(seed=2))
    difference = first_difference(text_run, tmp_path / "b.db")
    assert difference["class"] == "initial weights"
    assert "1" in difference["cause"] and "2" in difference["cause"]
    assert "seed" in difference["cause"]


def test_another_order_of_the_data(text_run: Path, tmp_path: Path) -> None:
    text.train(tmp_path / "b.db", text.Options(data_seed=2))
    difference = first_difference(text_run, tmp_path / "b.db")
    assert difference["class"] == "batch bytes"
    assert difference["step"] == 0


def test_evaluation_mode(text_run: Path, tmp_path: Path) -> None:
    text.train(tmp_path / "b.db", text.Options(evaluation_mode_at=20))
    difference = first_difference(text_run, tmp_path / "b.db")
    assert difference["class"] == "hyper-parameters"
    assert difference["step"] == 20
    assert "eval_modules" in difference["what"] + difference["cause"]


def test_skipped_update(text_run: Path, tmp_path: Path) -> None:
    text.train(tmp_path / "b.db", text.Options(skip_update_at=33))
    difference = first_difference(text_run, tmp_path / "b.db")
    assert difference["class"] == "computation"
    assert difference["step"] == 33
    assert "update was skipped" in difference["cause"]


def test_learning_rate_changed(text_run: Path, tmp_path: Path) -> None:
    text.train(tmp_path / "b.db", text.Options(learning_rate_from=(50, 1e-3)))
    difference = first_difference(text_run, tmp_path / "b.db")
    assert difference["class"] == "hyper-parameters"
    assert difference["step"] == 50
    assert "lr" in difference["what"] + difference["cause"]


def test_sum_of_two_threads(images_run: Path, tmp_path: Path) -> None:
    late = images.Options(first_thread=lambda step: int(step == 17))
    images.train(tmp_path / "b.db", late, activations=["pool"])
    difference = first_difference(images_run, tmp_path / "b.db")
    assert difference["class"] == "computation"
    assert difference["step"] == 17
    assert difference["layer_name"] == "pool"


def test_sum_of_two_threads_without_captured_tensors(tmp_path: Path) -> None:
    images.train(tmp_path / "a.db", images.Options(steps=20))
    late = images.Options(steps=20, first_thread=lambda step: int(step == 17))
    images.train(tmp_path / "b.db", late)
    difference = first_difference(tmp_path / "a.db", tmp_path / "b.db")
    assert difference["class"] == "computation"
    assert difference["step"] == 17


def test_resumed_run_meets_the_whole_one(text_run: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    text.train(tmp_path / "first.db", text.Options(steps=60, checkpoint=checkpoint))
    text.train(tmp_path / "b.db", text.Options(checkpoint=checkpoint, resume=True))
    verdict = assert_equal(text_run, tmp_path / "b.db")
    assert verdict["comparison"]["subnets_compared"] == 30


def test_resumed_without_the_random_state(text_run: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    text.train(tmp_path / "first.db", text.Options(checkpoint=checkpoint))
    resumed = text.Options(checkpoint=checkpoint, resume=True, restore_random_state=False)
    text.train(tmp_path / "b.db", resumed)
    difference = first_difference(text_run, tmp_path / "b.db")
    assert difference["class"] == "random state"
    assert difference["step"] == 30


@pytest.mark.parametrize("every", [1, 4])
def test_weights_edited_by_hand(tmp_path: Path, every: int) -> None:
    text.train(tmp_path / "a.db", text.Options(edit_at=42), every=every)
    verdict = verbatim.verify(tmp_path / "a.db")
    assert verdict["verdict"] == "different"
    difference = verdict["first_difference"]
    assert difference["class"] == "schedule"
    assert difference["layer_name"] == "position"
    # Seen at step 42; a record of every fourth step says so with the next one it holds.
    assert difference["step"] == (42 if every == 1 else 44)


def test_weights_edited_behind_version_counters(tmp_path: Path) -> None:
    edited = text.Options(edit_at=42, edit_through_data=True)
    text.train(tmp_path / "a.db", edited, reads="digests")
    difference = verbatim.verify(tmp_path / "a.db")["first_difference"]
    assert difference["class"] == "schedule"
    assert difference["step"] == 42
    assert difference["layer_name"] == "position"


def test_nothing_edited_is_not_suspected(tmp_path: Path) -> None:
    text.train(tmp_path / "a.db", reads="digests")
    assert verbatim.verify(tmp_path / "a.db")["verdict"] == "intact"


def test_gradients_accumulated_in_another_order(tmp_path: Path) -> None:
    text.train(tmp_path / "a.db", text.Options(parts=4))
    text.train(tmp_path / "b.db", text.Options(parts=4, parts_reversed_at=25))
    difference = first_difference(tmp_path / "a.db", tmp_path / "b.db")
    assert difference["class"] == "sample order"
    assert difference["step"] == 25


def test_records_of_other_intervals_meet(text_run: Path, tmp_path: Path) -> None:
    text.train(tmp_path / "b.db", text.Options(learning_rate_from=(50, 1e-3)), every=4)
    difference = first_difference(text_run, tmp_path / "b.db")
    assert difference["step"] == 52
    assert difference["class"] == "hyper-parameters"
