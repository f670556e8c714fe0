"""Runs the real program and keeps what it said. VERBATIM_BINARY names it; ctest sets that, and

    VERBATIM_BINARY=build/dev/cli/verbatim tests/end_to_end/test_usage.py -k option_values

runs one test by hand.

Engine starts (train, verify --reexecute) take a second or two each; everything else a few
milliseconds. Tests that only read or damage a record share one, see `recorded`.
"""

import contextlib
import copy
import dataclasses
import functools
import gzip
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

BINARY = os.environ.get("VERBATIM_BINARY") or sys.exit(
    "VERBATIM_BINARY must name the program to test, like build/dev/cli/verbatim")
DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "digits"
SUBNETS = 16
# Subnets of a run that no test waits for.
LONG = 100_000
# Against a program that hangs; far above what the slowest (sanitized) build needs.
TIMEOUT_S = 300

SPEC = {
    "name": "end to end",
    "seed": 7,
    "data": {"format": "idx", "folder": str(DIGITS), "mean": 4.9, "std": 6.0},
    "supernet": {
        "stem": {"op": "conv", "channels": 4},
        "blocks": [{
            "repeat": 6,
            "residual": True,
            "candidates": [{"op": "conv"}, {"op": "separable_conv"}, {"op": "skip"}],
        }],
        "head": {"op": "classifier"},
    },
    "training": {
        "subnets": SUBNETS,
        "batch": 16,
        "microbatches": 2,
        "optimizer": {"kind": "sgd", "momentum": 0.9},
        "lr": {"kind": "constant", "base": 0.05},
    },
    "evaluation": {"subnets": 2, "calibration_batches": 1},
}


@dataclasses.dataclass
class Result:
    code: int
    out: str
    err: str

    def __str__(self):
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"

    def json(self):
        return json.loads(self.out)


def environment(**changes):
    """This process's environment without what would change the program's behaviour."""
    variables = {name: value for name, value in os.environ.items()
                 if name not in ("VERBATIM_ENGINE", "NO_COLOR")}
    return {**variables, **changes}


def command(arguments):
    return [BINARY, *map(str, arguments)]


def run(*arguments, env=None, **options):
    """`env` adds variables; the other options are subprocess.run's."""
    done = subprocess.run(command(arguments), env=environment(**(env or {})), text=True,
                          capture_output=True, timeout=TIMEOUT_S, check=False, **options)
    return Result(done.returncode, done.stdout, done.stderr)


def changed_spec(changes):
    """SPEC with values replaced or added by path: {"training.batch": 0}. None removes a field."""
    spec = copy.deepcopy(SPEC)
    for path, value in changes.items():
        *parents, last = [int(key) if key.isdigit() else key for key in path.split(".")]
        place = functools.reduce(lambda inner, key: inner[key], parents, spec)
        if value is None:
            del place[last]
        else:
            place[last] = value
    return spec


def idx_bytes(name):
    return gzip.decompress((DIGITS / f"{name}.gz").read_bytes())


class EndToEndTest(unittest.TestCase):
    """A test with a folder of its own, and the steps that most tests are made of."""

    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="verbatim-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write_spec(self, changes=None, name="spec.json"):
        path = self.folder / name
        path.write_text(json.dumps(changed_spec(changes or {}), indent=1), encoding="utf-8")
        return path

    def write_data(self, images=None, labels=None):
        """A folder with the digits as IDX files, or with other bytes in place of a file's."""
        folder = self.folder / "data"
        folder.mkdir(exist_ok=True)
        for name, content in (("train-images-idx3-ubyte", images),
                              ("train-labels-idx1-ubyte", labels)):
            (folder / name).write_bytes(idx_bytes(name) if content is None else content)
        return folder

    def train(self, *options, spec=None, record="run.db"):
        """Trains and returns the record's path; anything but success fails the test."""
        path = self.folder / record
        self.expect(run("train", spec or self.write_spec(), "-o", path, *options), 0)
        return path

    def verify(self, record, *options, code=0, says=()):
        return self.expect(run("verify", record, *options), code, out=says)

    def expect(self, result, code, out=(), err=()):
        """Checks the exit code and that both streams have these parts; a part may be one text."""
        self.assertEqual(result.code, code, str(result))
        for stream, parts in ((result.out, out), (result.err, err)):
            for part in [parts] if isinstance(parts, str) else parts:
                self.assertIn(part, stream, str(result))
        return result

    def refuse(self, arguments, code, *parts):
        """An error goes to stderr alone, as `verbatim: error: …`."""
        result = self.expect(run(*arguments), code, err=("verbatim: error: ", *parts))
        self.assertEqual(result.out, "", str(result))
        return result


class LongRunTest(EndToEndTest):
    """A test that interferes with a training under way."""

    @contextlib.contextmanager
    def training(self, record, *options, subnets=10, length=LONG):
        """A run of `length` subnets under way, with at least `subnets` of them committed."""
        arguments = ["train", self.write_spec(), "-o", record, "--subnets", length, *options]
        process = subprocess.Popen(command(arguments), env=environment(), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            self.await_rows(process, record, subnets)
            yield process
        finally:
            process.kill()
            process.communicate()

    def await_rows(self, process, record, count, table="subnets"):
        deadline = time.monotonic() + TIMEOUT_S
        while self.committed(record, table) < count:
            self.assertLess(time.monotonic(), deadline, "nothing was committed")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.02)
                self.fail(f"training ended early: {process.communicate()}")

    def committed(self, record, table="subnets"):
        try:
            database = sqlite3.connect(f"file:{record}?mode=ro", uri=True)
        except sqlite3.OperationalError:
            return 0
        with contextlib.closing(database), contextlib.suppress(sqlite3.OperationalError):
            return database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return 0

    def end(self, process, number):
        process.send_signal(number)
        out, err = process.communicate(timeout=TIMEOUT_S)
        return process.returncode, out, err


class SharedRecord:
    """A record that is trained once for all tests of a file."""

    def __init__(self, *options, changes=None):
        self._folder = tempfile.TemporaryDirectory(prefix="verbatim-test-")
        folder = pathlib.Path(self._folder.name)
        spec = folder / "spec.json"
        spec.write_text(json.dumps(changed_spec(changes or {})), encoding="utf-8")
        self.path = folder / "run.db"
        self.result = run("train", spec, "-o", self.path, *options)
        if self.result.code != 0:
            raise RuntimeError(f"the shared record could not be trained: {self.result}")


@functools.lru_cache(maxsize=None)
def recorded(*options):
    """The shared record of SPEC with these options of `train`."""
    return SharedRecord(*options)


def copy_record(test, *options):
    """A copy of the shared record that the test may damage."""
    path = test.folder / "copy.db"
    shutil.copyfile(recorded(*options).path, path)
    return path


def query(record, sql, *parameters):
    database = sqlite3.connect(record)
    try:
        return database.execute(sql, parameters).fetchall()
    finally:
        database.close()


def tamper(record, *statements):
    """Runs SQL that changes exactly one row each: (sql, parameters…) or sql alone."""
    database = sqlite3.connect(record)
    try:
        database.execute("PRAGMA ignore_check_constraints = ON")
        with database:
            for statement in statements:
                sql, *parameters = [statement] if isinstance(statement, str) else statement
                changed = database.execute(sql, parameters).rowcount
                if changed != 1:
                    raise AssertionError(f"{sql} changed {changed} rows")
    finally:
        database.close()


def content_digest(record):
    return run("show", record, "--format", "json").json()["content_digest"]
