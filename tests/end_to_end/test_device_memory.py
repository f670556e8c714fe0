#!/usr/bin/env python3
"""Runs whose stages may hold only some of the layers leave what runs without such a bound do."""

import re
import shutil
import signal
import unittest

from harness import EndToEndTest, LongRunTest, content_digest, query, recorded, run

LAYOUTS = [("--stages", "1"), ("--stages", "2", "--in-flight", "8"), ("--stages", "3")]


class DeviceMemory(EndToEndTest):
    def least(self, *options):
        """What a budget of one byte is refused with."""
        result = self.refuse(["train", self.write_spec(), "--record", "off", "--device-memory", "1",
                              *options], 2, "--device-memory 1: a stage must hold the layers")
        return int(re.search(r"at least --device-memory (\d+)", result.err)[1])

    def test_equal(self):
        """The least budget, and the word on it: one byte less is refused, with exit code 2."""
        for number, layout in enumerate(LAYOUTS):
            with self.subTest(layout=layout):
                least = self.least(*layout)
                spec = self.write_spec()
                record = self.folder / f"run{number}.db"
                self.refuse(["train", spec, "-o", record, "--device-memory", least - 1, *layout], 2,
                            f"--device-memory {least}")
                self.assertFalse(record.exists())
                result = self.expect(run("train", spec, "-o", record, "--device-memory", least,
                                         *layout), 0, out="were there when wanted")
                self.assertIn("MB loaded", result.out)
                self.assertEqual(content_digest(record), content_digest(recorded().path))
                self.assertEqual(query(record, "SELECT * FROM evaluations"),
                                 query(recorded().path, "SELECT * FROM evaluations"))

    def test_reexecution(self):
        least = self.least()
        self.verify(recorded().path, "--reexecute", "all", "--device-memory", least,
                    says="equal to the sequential reference, and the evaluations")
        self.expect(run("replay", recorded().path, "--stages", "2", "--device-memory", "1GiB"), 0)
        self.expect(run("replay", recorded().path, "--subnet", "7", "--device-memory", least), 0)
        self.refuse(["verify", recorded().path, "--reexecute", "all", "--device-memory", "9"], 2,
                    "a stage must hold the layers")
        self.refuse(["verify", recorded().path, "--device-memory", "1GiB"], 2, "--reexecute")

    def test_fault(self):
        """A fault on purpose is found where it was made."""
        faulty = self.train("--stages", "2", "--device-memory", self.least("--stages", "2"),
                            "--inject", "lost-update@5")
        self.verify(faulty, "--reexecute", "all", "--device-memory", self.least(), code=1,
                    says="subnet 5")

    def test_explanation(self):
        """The fault is pinned down within the bound, or within what the recorded layout needs."""
        least = self.least("--stages", "2")
        faulty = self.train("--stages", "2", "--device-memory", least, "--inject", "lost-update@5")
        for arguments in (("replay", faulty), ("verify", faulty, "--reexecute", "all"),
                          ("diff", recorded().path, faulty)):
            with self.subTest(command=arguments[0]):
                budget = self.least() if arguments[0] != "diff" else 1
                bounded = run(*arguments, "--explain", "--device-memory", budget)
                self.expect(bounded, 1, out="Explanation")
                self.assertEqual(bounded.out, run(*arguments, "--explain").out)
        self.refuse(["diff", recorded().path, faulty, "--device-memory", "1MiB"], 2, "--explain")

    def test_refusals(self):
        spec = self.write_spec()
        for options, says in [(("--policy", "gpipe"), "--policy gpipe"),
                              (("--device-memory", "64MB"), "'64MB' is no number of bytes")]:
            self.refuse(["train", spec, "--record", "off", "--device-memory", "1GiB", *options], 2,
                        says)


class Interrupted(LongRunTest):
    BUDGET = ("--stages", "2", "--device-memory", "64KiB")

    def test_interrupt(self):
        """Ctrl-C writes everything back, and leaves a checkpoint of it."""
        record = self.folder / "run.db"
        with self.training(record, *self.BUDGET, "--checkpoint-every", "4") as process:
            code, out, err = self.end(process, signal.SIGINT)
        self.assertEqual((code, err), (0, ""), out)
        self.assertIn("stopped on request after", out)
        finished = query(record, "SELECT count(*) FROM subnets")[0][0]
        self.assertEqual(query(record, "SELECT max(cut) FROM checkpoints"), [(finished,)])
        self.verify(record, "--reexecute", "8", says="equal to the sequential reference")

    def test_kill(self):
        """A run that was killed goes on under another budget, or without one."""
        length = 300
        killed = self.folder / "killed"
        killed.mkdir()
        record, whole = killed / "run.db", self.folder / "whole.db"
        with self.training(record, *self.BUDGET, "--checkpoint-every", "4",
                           subnets=40, length=length) as process:
            self.await_rows(process, record, 1, "checkpoints")
            self.end(process, signal.SIGKILL)
        self.train("--subnets", length, record=whole.name)
        again = shutil.copytree(killed, self.folder / "again") / "run.db"
        for path, options in ((record, ("--stages", "3", "--device-memory", "48KiB")), (again, ())):
            self.expect(run("resume", path, *options), 0, out="went on from the checkpoint")
            self.expect(run("diff", path, whole), 0)


if __name__ == "__main__":
    unittest.main()
