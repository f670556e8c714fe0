"""The hunt of docs/python.md: each of the example's mistakes is what the records say it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import verbatim

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "python" / "hunt.py"


def two_runs(folder: Path, fixed: int) -> dict[str, Any]:
    """Runs the example twice; gives the verdict on its two records."""
    for name, hash_seed in (("a.db", "1"), ("b.db", "2")):
        command = [sys.executable, str(SCRIPT), str(folder / name), "--fixed", str(fixed)]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": hash_seed})
    return verbatim.diff(folder / "a.db", folder / "b.db")


@pytest.mark.parametrize(("fixed", "kind"), [(0, "batch bytes"), (1, "random state")])
def test_mistakes_are_found(tmp_path: Path, fixed: int, kind: str) -> None:
    difference = two_runs(tmp_path, fixed)["first_difference"]
    assert (difference["class"], difference["step"]) == (kind, 0)


def test_nothing_is_left(tmp_path: Path) -> None:
    assert two_runs(tmp_path, 3)["verdict"] == "equal"
