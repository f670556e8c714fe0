#!/usr/bin/env python3
"""Real disks and real neighbours, without anything between the program and the system: the record
is removed, replaced or locked while it is written; its disk is full, or read-only. The run ends with
exit code 4, what was recorded verifies, and `resume` completes it where it is still there.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import unittest

from file_faults import faulty, operations
from harness import (TIMEOUT_S, EndToEndTest, LongRunTest, Result, command, content_digest,
                     environment, query, recorded, run)

OPTIONS = ["--stages", "2", "--checkpoint-every", "20"]
LENGTH = 150


class Neighbours(LongRunTest):
    def ended(self, process):
        out, err = process.communicate(timeout=TIMEOUT_S)
        return Result(process.returncode, out, err)

    def test_removed(self):
        record = self.folder / "run.db"
        with self.training(record, *OPTIONS) as process:
            record.unlink()
            self.expect(self.ended(process), 4, err=(str(record), "removed while it was being"))

    def test_replaced(self):
        record = self.folder / "run.db"
        other = self.folder / "other.db"
        shutil.copyfile(recorded().path, other)
        with self.training(record, *OPTIONS) as process:
            os.replace(other, record)
            self.expect(self.ended(process), 4, err=(str(record), "replaced while it was being"))

    def check_completed(self, record):
        """What is there verifies, and becomes what a run that was left alone records."""
        self.verify(record, says="intact and causal")
        self.expect(run("resume", record, "--stages", "3"), 0)
        whole = recorded(*OPTIONS, "--subnets", str(LENGTH)).path
        self.assertEqual(content_digest(record), content_digest(whole))

    def test_checkpoints_removed(self):
        """Without its checkpoints a run begins at the first subnet again, and ends the same."""
        record = self.folder / "run.db"
        with self.training(record, *OPTIONS, subnets=25, length=LENGTH) as process:
            # Moved away in one step: files come and go in it.
            os.rename(f"{record}.checkpoints", self.folder / "moved away")
            self.expect(self.ended(process), 4, err=f"{record}.checkpoints")
        self.check_completed(record)

    def test_locked(self):
        """Another process holds SQLite's lock for longer than the run waits."""
        record = self.folder / "run.db"
        with self.training(record, *OPTIONS, length=LENGTH) as process:
            with contextlib.closing(sqlite3.connect(record, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                result = self.ended(process)
        self.expect(result, 4, err=(str(record), "another process holds a lock"))
        self.check_completed(record)

    def test_in_use(self):
        """A live run's record is not resumed, nor replaced."""
        record = self.folder / "run.db"
        with self.training(record, *OPTIONS) as process:
            self.refuse(["resume", record], 4, str(record), "in use")
            self.refuse(["train", self.write_spec(), "-o", record, "--force"], 4, "in use")
            self.assertIsNone(process.poll())


class Mounted(EndToEndTest):
    """Steps in a file system of their own, which nobody else sees and which goes with them."""

    def mounted(self, script, **names):
        """`$disk` is a folder to mount on, `$verbatim` the program."""
        disk = self.folder / "disk"
        disk.mkdir()
        done = subprocess.run(
            ["unshare", "--map-root-user", "--mount", "sh", "-ec", script],
            env=environment(disk=str(disk), verbatim=command([])[0], **names),
            text=True, capture_output=True, timeout=TIMEOUT_S, check=False)
        return Result(done.returncode, done.stdout, done.stderr)

    def compare(self, copy, whole):
        self.assertEqual(query(copy, "SELECT status FROM run"), [("complete",)])
        self.assertEqual(content_digest(copy), content_digest(whole))

    def test_full(self):
        """The disk takes most of what the run leaves, and less than it needs meanwhile."""
        copy = self.folder / "copy.db"
        whole = recorded(*OPTIONS, "--subnets", str(LENGTH)).path
        left = [whole, *whole.parent.glob("run.db.checkpoints/*")]
        size = sum(path.stat().st_size for path in left) * 8 // 10
        result = self.mounted("""
            mount -t tmpfs -o "size=$size" tmpfs "$disk"
            "$verbatim" train "$spec" -o "$disk/run.db" --subnets "$length" && exit 90
            [ $? = 4 ] || exit 91
            "$verbatim" verify "$disk/run.db" || exit 92
            mount -o remount,size=64m "$disk"
            "$verbatim" resume "$disk/run.db" --stages 2 || exit 93
            cp "$disk/run.db" "$copy"
            """, spec=str(self.write_spec()), copy=str(copy), size=str(size), length=str(LENGTH))
        self.expect(result, 0, err="the disk is full")
        self.compare(copy, whole)

    def test_read_only(self):
        copy = self.folder / "copy.db"
        killed = self.interrupted()
        result = self.mounted("""
            mount -t tmpfs tmpfs "$disk"
            cp -r "$killed"/* "$disk"
            mount -o remount,ro "$disk"
            "$verbatim" verify "$disk/run.db" || exit 92
            "$verbatim" resume "$disk/run.db" && exit 90
            [ $? = 4 ] || exit 91
            mount -o remount,rw "$disk"
            "$verbatim" resume "$disk/run.db" --stages 2 || exit 93
            cp "$disk/run.db" "$copy"
            """, killed=str(killed), copy=str(copy))
        self.expect(result, 0, err="verbatim: error: ")
        self.compare(copy, recorded(*OPTIONS).path)

    def test_read_only_with_a_log_just_begun(self):
        """Killed when SQLite's log had its header, of which the index beside it does not know."""
        source = self.folder / "source.db"
        shutil.copyfile(recorded().path, source)
        killed = self.folder / "killed"
        killed.mkdir()
        with contextlib.closing(sqlite3.connect(source)) as writer:
            writer.execute("PRAGMA journal_mode = WAL")
            writer.execute("SELECT count(*) FROM run").fetchall()
            for suffix in ("", "-shm"):
                shutil.copyfile(f"{source}{suffix}", killed / f"run.db{suffix}")
            writer.execute("CREATE TABLE another (a)")
            log = pathlib.Path(f"{source}-wal").read_bytes()
            (killed / "run.db-wal").write_bytes(log[:32])
        result = self.mounted("""
            mount -t tmpfs tmpfs "$disk"
            cp "$killed"/* "$disk"
            mount -o remount,ro "$disk"
            "$verbatim" verify "$disk/run.db"
            """, killed=str(killed))
        self.expect(result, 0, out="intact and causal")

    def interrupted(self):
        """A record of SPEC whose run was killed in its second half."""
        training = ["train", self.write_spec(), *OPTIONS, "-o"]
        (self.folder / "counted").mkdir()
        count = operations(self.folder / "counted", *training, self.folder / "counted" / "run.db")
        (self.folder / "killed").mkdir()
        record = self.folder / "killed" / "run.db"
        result = faulty(f"kill@{count * 2 // 3}", self.folder / "killed", *training, record)
        self.assertEqual(result.code, -signal.SIGKILL, str(result))
        return self.folder / "killed"


if __name__ == "__main__":
    unittest.main()
