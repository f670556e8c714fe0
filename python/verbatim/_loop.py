"""What the integrations share: parts of a step, and packages that are missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verbatim.distributed import check_replicas
from verbatim.errors import UsageError

if TYPE_CHECKING:
    import torch

    from verbatim.recorder import Recorder


class MissingPackageError(UsageError, ImportError):
    """A package that an integration needs is not installed."""


def missing_package(module: str, package: str) -> MissingPackageError:
    """The error for a module of this package that cannot import what it integrates with."""
    return MissingPackageError(
        f"{module} needs the package {package}, which this Python does not have",
        f"pip install {package}",
    )


class Parts:
    """Losses of the parts of one step: one, or several where gradients are accumulated."""

    def __init__(self) -> None:
        self._losses: list[torch.Tensor] = []

    def add(self, loss: Any) -> None:
        """Keeps the loss of a part; what is no number is left out."""
        import torch

        if isinstance(loss, torch.Tensor) and loss.numel() == 1:
            self._losses.append(loss.detach().reshape(()))
        elif isinstance(loss, (int, float)):
            self._losses.append(torch.tensor(float(loss)))

    def take_sum(self) -> torch.Tensor | None:
        """The sum of the losses, added in order; None where there were none. Forgets them."""
        losses, self._losses = self._losses, []
        if not losses:
            return None
        total = losses[0]
        for loss in losses[1:]:
            total = total + loss
        return total

    def take_mean(self) -> torch.Tensor | None:
        """The sum divided by how many there were. Forgets them."""
        count = len(self._losses)
        total = self.take_sum()
        return total if total is None or count == 1 else total / count


class ReplicaChecks:
    """Compares replicas after every `every`-th recorded step, or never where it is 0."""

    def __init__(self, every: int) -> None:
        if every < 0:
            raise UsageError(
                f"check_replicas is {every}: it counts recorded steps",
                "Give 0 for no check, 1 for one at every step.",
            )
        self._every = every
        self._recorded = 0

    def after_step(self, recorder: Recorder, recorded: bool) -> None:
        """To be told of every step; raises ReplicasDifferError on all ranks."""
        if not recorded or self._every == 0 or recorder.world_size == 1:
            return
        self._recorded += 1
        if self._recorded % self._every == 0:
            check_replicas(recorder)
