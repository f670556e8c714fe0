"""Checks of what callers give, before anything is opened or recorded."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from verbatim.errors import UsageError


def at_least(least: int, name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"{name} is {value!r}", f"Give an int, {least} or more.")
    return value


def checked_seed(seed: int | None) -> int | None:
    if seed is not None and at_least(0, "seed", seed) >= 2**64:
        raise UsageError(f"seed is {seed}", "Give an int below 2**64.")
    return seed


def checked_names(what: str, names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise UsageError(f"{what} is a str", f'Give a list of names: {what}=["{names}"].')
    return tuple(names)


def as_utf8(text: str) -> str:
    """What of the system's texts is not UTF-8, as "?"; Python keeps such bytes as surrogates."""
    return text.encode("utf-8", "replace").decode()


def checked_path(path: Path) -> str:
    if as_utf8(str(path)) != str(path):
        raise UsageError(f"the path {as_utf8(str(path))} is not UTF-8", "Give another path.")
    return str(path)


def checked_number(step: int, last: int | None) -> int:
    if isinstance(step, bool) or not hasattr(step, "__index__"):
        raise UsageError(f"step is {step!r}", "A step's number is an int.")
    number = int(step)
    if number < 0 or (last is not None and number <= last):
        after = "" if last is None else f" after step {last}"
        raise UsageError(
            f"step {number}{after}",
            "Numbers of steps start at 0 or more and ascend. Of a run that goes on from a "
            "checkpoint, record to a file of its own, with first_step.",
        )
    return number
