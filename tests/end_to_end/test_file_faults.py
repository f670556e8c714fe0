#!/usr/bin/env python3
"""A run whose files fail at any one operation ends with a clear error, and `resume` completes it.

Every operation on a file that a small training with checkpoints and heads makes is counted; then
each kind of fault is made at a few of them, or, with VERBATIM_FAULT_POINTS=all, at every one in
turn of a still smaller training (some 190 operations: an hour of one core). Prints its seed;
VERBATIM_TEST_SEED repeats it.
"""

import re
import signal
import unittest

from file_faults import POINTS, SEED, faults_made, faulty, operations, points, said
from harness import EndToEndTest, query, run

IS_EXHAUSTIVE = POINTS == "all"
EVERY = "2" if IS_EXHAUSTIVE else "5"
CHANGES = {
    "training.subnets": 4,
    "supernet.blocks.0.repeat": 1,
    "supernet.blocks.0.candidates": [{"op": "conv"}, {"op": "skip"}],
} if IS_EXHAUSTIVE else {}
CHECKPOINTS = ["--checkpoint-every", EVERY]
HEADS = ["--head-every", "2" if IS_EXHAUSTIVE else "4"]
# What the program need not succeed in: the folder's own sync, which some file systems cannot, what
# is left over, and the index of SQLite's log, which is made again.
HARMLESS = re.compile(r"^(sync( |$)(?!.*\.)|remove |\w+ .*-shm$)")


class FileFaults(EndToEndTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        print(f"again with: VERBATIM_TEST_SEED={SEED}", flush=True)

    def setUp(self):
        super().setUp()
        self.spec = self.write_spec(CHANGES)
        undisturbed = self.folder / "undisturbed"
        undisturbed.mkdir()
        self.expect(run(*self.training(undisturbed)), 0)
        self.wanted = self.content(undisturbed)
        counted = self.folder / "counted"
        counted.mkdir()
        self.count = operations(counted, *self.training(counted))
        self.assertGreater(self.count, 50)
        self.point = 0

    def training(self, folder):
        return ["train", self.spec, "-o", folder / "run.db", "--stages", "2", *CHECKPOINTS, *HEADS,
                "--head-file", folder / "heads"]

    def resuming(self, folder, stages=3):
        return ["resume", folder / "run.db", "--stages", str(stages), *CHECKPOINTS, *HEADS,
                "--head-file", folder / "heads"]

    def content(self, folder):
        """What equal runs have equal."""
        shown = run("show", folder / "run.db", "--format", "json").json()
        return shown["content_digest"]

    def walk(self, plan, check, begin=training):
        """Makes a fault, then `check(result, folder)`, then has the run completed."""
        for point in points(self.count, plan):
            folder = self.folder / f"{plan}-{point}"
            folder.mkdir()
            named = f"{plan.rstrip('+')}@{point}{'+' if plan.endswith('+') else ''}"
            self.point = point
            with self.subTest(plan=named):
                result = faulty(named, folder, *self.training(folder))
                check(result, folder)
                self.complete(folder)

    def complete(self, folder):
        """The record, where one is there, opens, verifies and can be completed."""
        record = folder / "run.db"
        if not record.exists():
            self.expect(run(*self.training(folder)), 0)
        else:
            self.verify(record, says="intact and causal")
            if query(record, "SELECT status FROM run") != [("complete",)]:
                self.expect(run(*self.resuming(folder)), 0)
        self.assertEqual(self.content(folder), self.wanted)
        self.verify(record, "--head", folder / "heads")
        self.assertEqual(query(record, "SELECT status FROM run"), [("complete",)])

    def check_error(self, result, folder):
        """Exit code 4 with one message and its hint; 0 only where the fault can do no harm."""
        made = faults_made(result)
        if result.code == 0:
            for _, _, what, name in made:
                self.assertRegex(f"{what} {name}", HARMLESS, str(result))
            return
        self.assertTrue(made, str(result))
        self.assertEqual(result.code, 4, str(result))
        lines = said(result).splitlines()
        self.assertRegex(lines[0], "^verbatim: error: ", str(result))
        self.assertIn(str(folder), lines[0], str(result))
        self.assertLessEqual(len(lines), 2, str(result))
        self.assertTrue(all(line.startswith("  ") for line in lines[1:]), str(result))
        could_not_go = {name for _, _, what, name in made if what == "remove"}
        left = {path.name for path in folder.iterdir() if ".new-" in path.name}
        self.assertLessEqual(left, could_not_go, "half-made files")

    def check_killed(self, result, _folder):
        # Commits go by the clock, so one run's last operations may lie beyond another's end.
        if self.point > 0.8 * self.count and result.code == 0:
            return
        self.assertEqual(result.code, -signal.SIGKILL, str(result))

    def check_unharmed(self, result, _folder):
        self.expect(result, 0)

    def test_disk_full(self):
        """From one operation on, for good; and at one alone, after which there is room again."""
        self.walk("enospc+", self.check_error)
        self.walk("enospc", self.check_error)

    def test_disk_broken(self):
        self.walk("eio+", self.check_error)
        self.walk("eio", self.check_error)

    def test_read_only(self):
        self.walk("erofs+", self.check_error)

    def test_permission_lost(self):
        self.walk("eacces+", self.check_error)
        self.walk("eacces", self.check_error)

    def test_killed(self):
        """Before an operation, and in the middle of a write."""
        self.walk("kill", self.check_killed)
        self.walk("tear", self.check_killed)

    def test_short_and_slow(self):
        """Partial writes are gone on with, and a slow disk only slows down."""
        self.walk("short", self.check_unharmed)
        self.walk("short+", self.check_unharmed)
        self.walk("delay+", self.check_unharmed)

    def test_resume_disturbed(self):
        """What goes on with a run may fail, or be killed, as well."""
        for plan in ("enospc", "eio", "kill", "tear"):
            for point in points(self.count, f"resume {plan}"):
                folder = self.folder / f"resume-{plan}-{point}"
                folder.mkdir()
                with self.subTest(plan=f"{plan}@{point}"):
                    self.interrupt(folder)
                    result = faulty(f"{plan}@{point}", folder, *self.resuming(folder))
                    self.assertIn(result.code, (0, 4, -signal.SIGKILL), str(result))
                    self.complete(folder)

    def interrupt(self, folder):
        """A run that was killed in its second half."""
        result = faulty(f"kill@{self.count * 2 // 3}", folder, *self.training(folder))
        self.check_killed(result, folder)


if __name__ == "__main__":
    unittest.main()
