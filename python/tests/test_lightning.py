"""A real Lightning Trainer records through the callback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from trainings import ranks

import verbatim

lightning = pytest.importorskip("lightning.pytorch", reason="needs lightning")

from verbatim.lightning import RecorderCallback  # noqa: E402


class Module(lightning.LightningModule):
    """A classifier of noise, with batch normalisation and dropout."""

    def __init__(self, fail_at: int | None = None) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3)
        )
        self.fail_at = fail_at

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        if batch_idx == self.fail_at:
            raise ValueError("the disk of the data is gone")
        inputs, labels = batch
        return nn.functional.cross_entropy(self.net(inputs), labels)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        inputs, labels = batch
        self.log("loss", nn.functional.cross_entropy(self.net(inputs), labels))

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }


class ManualModule(Module):
    """Two optimizers, stepped by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        loss = super().training_step(batch, batch_idx)
        first, second = self.optimizers()
        first.zero_grad()
        second.zero_grad()
        self.manual_backward(loss)
        first.step()
        second.step()
        return loss

    def configure_optimizers(self) -> Any:
        return [
            torch.optim.SGD(self.net[0].parameters(), lr=0.1),
            torch.optim.Adam(self.net[4].parameters(), lr=0.01),
        ]


def loader(shuffle_seed: int = 1) -> torch.utils.data.DataLoader[Any]:
    generator = torch.Generator().manual_seed(7)
    data = torch.utils.data.TensorDataset(
        torch.randn(48, 6, generator=generator), torch.randint(3, (48,), generator=generator)
    )
    order = torch.Generator().manual_seed(shuffle_seed)
    return torch.utils.data.DataLoader(data, batch_size=4, shuffle=True, generator=order)


def fit(
    folder: Path,
    name: str,
    *,
    module: type[Module] = Module,
    shuffle_seed: int = 1,
    fail_at: int | None = None,
    checkpoint: Path | None = None,
    save: Path | None = None,
    trainer_options: dict[str, Any] | None = None,
    **options: Any,
) -> Path:
    """Trains two epochs of 12 batches, with validation in between."""
    lightning.seed_everything(3, verbose=False)
    model = module(fail_at) if module is Module else module()
    callback = RecorderCallback(folder / name, **options)
    trainer = lightning.Trainer(
        accelerator="cpu",
        callbacks=[callback],
        default_root_dir=folder,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
        logger=False,
        **{"devices": 1, "max_epochs": 2, **(trainer_options or {})},
    )
    trainer.fit(model, loader(shuffle_seed), loader(), ckpt_path=checkpoint)
    if save:
        trainer.save_checkpoint(save)
    return folder / name


def fit_on_a_rank(path: Path, options: ranks.Options) -> None:
    fit(
        path.parent,
        path.name,
        trainer_options={"devices": ranks.RANKS, "strategy": "ddp"},
        check_replicas=1,
        buffers=False,  # statistics of batches are each rank's own
    )


def test_two_fits_are_equal(tmp_path: Path) -> None:
    a = fit(tmp_path, "a.db")
    b = fit(tmp_path, "b.db")
    assert verbatim.diff(a, b)["verdict"] == "equal"
    # Validation in between changes nothing that was recorded, and raises no suspicion.
    assert verbatim.verify(a)["verdict"] == "intact"
    with verbatim.open(a) as run:
        assert run.status == "complete"
        assert run.seed == 3
        steps = list(run.steps)
        assert [step.step for step in steps] == list(range(1, 25))
        assert all(step.loss is not None and step.batch is not None for step in steps)
        # What the update used, not what the scheduler has set since.
        assert [steps[k].settings["lr"] for k in (0, 4, 5, 9, 10)] == pytest.approx(
            [0.1, 0.1, 0.01, 0.01, 0.001]
        )
        assert "net.0.weight" in {layer.name for layer in run.layers}


def test_another_order_is_found(tmp_path: Path) -> None:
    a = fit(tmp_path, "a.db")
    b = fit(tmp_path, "b.db", shuffle_seed=2)
    difference = verbatim.diff(a, b)["first_difference"]
    assert (difference["class"], difference["step"]) == ("batch bytes", 1)


def test_accumulated_gradients_are_one_step(tmp_path: Path) -> None:
    a = fit(tmp_path, "a.db", trainer_options={"accumulate_grad_batches": 4})
    with verbatim.open(a) as run:
        steps = list(run.steps)
    assert [step.step for step in steps] == list(range(1, 7))
    assert all(len(step.parts) == 4 for step in steps)


def test_every_second_step(tmp_path: Path) -> None:
    a = fit(tmp_path, "a.db", every=2)
    b = fit(tmp_path, "b.db")
    with verbatim.open(a) as run:
        assert [step.step for step in run.steps] == list(range(2, 25, 2))
    assert verbatim.diff(a, b)["first_difference"] is None


def test_manual_optimization(tmp_path: Path) -> None:
    a = fit(tmp_path, "a.db", module=ManualModule, gradients=True)
    b = fit(tmp_path, "b.db", module=ManualModule, gradients=True)
    assert verbatim.diff(a, b)["verdict"] == "equal"
    with verbatim.open(a) as run:
        last = list(run.steps)[-1]
    assert last.settings["0.lr"] == 0.1
    assert last.settings["1.lr"] == 0.01
    assert last.layers["net.4.weight"].gradients is not None


def test_an_exception_closes_the_record(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        fit(tmp_path, "a.db", fail_at=5)
    with verbatim.open(tmp_path / "a.db") as run:
        assert run.status == "interrupted"
        assert run.status_detail == "ValueError: the disk of the data is gone"
        assert len(run) == 5


def test_a_resumed_fit_goes_on_counting(tmp_path: Path) -> None:
    checkpoint = tmp_path / "half.ckpt"
    fit(tmp_path, "a.db", trainer_options={"max_epochs": 1}, save=checkpoint)
    fit(tmp_path, "b.db", checkpoint=checkpoint)
    with verbatim.open(tmp_path / "b.db") as run:
        assert [step.step for step in run.steps] == list(range(13, 25))


def test_ranks_have_records_of_their_own(tmp_path: Path) -> None:
    records = ranks.on_two_ranks(fit_on_a_rank, tmp_path / "a", ranks.Options())
    assert not list((tmp_path / "a").glob("error.*"))
    assert verbatim.diff(*records, "--replicas")["verdict"] == "equal"
    for path in records:
        assert verbatim.verify(path)["verdict"] == "intact"
        with verbatim.open(path) as run:
            assert [step.step for step in run.steps] == list(range(1, 13))
