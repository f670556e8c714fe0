#!/usr/bin/env python3
"""A run that was stopped goes on, and ends as if nothing had happened."""

import contextlib
import json
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest

from harness import (TIMEOUT_S, EndToEndTest, command, content_digest, environment, query, recorded,
                     run)
from seal import seal

SUBNETS = 150
SLOW = {"training.subnets": SUBNETS, "training.batch": 64}


class Resume(EndToEndTest):
    def setUp(self):
        super().setUp()
        self.spec = self.write_spec(SLOW)
        self.record = self.folder / "run.db"

    @contextlib.contextmanager
    def training(self, *options, subnets, what="train", where="TRUE"):
        """A run under way, with that many subnets committed, of those that are asked for."""
        arguments = [self.spec, "-o", self.record] if what == "train" else [self.record]
        process = subprocess.Popen(command([what, *arguments, *options]), env=environment(),
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            deadline = time.monotonic() + TIMEOUT_S
            while self.committed(where) < subnets:
                self.assertLess(time.monotonic(), deadline, "nothing was committed")
                self.assertIsNone(process.poll(), "the run ended too early for this test")
                time.sleep(0.005)
            yield process
        finally:
            process.kill()
            process.communicate()

    def committed(self, where="TRUE"):
        try:
            database = sqlite3.connect(f"file:{self.record}?mode=ro", uri=True)
        except sqlite3.OperationalError:
            return 0
        with contextlib.closing(database), contextlib.suppress(sqlite3.OperationalError):
            return database.execute(f"SELECT count(*) FROM subnets WHERE {where}").fetchone()[0]
        return 0

    def stop(self, number, *options, subnets=12, where="TRUE"):
        with self.training(*options, subnets=subnets, where=where) as process:
            process.send_signal(number)
            process.communicate(timeout=TIMEOUT_S)

    def uninterrupted(self, *options):
        return self.train(*options, spec=self.spec, record="whole.db")

    def check_whole(self, whole):
        """The record is complete, verifies, and equals the uninterrupted run's."""
        self.assertEqual(query(self.record, "SELECT status, ended_utc IS NULL FROM run"),
                         [("complete", 0)])
        self.assertEqual(content_digest(self.record), content_digest(whole))
        self.verify(self.record, "--reexecute", "all", says="equal to the sequential reference")
        self.expect(run("diff", self.record, whole), 0)

    def test_interrupted(self):
        """Ctrl-C leaves a checkpoint where it stopped: nothing is executed twice."""
        self.stop(signal.SIGINT, "--stages", "2", "--recompute", "1-6")
        finished = self.committed()
        result = self.expect(run("resume", self.record, "--stages", "3", "--in-flight", "6",
                                 "--recompute", "all"), 0,
                             out=(f"went on from the checkpoint at subnet {finished}",
                                  f"trained {SUBNETS - finished} subnets", "next: verbatim verify"))
        self.assertNotIn("compared", result.out)
        self.check_whole(self.uninterrupted())
        rows = query(self.record, "SELECT resumption, stages, in_flight, cut FROM resumptions")
        self.assertEqual(rows, [(1, 3, 6, finished)])

    def test_killed_between_checkpoints(self):
        """What was recorded after the newest checkpoint is executed again and compared."""
        self.stop(signal.SIGKILL, "--checkpoint-every", "5", "--stages", "2", subnets=1,
                  where="seq > (SELECT max(cut) FROM checkpoints)")
        result = self.expect(run("resume", self.record), 0,
                             out=("went on from the checkpoint at subnet ",
                                  "with what was recorded: equal"))
        cut = int(result.out.split("checkpoint at subnet ")[1].split()[0])
        self.assertEqual(cut % 5, 0)
        self.check_whole(self.uninterrupted())

    def test_killed_without_checkpoints(self):
        self.stop(signal.SIGKILL, "--keep-checkpoints", "0", "--stages", "2")
        self.expect(run("resume", self.record, "--stages", "2"), 0,
                    out=("began with the initial weights", "with what was recorded: equal"))
        self.check_whole(self.uninterrupted())

    def test_lost_checkpoint(self):
        """A damaged or missing file is named, and an older start is taken."""
        self.stop(signal.SIGINT, "--checkpoint-every", "5", "--stages", "2")
        newest = query(self.record, "SELECT max(cut) FROM checkpoints")[0][0]
        name = query(self.record, "SELECT file FROM checkpoint_layers WHERE cut = ? AND file NOT IN "
                                  "(SELECT file FROM checkpoint_layers WHERE cut < ?)",
                     newest, newest)[0][0]
        file = self.folder / "run.db.checkpoints" / f"{name.lower()}.safetensors"
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
        self.expect(run("resume", self.record), 0, out="with what was recorded: equal",
                    err=f"the checkpoint at subnet {newest} cannot be used")
        self.check_whole(self.uninterrupted())

    def test_checkpoint_of_something_else(self):
        """Whole files and seals that fit do not make it what was recorded."""
        self.stop(signal.SIGINT, "--checkpoint-every", "5", "--stages", "2")
        database = sqlite3.connect(self.record)
        with contextlib.closing(database), database:
            newest = database.execute("SELECT max(cut) FROM checkpoints").fetchone()[0]
            database.execute("UPDATE checkpoints SET manifest = (SELECT manifest FROM checkpoints "
                             "ORDER BY cut LIMIT 1) WHERE cut = ?", [newest])
        seal(self.record)
        self.expect(run("resume", self.record), 0, out="with what was recorded: equal",
                    err=(f"the checkpoint at subnet {newest} cannot be used", "instead of"))
        self.check_whole(self.uninterrupted())

    def test_lost_folder(self):
        self.stop(signal.SIGINT)
        shutil.rmtree(self.folder / "run.db.checkpoints")
        self.expect(run("resume", self.record, "--stages", "2"), 0,
                    out="began with the initial weights")
        self.check_whole(self.uninterrupted())

    def test_resumed_again_and_again(self):
        """Each resumption has its row; their layouts differ, the content does not."""
        self.stop(signal.SIGKILL, "--checkpoint-every", "4", subnets=8)
        for stages in (3, 1):
            more = self.committed() + 1
            with self.training("--stages", stages, subnets=more, what="resume") as process:
                process.kill()
        self.expect(run("resume", self.record, "--stages", "2"), 0)
        self.check_whole(self.uninterrupted("--stages", "2"))
        rows = query(self.record, "SELECT resumption, stages FROM resumptions ORDER BY 1")
        self.assertEqual(rows, [(1, 3), (2, 1), (3, 2)])
        shown = self.expect(run("show", self.record), 0, out="resumed")
        self.assertIn("3 stages", shown.out)

    def test_full_level_and_timeline(self):
        """Activations and gradients are compared too, and the timeline goes on after the gap."""
        self.stop(signal.SIGKILL, "--checkpoint-every", "5", "--record", "full", subnets=14)
        self.expect(run("resume", self.record, "--stages", "2"), 0)
        whole = self.uninterrupted("--record", "full")
        self.assertEqual(content_digest(self.record), content_digest(whole))
        first, last = (query(self.record, f"SELECT {what}(begin_ns) FROM timeline WHERE seq = ?", seq)
                       [0][0] for what, seq in (("min", 0), ("max", SUBNETS - 1)))
        self.assertGreater(last, first)

    def test_overlap_that_differs(self):
        """A recorded subnet that this machine computes otherwise: exit code 1, nothing is added."""
        self.stop(signal.SIGKILL, "--checkpoint-every", "5", subnets=14)
        before = self.committed()
        seq = query(self.record, "SELECT max(seq) FROM subnets")[0][0]
        database = sqlite3.connect(self.record)
        with contextlib.closing(database), database:
            database.execute("DELETE FROM checkpoints WHERE cut > ?", (seq,))
            database.execute("UPDATE subnets SET loss_bits = loss_bits + 1 WHERE seq = ?", (seq,))
        seal(self.record)
        self.expect(run("resume", self.record), 1, out=(f"subnet {seq}", "loss"))
        self.assertEqual(self.committed(), before)
        self.assertEqual(query(self.record, "SELECT status FROM run"), [("failed",)])

    def test_complete(self):
        whole = recorded("--stages", "1").path
        self.expect(run("resume", whole), 0, out="is complete: 16 subnets")

    def test_live_run(self):
        """Two writers would spoil each other's record."""
        with self.training(subnets=4) as process:
            self.refuse(["resume", self.record], 4, "in use")
            self.assertIsNone(process.poll())

    def test_injected(self):
        self.stop(signal.SIGINT, "--inject", "deleted-row@149")
        self.refuse(["resume", self.record], 2, "a fault was injected")

    def test_damaged(self):
        self.stop(signal.SIGINT)
        database = sqlite3.connect(self.record)
        with contextlib.closing(database), database:
            database.execute("UPDATE subnets SET loss_bits = loss_bits + 1 WHERE seq = 3")
        self.refuse(["resume", self.record], 3, "is damaged", "subnet 3", "verbatim verify")

    def test_other_environment(self):
        self.stop(signal.SIGINT)
        database = sqlite3.connect(self.record)
        with contextlib.closing(database), database:
            database.execute("UPDATE environment SET value = '1.0' WHERE key = 'libtorch.version'")
        seal(self.record)
        self.refuse(["resume", self.record], 4, "libtorch.version: recorded 1.0, here 2.")
        self.assertEqual(query(self.record, "SELECT count(*) FROM resumptions"), [(0,)])

    def test_other_data(self):
        """The data set is compared before anything is written."""
        self.stop(signal.SIGINT)
        data = self.write_data()
        labels = bytearray((data / "train-labels-idx1-ubyte").read_bytes())
        labels[8] = (labels[8] + 1) % 10
        (data / "train-labels-idx1-ubyte").write_bytes(labels)
        self.expect(run("resume", self.record, "--data", data), 1, out="data set")
        self.refuse(["resume", self.record, "--data", self.folder / "nowhere"], 3, "nowhere")
        self.assertEqual(query(self.record, "SELECT count(*) FROM resumptions"), [(0,)])

    def test_no_record(self):
        self.refuse(["resume", self.record], 3, "does not exist")
        self.record.write_text("hello")
        self.refuse(["resume", self.record], 3, "run.db")
        self.record.unlink()
        self.stop(signal.SIGINT)
        self.refuse(["resume", self.record, "--stages", "99"], 2, "99")
        self.refuse(["resume", self.record, "--device", "tpu"], 2, "tpu")

    def test_train_says_how_to_go_on(self):
        self.stop(signal.SIGINT)
        self.refuse(["train", self.spec, "-o", self.record], 2, "verbatim resume")


if __name__ == "__main__":
    unittest.main()
