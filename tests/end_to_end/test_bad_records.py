#!/usr/bin/env python3
"""Files that are no sound record are told apart, by `verify` and `show` alike."""

import sqlite3
import unittest

from harness import EndToEndTest, copy_record, run, tamper


class BadRecords(EndToEndTest):
    def refuse_record(self, path, *parts):
        for command in ("verify", "show"):
            with self.subTest(command):
                self.refuse([command, path], 3, str(path), *parts)

    def test_missing(self):
        self.refuse_record(self.folder / "none.db", "does not exist")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_folder(self):
        self.refuse_record(self.folder, "is a folder, not a record")

    def test_device(self):
        self.refuse_record("/dev/null", "is not a regular file")

    def test_empty(self):
        (self.folder / "empty.db").touch()
        self.refuse_record(self.folder / "empty.db", "is empty")

    def test_not_sqlite(self):
        self.refuse_record(self.write_spec(), "is not a record: no SQLite file")

    def test_another_database(self):
        path = self.folder / "other.db"
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE run (id)")
        database.close()
        self.refuse_record(path, "is an SQLite file, but not a verbatim record")

    def test_unknown_version(self):
        record = copy_record(self)
        for version, hint in ((99, "a newer verbatim"), (1, "train its spec again")):
            database = sqlite3.connect(record)
            database.execute(f"PRAGMA user_version = {version}")
            database.close()
            self.refuse_record(record, f"has format version {version}", "reads versions 4 and 5", hint)

    def test_truncated(self):
        """At any length: never read as a smaller record."""
        record = copy_record(self)
        content = record.read_bytes()
        for length in (1, 50, 99, 100, 4096, len(content) // 2, len(content) - 4096,
                       len(content) - 1):
            record.write_bytes(content[:length])
            with self.subTest(length=length):
                result = run("verify", record)
                self.assertEqual(result.code, 3, str(result))
                self.assertEqual(result.out, "")
                self.assertIn(str(record), result.err)

    def test_missing_table(self):
        record = copy_record(self)
        database = sqlite3.connect(record)
        database.execute("DROP TABLE tree")
        database.close()
        self.refuse_record(record, "it has no table tree")

    def test_values_out_of_range(self):
        """Numbers that no run leaves behind: refused, not turned into something else."""
        for statement in ("UPDATE subnets SET loss_bits = 1 << 40 WHERE seq = 2",
                          "UPDATE subnets SET choices = '[0,99,0,0,0,0]' WHERE seq = 2",
                          "UPDATE subnets SET choices = 'garbage' WHERE seq = 2",
                          "UPDATE subnets SET samples = x'010203' WHERE seq = 2",
                          "UPDATE subnets SET accesses = x'01' WHERE seq = 2",
                          "UPDATE subnets SET content_leaf = x'01' WHERE seq = 2",
                          "UPDATE subnets SET activity = x'01' WHERE seq = 2",
                          "UPDATE run SET subnets_planned = 1 << 62",
                          "UPDATE run SET ended_utc = NULL"):
            with self.subTest(statement):
                record = copy_record(self)
                tamper(record, statement)
                self.verify(record, code=3, says="the record is damaged")

    def test_read_only_folder(self):
        """A record needs no file beside it to be read."""
        record = copy_record(self)
        self.folder.chmod(0o500)
        self.addCleanup(self.folder.chmod, 0o700)
        self.verify(record, says="intact and causal")
        self.assertEqual(list(self.folder.iterdir()), [record])


if __name__ == "__main__":
    unittest.main()
