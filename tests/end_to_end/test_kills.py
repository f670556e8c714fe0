#!/usr/bin/env python3
"""A run killed at any moment and resumed on another number of stages is the run that was never killed.

SIGKILL comes at random moments of training, checkpointing and closing: half of the kills by the
clock, half at a random operation on a file, where checkpoints and closing have most of theirs. One
in three strikes the resumed run once more. VERBATIM_KILLS says how many (8 by default, 100 for
certainty); VERBATIM_TEST_SEED repeats what a seed drew.
"""

import collections
import contextlib
import os
import random
import signal
import subprocess
import time
import unittest

from file_faults import SEED, faulty, operations
from harness import TIMEOUT_S, EndToEndTest, command, environment, query, run

KILLS = int(os.environ.get("VERBATIM_KILLS", "8"))
SUBNETS = 48
OPTIONS = ["--checkpoint-every", "7"]


class Kills(EndToEndTest):
    def setUp(self):
        super().setUp()
        self.spec = self.write_spec({"training.subnets": SUBNETS})
        self.random = random.Random(SEED)
        self.moments = collections.Counter()
        print(f"again with: VERBATIM_TEST_SEED={SEED} VERBATIM_KILLS={KILLS}", flush=True)

    def training(self, folder, stages):
        return ["train", self.spec, "-o", folder / "run.db", "--stages", stages, *OPTIONS,
                "--head-every", "5", "--head-file", folder / "heads"]

    def resuming(self, folder, stages):
        return ["resume", folder / "run.db", "--stages", stages, *OPTIONS,
                "--head-every", "5", "--head-file", folder / "heads"]

    def undisturbed(self):
        """Content and root of a run that nobody killed, its seconds, its operations on files."""
        folder = self.folder / "undisturbed"
        folder.mkdir()
        begin = time.monotonic()
        self.expect(run(*self.training(folder, 2)), 0)
        seconds = time.monotonic() - begin
        counted = self.folder / "counted"
        counted.mkdir()
        return self.content(folder), seconds, operations(counted, *self.training(counted, 2))

    def content(self, folder):
        shown = run("show", folder / "run.db", "--format", "json").json()
        return shown["content_digest"], shown["content_root"]

    def kill_by_clock(self, arguments, folder, seconds):
        """Begins to count when the record is there."""
        process = subprocess.Popen(command(arguments), env=environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + TIMEOUT_S
        while not (folder / "run.db").exists() and process.poll() is None:
            self.assertLess(time.monotonic(), deadline, "no record was begun")
            self.wait(process, 0.002)
        self.wait(process, seconds * self.random.random())
        process.kill()
        self.assertIn(process.wait(), (0, -signal.SIGKILL), arguments)

    def wait(self, process, seconds):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=seconds)

    def kill(self, arguments, folder):
        if self.random.random() < 0.5:
            self.kill_by_clock(arguments, folder, self.seconds)
            return
        kind = self.random.choice(("kill", "tear"))
        result = faulty(f"{kind}@{self.random.randint(1, self.operations)}", folder, *arguments)
        self.assertIn(result.code, (0, -signal.SIGKILL), str(result))

    def stages(self, other_than):
        return self.random.choice([stages for stages in (1, 2, 3, 4) if stages != other_than])

    def note_moment(self, folder):
        """Where the kill struck, as far as the record tells."""
        if not (folder / "run.db").exists():
            self.moments["before the record"] += 1
            return
        status = query(folder / "run.db", "SELECT status FROM run")[0][0]
        done = query(folder / "run.db", "SELECT count(*) FROM subnets")[0][0]
        at = "closed" if status == "complete" else "closing" if done == SUBNETS else "training"
        self.moments[at] += 1

    def kill_and_resume(self, number):
        folder = self.folder / f"kill-{number}"
        folder.mkdir()
        stages = self.stages(0)
        self.kill(self.training(folder, stages), folder)
        self.note_moment(folder)
        if not (folder / "run.db").exists():
            self.expect(run(*self.training(folder, stages)), 0)
            return folder
        self.verify(folder / "run.db")
        if self.random.random() < 1 / 3:
            stages = self.stages(stages)
            self.kill(self.resuming(folder, stages), folder)
        if query(folder / "run.db", "SELECT status FROM run") != [("complete",)]:
            self.expect(run(*self.resuming(folder, self.stages(stages))), 0)
        return folder

    def test_kills(self):
        wanted, self.seconds, self.operations = self.undisturbed()
        for number in range(KILLS):
            with self.subTest(kill=number):
                folder = self.kill_and_resume(number)
                self.assertEqual(self.content(folder), wanted)
                self.verify(folder / "run.db", "--head", folder / "heads", says="intact and causal")
        print(f"{KILLS} kills: {dict(self.moments)}", flush=True)


if __name__ == "__main__":
    unittest.main()
