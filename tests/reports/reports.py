"""The reports that write_reports has written: VERBATIM_REPORTS names their folder."""

import os
import pathlib
import sys

FOLDER = pathlib.Path(os.environ.get("VERBATIM_REPORTS") or sys.exit(
    "VERBATIM_REPORTS must name the folder that write_reports has written"))
ROOT = pathlib.Path(__file__).resolve().parents[2]


def named(suffix):
    """All reports of one kind by name; a folder without any is an error, not an empty test."""
    found = {path.stem: path for path in sorted(FOLDER.glob(f"*{suffix}"))}
    if not found:
        raise FileNotFoundError(f"no *{suffix} in {FOLDER}")
    return found
