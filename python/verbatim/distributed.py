"""Runs of several processes: a record per rank, and the check that replicas are equal.

With DistributedDataParallel every rank holds the same parameters after every update.
`check_replicas` compares them while the run goes on; `verbatim diff --replicas run.rank0.db
run.rank1.db` does it afterwards. With FSDP each rank records its own shards, to be compared with
the same rank's of another run.

Without torch.distributed, or before its initialisation, everything here means a run of one process.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verbatim.errors import FailedError, UsageError

if TYPE_CHECKING:
    import torch
    from torch.distributed import ProcessGroup

    from verbatim.recorder import Recorder


class ReplicasDifferError(FailedError):
    """Replicas that must be equal are not: some parameter was left out of synchronisation.

    All ranks of the group raise it at the same step, so none is left waiting.
    """

    def __init__(self, message: str, hint: str, *, layers: tuple[str, ...], rank: int) -> None:
        super().__init__(message, hint)
        self.layers = layers
        """Names of all layers that differ, in the record's order; the text names the first."""
        self.rank = rank
        """The first rank of the group whose layers differ from those of rank 0."""


def rank() -> int:
    """This process's rank, 0 where torch.distributed is not initialised."""
    import torch.distributed as dist

    return dist.get_rank() if _is_initialized() else 0


def world_size() -> int:
    """Processes of the run, 1 where torch.distributed is not initialised."""
    import torch.distributed as dist

    return dist.get_world_size() if _is_initialized() else 1


def rank_path(path: str | os.PathLike[str], rank: int, world_size: int) -> Path:
    """Where a rank records: "run.rank3.db" for "run.db"; `path` itself in a run of one process."""
    given = Path(path)
    if world_size == 1:
        return given
    return given.with_name(f"{given.stem}.rank{rank}{given.suffix}")


def unwrap(model: torch.nn.Module) -> torch.nn.Module:
    """The model within DistributedDataParallel, DataParallel and torch.compile, however nested."""
    import torch
    from torch.nn.parallel import DataParallel, DistributedDataParallel

    while True:
        if isinstance(model, (DataParallel, DistributedDataParallel)):
            inner: Any = model.module
        elif hasattr(model, "_orig_mod"):  # torch.compile's wrapper
            inner = model._orig_mod
        else:
            return model
        assert isinstance(inner, torch.nn.Module)
        model = inner


def is_split(model: torch.nn.Module) -> bool:
    """Whether DataParallel runs copies of the model, on several devices in threads of their own."""
    from torch.nn.parallel import DataParallel

    while hasattr(model, "_orig_mod"):
        model = model._orig_mod  # type: ignore[assignment]
    return isinstance(model, DataParallel) and len(model.device_ids) > 1


def check_replicas(recorder: Recorder, group: ProcessGroup | None = None) -> None:
    """Compares the parameters that all ranks recorded last, and raises where they differ.

    Every rank of `group` (default: all) must call it, after the same recorded step. It gathers 32
    bytes per rank; only where these differ are the digests of all layers exchanged. Buffers are
    left out, since DistributedDataParallel broadcasts them at the beginning of the next forward
    pass and not before, and so are tensors that are sharded over ranks.

    Raises ReplicasDifferError on every rank; it names the first layer that differs.
    """
    import torch.distributed as dist

    if not _is_initialized():
        raise UsageError(
            "check_replicas: torch.distributed is not initialised",
            "Call it in a run of several processes, after init_process_group.",
        )
    replicas = _replicas(recorder)
    summary = hashlib.sha256()
    for name, digest in replicas.items():
        summary.update(len(name.encode()).to_bytes(8, "little") + name.encode() + digest)
    if len(set(_gather(summary.digest(), group))) == 1:
        return
    everyones: list[dict[str, bytes]] = [{} for _ in range(dist.get_world_size(group))]
    dist.all_gather_object(everyones, replicas, group=group)
    raise _difference(everyones, recorder.last_step)


def _is_initialized() -> bool:
    import torch.distributed as dist

    return dist.is_available() and dist.is_initialized()


def _replicas(recorder: Recorder) -> dict[str, bytes]:
    """Digests of what every rank must have alike: whole parameters."""
    ops: Mapping[str, str] = recorder.layer_ops
    return {
        name: digest
        for name, digest in recorder.last_weights.items()
        if ops[name].startswith("parameter ") and "Shard(" not in ops[name]
    }


def _gather(digest: bytes, group: ProcessGroup | None) -> list[bytes]:
    """The digests of all ranks, in order of rank."""
    import torch
    import torch.distributed as dist

    on_device = dist.get_backend(group) == "nccl"
    device = torch.device("cuda", torch.cuda.current_device()) if on_device else "cpu"
    mine = torch.tensor(list(digest), dtype=torch.uint8, device=device)
    all_ranks = [torch.empty_like(mine) for _ in range(dist.get_world_size(group))]
    dist.all_gather(all_ranks, mine, group=group)
    return [bytes(one.tolist()) for one in all_ranks]


def _difference(everyones: list[dict[str, bytes]], step: int | None) -> ReplicasDifferError:
    """Names what the ranks do not have alike; the first is compared with each of the others."""
    first = everyones[0]
    for other_rank, other in enumerate(everyones):
        names = [name for name in {**first, **other} if first.get(name) != other.get(name)]
        if names:
            break
    name, more = names[0], len(names) - 1
    values = " and ".join(
        f"{one[name].hex()[:8] if name in one else 'nothing'} on rank {number}"
        for number, one in ((0, first), (other_rank, other))
    )
    also = f"; {more} more {'layer differs' if more == 1 else 'layers differ'}" if more else ""
    return ReplicasDifferError(
        f"replicas differ after step {step}: layer {name} is {values}{also}",
        "Some parameter or update is not synchronised: look for a module outside of "
        "DistributedDataParallel, a frozen or skipped gradient, or a step that one rank left out.",
        layers=tuple(names),
        rank=other_rank,
    )
