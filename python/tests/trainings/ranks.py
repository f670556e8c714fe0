"""Trains a small net on two processes over gloo: replicated (DDP) or sharded (FSDP2)."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import verbatim
from verbatim.distributed import check_replicas

RANKS = 2
BATCH = 4


@dataclass
class Options:
    """One run on two ranks. Steps are counted from 0."""

    steps: int = 12
    data_seed: int = 1
    learning_rate_from: tuple[int, float] | None = None  # another one from this step on
    left_out: str | None = None  # a parameter whose gradient is not averaged
    check: bool = False  # whether replicas are compared at every step


class Net(nn.Module):
    """A classifier with batch normalisation, whose statistics differ from rank to rank."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Linear(6, 9)
        self.norm = nn.BatchNorm1d(9)
        self.classifier = nn.Linear(9, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(torch.relu(self.norm(self.features(x))))


def replicated(path: Path, options: Options) -> None:
    """One rank of a DDP training."""
    torch.manual_seed(1)
    net = Net()
    if options.left_out:
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(net, [options.left_out])
    model = DistributedDataParallel(net)
    loop(path, model, options)


def sharded(path: Path, options: Options) -> None:
    """One rank of an FSDP2 training: every parameter is cut in two."""
    torch.manual_seed(1)
    net = Net()
    mesh = init_device_mesh("cpu", (RANKS,))
    fully_shard(net.features, mesh=mesh)
    fully_shard(net, mesh=mesh)
    loop(path, net, options)


def loop(path: Path, model: nn.Module, options: Options) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    # Every rank has its own batches.
    generator = torch.Generator().manual_seed(10 * options.data_seed + dist.get_rank())
    with verbatim.Recorder(path, model, optimizer, seed=1) as recorder:
        for step in range(options.steps):
            if options.learning_rate_from and step == options.learning_rate_from[0]:
                optimizer.param_groups[0]["lr"] = options.learning_rate_from[1]
            inputs = torch.randn(BATCH, 6, generator=generator)
            labels = torch.randint(3, (BATCH,), generator=generator)
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            recorder.step(loss=loss, batch=[inputs, labels])
            optimizer.zero_grad()
            if options.check:
                check_replicas(recorder)


def on_two_ranks(
    train: Callable[[Path, Options], None], folder: Path, options: Options
) -> tuple[Path, Path]:
    """Runs `train` on two ranks; gives the paths of their records.

    A `verbatim.Error` of a rank is left as text in the folder's file "error.RANK"; another error
    of a rank is raised.
    """
    folder.mkdir()
    mp.spawn(_rank, args=(train, folder, options), nprocs=RANKS)
    return folder / "run.rank0.db", folder / "run.rank1.db"


def _launcher_variables(rank: int) -> dict[str, str]:
    """What torchrun would set, for trainers that look there."""
    return {
        "GLOO_SOCKET_IFNAME": "lo",
        "GROUP_RANK": "0",
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(RANKS),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "0",  # ranks meet in a file
        "RANK": str(rank),
        "TORCHELASTIC_RUN_ID": "tests",
        "WORLD_SIZE": str(RANKS),
    }


def _rank(rank: int, train: Callable[[Path, Options], Any], folder: Path, options: Options) -> None:
    torch.set_num_threads(1)
    os.environ.update(_launcher_variables(rank))
    store = dist.FileStore(str(folder / "store"), RANKS)
    dist.init_process_group(
        "gloo", store=store, rank=rank, world_size=RANKS, timeout=timedelta(seconds=120)
    )
    try:
        train(folder / "run.db", options)
    except verbatim.Error as error:
        (folder / f"error.{rank}").write_text(f"{type(error).__name__}: {error}")
    finally:
        if dist.is_initialized():  # a trainer may have ended it
            dist.destroy_process_group()
