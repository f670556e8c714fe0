"""Runs the real program with a fault in its files at a chosen operation (docs/fault-injection.md).

VERBATIM_FILE_FAULTS names the library that makes them; ctest sets that.
"""

import os
import pathlib
import random
import re

from harness import run

LIBRARY = os.environ.get("VERBATIM_FILE_FAULTS", "")
# How many operations of a run are tried with each fault: a number, or "all" of them, in turn.
POINTS = os.environ.get("VERBATIM_FAULT_POINTS", "4")
SEED = int(os.environ.get("VERBATIM_TEST_SEED") or random.SystemRandom().randrange(10**6))

MADE = re.compile(r"^file fault: (\S+) at operation (\d+), (make folder|\w+) (.*)\n", re.MULTILINE)
COUNT = re.compile(r"^file faults: (\d+) operations\n", re.MULTILINE)


def faulty(plan, folder, *arguments):
    """`plan` is like enospc@17; what happens outside `folder` is left alone."""
    if not LIBRARY:
        raise RuntimeError("VERBATIM_FILE_FAULTS must name libverbatim_file_faults.so")
    return run(*arguments, env={
        "LD_PRELOAD": LIBRARY,
        "VERBATIM_FILE_FAULT": plan,
        "VERBATIM_FILE_FAULT_FOLDER": str(pathlib.Path(folder).resolve()),
        # A sanitizer wants to be loaded first, but stands behind this library as well.
        "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0",
    })


def operations(folder, *arguments):
    """How many operations on files of `folder` an undisturbed run makes."""
    result = faulty("count", folder, *arguments)
    found = COUNT.search(result.err)
    if result.code != 0 or found is None:
        raise RuntimeError(f"cannot count operations: {result}")
    return int(found[1])


def points(count, salt):
    """The operations to try: spread over all, at places that the seed chooses."""
    if POINTS == "all":
        return list(range(1, count + 1))
    draw = random.Random(f"{SEED} {salt}")
    step = count / int(POINTS)
    return sorted({1 + int((i + draw.random()) * step) for i in range(int(POINTS))})


def faults_made(result):
    """The faults that the library says it made, as (action, operation, what, file)."""
    return MADE.findall(result.err)


def said(result):
    """What the program itself wrote to stderr."""
    return MADE.sub("", result.err)
