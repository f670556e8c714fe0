#!/usr/bin/env python3
"""A run that ends early leaves a sound record of what it did."""

import resource
import shutil
import signal
import subprocess
import unittest

from harness import LONG, SUBNETS, TIMEOUT_S, EndToEndTest, LongRunTest, command, query, run


class Interruption(LongRunTest):
    def check_prefix(self, record, *parts):
        """The record verifies as far as it goes and says that it is not whole."""
        result = self.verify(record, says=(*parts, "This verdict is about what is recorded.",
                                           "intact and causal"))
        self.verify(record, "--reexecute", "8", says="equal to the sequential reference")
        return result

    def test_interrupt(self):
        """SIGINT and SIGTERM finish the subnets in flight; a new run needs --force."""
        record = self.folder / "run.db"
        with self.training(record, "--stages", "2") as process:
            code, out, err = self.end(process, signal.SIGINT)
        self.assertEqual((code, err), (0, ""), out)
        self.assertIn("stopped on request after", out)
        self.assertEqual(query(record, "SELECT status FROM run"), [("interrupted",)])
        finished = query(record, "SELECT count(*) FROM subnets")[0][0]
        self.assertEqual(query(record, "SELECT max(seq) FROM subnets"), [(finished - 1,)])
        self.assertEqual(query(record, "SELECT max(cut) FROM checkpoints"), [(finished,)])
        self.check_prefix(record, f"The run was interrupted after {finished:,} of 100,000 subnets")
        self.expect(run("show", record), 0, out="interrupted after")
        self.refuse(["train", self.write_spec(), "-o", record], 2, "--force")
        self.train("--force")
        self.verify(record, says=f"{SUBNETS} of {SUBNETS} subnets")

    def test_fault_that_was_not_reached(self):
        """A run that ends before its injected fault says so, and its record is sound."""
        record = self.folder / "run.db"
        with self.training(record, "--inject", "deleted-row@99999") as process:
            code, out, err = self.end(process, signal.SIGINT)
        self.assertEqual((code, err), (0, ""), out)
        self.assertIn("not injected: deleted-row, because the run ended before subnet 99999", out)
        self.verify(record, says="intact and causal")

    def test_terminate(self):
        record = self.folder / "run.db"
        with self.training(record) as process:
            self.assertEqual(self.end(process, signal.SIGTERM)[0], 0)
        self.assertEqual(query(record, "SELECT status FROM run"), [("interrupted",)])

    def test_kill(self):
        """What was committed survives SIGKILL, and can be read where it lies."""
        record = self.folder / "run.db"
        with self.training(record, "--stages", "2") as process:
            self.assertEqual(self.end(process, signal.SIGKILL)[0], -signal.SIGKILL)
        self.expect(run("show", record), 0, out="never closed (still running, or killed)")
        self.check_prefix(record, "The run was never closed (still running, or killed)")
        self.expect(run("show", record, "--subnet", "3"), 0)
        self.train("--force")
        self.verify(record, says=f"{SUBNETS} of {SUBNETS} subnets")

    def test_verify_while_training(self):
        """A record can be read and verified while it is written."""
        record = self.folder / "run.db"
        with self.training(record) as process:
            self.verify(record, says=("passed   causality", "never closed"))
            self.expect(run("show", record), 0)
            self.assertIsNone(process.poll())
            self.assertEqual(self.end(process, signal.SIGINT)[0], 0)
        self.verify(record, says="was interrupted after")

    def test_killed_record_without_its_log(self):
        """The -wal belongs to the record: without it the file alone is an older, sound state."""
        record = self.folder / "run.db"
        with self.training(record) as process:
            self.end(process, signal.SIGKILL)
        alone = self.folder / "alone.db"
        shutil.copyfile(record, alone)
        self.verify(alone, says="never closed")


class LimitedDisk(EndToEndTest):
    """A size limit of the process stands for the full disk: it needs no disk to fill."""

    def limited(self, limit_bytes, *arguments):
        """As after `ulimit -f`: SIGXFSZ has its default action, which would end the program."""
        limits = (limit_bytes, limit_bytes)
        return run(*arguments,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits))

    def test_full_during_training(self):
        """Training stops with exit code 4; what was committed opens and verifies."""
        record = self.folder / "run.db"
        result = self.limited(1_500_000, "train", self.write_spec(), "-o", record, "--subnets", LONG,
                              "--stages", "2")
        self.expect(result, 4, err=("verbatim: error: ", str(record), "size limit",
                                    "what was committed stays readable"))
        self.assertGreater(query(record, "SELECT count(*) FROM subnets")[0][0], 8)
        self.verify(record, says=("intact and causal", "This verdict is about what is recorded."))
        self.verify(record, "--reexecute", "8", says="equal to the sequential reference")

    def test_full_at_start(self):
        """No half-made record is left behind."""
        self.expect(self.limited(1000, "train", self.write_spec(), "-o", self.folder / "run.db"), 4,
                    err="verbatim: error: ")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["spec.json"])

    def test_report_that_does_not_fit(self):
        record = self.train("--subnets", "2")
        report = self.folder / "report.json"
        self.expect(self.limited(100, "verify", record, "--format", "json", "-o", report), 4,
                    err=f"{report} cannot be written")
        self.expect(run("verify", record, "-o", "/dev/full"), 4, err="/dev/full cannot be written")

    def test_full_standard_output(self):
        record = self.train("--subnets", "2")
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run(command(["show", record]), stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("standard output cannot be written", done.stderr)


class NotANumber(EndToEndTest):
    """A learning rate that no weights survive."""

    CHANGES = {"training.lr.base": 3e38}

    def test_run_stops_and_keeps_the_loss(self):
        record = self.folder / "run.db"
        result = run("train", self.write_spec(self.CHANGES), "-o", record, "--stages", "2")
        self.expect(result, 4, err=("the run failed after", "the loss of subnet",
                                    f"verbatim show {record}"))
        # Not "-nan", which is how C prints the sign of something that has none.
        self.assertRegex(result.err, r"the loss of subnet \d+ is (NaN|infinite)\n")
        seq = int(result.err.split("the loss of subnet ")[1].split()[0])
        bits = query(record, "SELECT loss_bits FROM subnets WHERE seq = ?", seq)[0][0]
        self.assertEqual(bits >> 23 & 0xff, 0xff, "the exponent of infinities and NaNs")
        self.assertEqual(query(record, "SELECT status FROM run"), [("failed",)])
        self.expect(run("show", record), 0, out=f"the loss of subnet {seq}")
        self.verify(record, says=("The run failed after", f"the loss of subnet {seq}"))
        self.verify(record, "--reexecute", "all", says="equal to the sequential reference")

    def test_going_on(self):
        """NaNs are compared by their bits, so they can be equal."""
        record = self.train("--no-stop-on-nan", "--stages", "3", spec=self.write_spec(self.CHANGES))
        self.assertGreater(query(record, "SELECT count(*) FROM subnets "
                                         "WHERE loss_bits & 0x7fffffff > 0x7f800000")[0][0], 0)
        self.verify(record, "--reexecute", "all",
                    says=("NaN", f"{SUBNETS} subnets equal", "equal to the sequential reference"))
        self.expect(run("show", record), 0, out="last NaN")
        loss = run("show", record, "--format", "json").json()["loss"]
        self.assertIsNone(loss["last"]["value"])


if __name__ == "__main__":
    unittest.main()
