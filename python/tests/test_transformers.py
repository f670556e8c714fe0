"""A real Hugging Face Trainer records through the callback; nothing is downloaded."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from trainings import ranks

import verbatim

os.environ.setdefault("HF_HUB_OFFLINE", "1")
transformers = pytest.importorskip("transformers", reason="needs transformers")
pytest.importorskip("accelerate", reason="the Trainer needs accelerate")

from verbatim.transformers import RecorderCallback, _recordable  # noqa: E402


class Text(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Sequences of numbers."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(4)
        self._words = torch.randint(20, (48, 8), generator=generator)

    def __len__(self) -> int:
        return len(self._words)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self._words[index], "labels": self._words[index]}


class ClassicTrainer(transformers.Trainer):  # type: ignore[misc]
    """With a loss of its own, as many trainings have."""

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, **kwargs: Any
    ) -> Any:
        output = model(input_ids=inputs["input_ids"])
        scores, labels = output.logits.flatten(0, 1), inputs["labels"].flatten()
        loss = torch.nn.functional.cross_entropy(scores, labels)
        return (loss, output) if return_outputs else loss


def make_model() -> Any:
    torch.manual_seed(2)
    config = transformers.GPT2Config(
        vocab_size=20, n_positions=8, n_embd=8, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2LMHeadModel(config)


def train(
    folder: Path,
    name: str,
    *,
    seed: int = 5,
    trainer: type[Any] = transformers.Trainer,
    resume: Path | None = None,
    arguments: dict[str, Any] | None = None,
    more: Sequence[Any] = (),
    **options: Any,
) -> Path:
    """Trains two epochs of 12 batches, with an evaluation after each."""
    callback = RecorderCallback(folder / name, **options)
    settings = transformers.TrainingArguments(
        **{
            "output_dir": str(folder / "out"),
            "disable_tqdm": True,
            "eval_strategy": "epoch",
            "learning_rate": 1e-2,
            "num_train_epochs": 2,
            "per_device_train_batch_size": 4,
            "report_to": "none",
            "save_strategy": "no",
            "seed": seed,
            "use_cpu": True,
            **(arguments or {}),
        }
    )
    trainer(
        model=make_model(),
        args=settings,
        train_dataset=Text(),
        eval_dataset=Text(),
        callbacks=[callback, *more],
    ).train(resume_from_checkpoint=str(resume) if resume else None)
    return folder / name


def train_on_a_rank(path: Path, options: ranks.Options) -> None:
    train(path.parent, path.name, check_replicas=1)


def test_two_trainings_are_equal(tmp_path: Path) -> None:
    a = train(tmp_path, "a.db", gradients=True)
    b = train(tmp_path, "b.db", gradients=True)
    assert verbatim.diff(a, b)["verdict"] == "equal"
    assert verbatim.verify(a)["verdict"] == "intact"
    with verbatim.open(a) as run:
        assert run.status == "complete"
        assert run.seed == 5
        steps = list(run.steps)
    assert [step.step for step in steps] == list(range(1, 25))
    assert all(step.loss is not None and step.batch is not None for step in steps)
    # What the update used, not what the scheduler has set since.
    assert steps[0].settings.get("lr", steps[0].settings.get("0.lr")) == 1e-2
    assert steps[0].layers["transformer.h.0.attn.c_attn.weight"].gradients is not None


def test_another_seed_is_another_order(tmp_path: Path) -> None:
    a = train(tmp_path, "a.db")
    b = train(tmp_path, "b.db", seed=6)
    difference = verbatim.diff(a, b)["first_difference"]
    assert (difference["class"], difference["step"]) == ("batch bytes", 1)


def test_accumulated_gradients_are_one_step(tmp_path: Path) -> None:
    a = train(tmp_path, "a.db", arguments={"gradient_accumulation_steps": 3})
    b = train(tmp_path, "b.db", arguments={"gradient_accumulation_steps": 3})
    assert verbatim.diff(a, b)["verdict"] == "equal"
    with verbatim.open(a) as run:
        steps = list(run.steps)
        spec = run.spec
    assert [step.step for step in steps] == list(range(1, 9))
    assert all(len(step.parts) == 3 for step in steps)
    # A loss near that of guessing, however it is divided among the parts.
    assert steps[0].loss == pytest.approx(torch.log(torch.tensor(20.0)).item(), abs=0.5)
    assert spec["settings"]["gradient_accumulation_steps"] == 3


def test_a_loss_of_the_trainer_is_absent(tmp_path: Path) -> None:
    a = train(tmp_path, "a.db", trainer=ClassicTrainer)
    with verbatim.open(a) as run:
        steps = list(run.steps)
    assert len(steps) == 24
    assert all(step.loss is None and step.batch is not None for step in steps)


def test_a_resumed_training_meets_the_whole_one(tmp_path: Path) -> None:
    a = train(tmp_path, "a.db", arguments={"save_strategy": "epoch"})
    b = train(tmp_path, "b.db", resume=tmp_path / "out" / "checkpoint-12")
    verdict = verbatim.diff(a, b)
    assert verdict["first_difference"] is None
    assert verdict["comparison"]["subnets_compared"] == 12


def test_an_exception_is_told_by_close(tmp_path: Path) -> None:
    class Stop(transformers.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == 3:
                raise KeyError("gone")

    callback = RecorderCallback(tmp_path / "a.db")
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), disable_tqdm=True, report_to="none", use_cpu=True
    )
    trainer = transformers.Trainer(
        model=make_model(), args=arguments, train_dataset=Text(), callbacks=[callback, Stop()]
    )
    with pytest.raises(KeyError):
        trainer.train()
    callback.close("interrupted", "KeyError: gone")
    with verbatim.open(tmp_path / "a.db") as run:
        assert (run.status, run.status_detail) == ("interrupted", "KeyError: gone")
        assert len(run) == 3


def test_lists_and_dicts_of_tensors_are_data() -> None:
    tensors = [torch.zeros(2), torch.ones(3)]
    given = {"images": tensors, "sizes": {"a": (1, 2)}, "cache": object(), "mixed": [1, object()]}
    kept = {"0": True, "images": tensors, "sizes": {"a": (1, 2)}}
    assert _recordable((True, None), given) == kept


def test_data_parallel_is_refused(tmp_path: Path) -> None:
    arguments = transformers.TrainingArguments(output_dir=str(tmp_path), use_cpu=True)
    arguments._n_gpu = 2
    callback = RecorderCallback(tmp_path / "a.db")
    with pytest.raises(verbatim.UsageError, match="over 2 GPUs by DataParallel"):
        callback.on_train_begin(arguments, transformers.TrainerState(), None)


def test_a_model_that_trains_can_be_copied(tmp_path: Path) -> None:
    models: list[Any] = []

    class Copy(transformers.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            copies = (copy.deepcopy(kwargs["model"]), pickle.loads(pickle.dumps(kwargs["model"])))
            for model in copies:
                model(input_ids=torch.zeros(1, 8, dtype=torch.long))
            models.extend(copies)

    path = train(tmp_path, "a.db", arguments={"max_steps": 2}, more=[Copy()])
    assert len(models) == 4
    with verbatim.open(path) as run:
        assert all(step.parts == () for step in run.steps)


def test_ranks_have_records_of_their_own(tmp_path: Path) -> None:
    records = ranks.on_two_ranks(train_on_a_rank, tmp_path / "a", ranks.Options())
    assert not list((tmp_path / "a").glob("error.*"))
    assert verbatim.diff(*records, "--replicas")["verdict"] == "equal"
    for path in records:
        assert verbatim.verify(path)["verdict"] == "intact"
        with verbatim.open(path) as run:
            assert [step.step for step in run.steps] == list(range(1, 13))
