"""The command `verbatim` that comes with this package, called from Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from verbatim.errors import UsageError, error_of

PathLike = str | os.PathLike[str]


def executable() -> Path:
    """The program `verbatim`: VERBATIM_BINARY in the environment, beside this Python, or on PATH."""
    named = os.environ.get("VERBATIM_BINARY")
    if named:
        return Path(named)
    for folder in (sysconfig.get_path("scripts"), str(Path(sys.executable).parent)):
        candidate = Path(folder) / "verbatim"
        if candidate.is_file():
            return candidate
    found = shutil.which("verbatim")
    if found is None:
        raise UsageError(
            "the program `verbatim` was not found beside this Python nor on PATH",
            "Install the package again, or name the program in VERBATIM_BINARY.",
        )
    return Path(found)


def verify(path: PathLike, *options: str) -> dict[str, Any]:
    """The verdict of `verbatim verify`, as its JSON report (docs/verdict.schema.json).

    `options` are further arguments of the command, such as "--against", "reference.db". A finding
    is no error: it is in the report.
    """
    return _report(["verify", os.fspath(path), *options])


def diff(a: PathLike, b: PathLike, *options: str) -> dict[str, Any]:
    """The verdict of `verbatim diff` on two records, as its JSON report.

    `options` are further arguments of the command, such as "--rename", "names.json".
    """
    return _report(["diff", os.fspath(a), os.fspath(b), *options])


def _report(arguments: Sequence[str]) -> dict[str, Any]:
    command = [str(executable()), *arguments, "--format", "json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(
            f"{command[0]} cannot be run: {error.strerror}",
            "Install the package again, or name the program in VERBATIM_BINARY.",
        ) from error
    if done.returncode not in (0, 1):
        message, _, hint = done.stderr.strip().partition("\n")
        raise error_of(done.returncode, message, hint.strip())
    return cast(dict[str, Any], json.loads(done.stdout))
