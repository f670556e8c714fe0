#!/usr/bin/env python3
"""What ranks keep of their own part of a run: there when rank 0 is gone, equal to the record, and
not to one that was rewritten so that it agrees with itself."""

import signal
import time
import unittest

from harness import TIMEOUT_S, EndToEndTest, query, run, tamper
from ranks import Ranks, run_ranks
from seal import seal

SUBNETS = 24
SPEC = {"training.subnets": SUBNETS}
LONG = {"training.subnets": 4000}


class PartsTest(EndToEndTest):
    def setUp(self):
        super().setUp()
        self.spec = self.write_spec(SPEC)
        self.record = self.folder / "run.db"
        self.part = self.folder / "run.db.rank-1"

    def train_ranks(self, ranks, *options):
        results = run_ranks(ranks, "train", self.spec, "-o", self.record, *options)
        for result in results:
            self.expect(result, 0)
        return results

    def parts(self):
        return sorted(path.name for path in self.folder.glob("run.db.rank-*"))


class Complete(PartsTest):
    def test_removed(self):
        self.train_ranks(3)
        self.assertEqual(self.parts(), [])

    def test_nothing_recorded(self):
        for result in run_ranks(2, "train", self.spec, "--record", "off", "--keep-parts"):
            self.expect(result, 0)
        self.assertEqual(self.parts(), [])

    def test_kept_and_equal(self):
        for level in ("losses", "weights", "full"):
            with self.subTest(level):
                results = self.train_ranks(3, "--keep-parts", "--force", "--record", level)
                self.assertIn(f"rank 1's part of the run is in {self.part}", results[1].err)
                self.assertEqual(self.parts(), ["run.db.rank-1", "run.db.rank-2"])
                self.verify(self.record, "--part", self.part, "--part",
                            self.folder / "run.db.rank-2",
                            says=f"{2 * SUBNETS} parts compared, of ranks 1, 2\n")

    def test_forged(self):
        """Agrees with itself; what another host kept tells."""
        self.train_ranks(2, "--keep-parts")
        tamper(self.record, "UPDATE subnets SET loss_bits = loss_bits + 1 WHERE seq = 5")
        self.verify(self.record, "--part", self.part, code=3, says="FAILED   parts")
        seal(self.record)
        self.verify(self.record, says="intact and causal")
        self.verify(self.record, "--part", self.part, code=1,
                    says=("FAILED   parts", "First difference: subnet 5", "damaged or forged",
                          str(self.part), "not what its ranks kept"))

    def test_other_runs_file(self):
        self.train_ranks(2, "--keep-parts")
        other = self.write_spec({**SPEC, "seed": 99}, name="other.json")
        record = self.train(spec=other, record="other.db")
        self.expect(run("verify", record, "--part", self.part), 3,
                    err="is of a run with another spec")

    def test_old_file_is_refused(self):
        self.part.write_bytes(b"all that is left of a run")
        for options in ((), ("--force",)):
            results = run_ranks(2, "train", self.spec, "-o", self.record, *options)
            for result in results:
                self.expect(result, 2, err="run.db.rank-1")
            self.assertFalse(self.record.exists())
        self.assertEqual(self.part.read_bytes(), b"all that is left of a run")


class Stopped(PartsTest):
    def setUp(self):
        super().setUp()
        self.spec = self.write_spec(LONG)

    def committed(self):
        return query(self.record, "SELECT count(*) FROM subnets")[0][0]

    def end(self, number, rank, *arguments, subnets=10):
        """Sends a signal to one rank once so many subnets are recorded."""
        with Ranks(2, *arguments) as started:
            deadline = time.monotonic() + TIMEOUT_S
            while not self.record.exists() or self.committed() < subnets:
                self.assertLess(time.monotonic(), deadline, "nothing was committed")
                time.sleep(0.05)
            started.processes[rank].send_signal(number)
            return started.results()

    def train_until(self, number, rank):
        return self.end(number, rank, "train", self.spec, "-o", self.record, "--checkpoint-every",
                        5)

    def test_interrupted(self):
        results = self.train_until(signal.SIGINT, 0)
        self.expect(results[1], 0, err="rank 1's part of the run is in")
        self.verify(self.record, "--part", self.part,
                    says=f"{self.committed():,} parts compared, of rank 1\n")

    def test_killed_and_resumed(self):
        """Rank 0 may have died before it had committed what rank 1 had finished; and the other way
        about. The resumption executes some subnets again, and rank 1 has both."""
        for rank in (0, 1):
            with self.subTest(killed=rank):
                self.record = self.folder / f"killed-{rank}.db"
                self.part = self.folder / f"killed-{rank}.db.rank-1"
                results = self.train_until(signal.SIGKILL, rank)
                if rank == 0:
                    self.expect(results[1], 4, err="rank 1's part of the run is in")
                result = self.verify(self.record, "--part", self.part, says="of rank 1")
                self.assertIn("passed   parts", result.out)
                self.end(signal.SIGINT, 1, "resume", self.record, subnets=self.committed() + 10)
                self.verify(self.record, "--part", self.part, says="passed   parts")

    def test_resumption_of_another_run(self):
        self.train_until(signal.SIGINT, 0)
        spec = self.write_spec({**LONG, "seed": 99}, name="other.json")
        kept = self.part.rename(self.folder / "kept")
        other = self.folder / "other.db"
        with Ranks(2, "train", spec, "-o", other) as started:
            while not other.exists() or query(other, "SELECT count(*) FROM subnets")[0][0] < 5:
                time.sleep(0.05)
            started.processes[0].send_signal(signal.SIGINT)
            started.results()
        kept.rename(self.folder / "other.db.rank-1")
        results = run_ranks(2, "resume", other)
        self.expect(results[1], 2, err=("other.db.rank-1", "of a run with another spec"))
        self.expect(results[0], 4, err=("the run failed again after", "rank 1 (host ",
                                        "of a run with another spec"))
        self.assertEqual(query(other, "SELECT status FROM run"), [("failed",)])


if __name__ == "__main__":
    unittest.main()
