#!/usr/bin/env python3
"""`doctor` says which records can be re-executed here, and what keeps the others from it."""

import shutil
import unittest

from harness import EndToEndTest, copy_record, query, recorded, run, tamper

NOWHERE = {"VERBATIM_ENGINE": "/nonexistent/verbatim-engine"}


class Doctor(EndToEndTest):
    def record_of(self, *arguments, code, **options):
        """What the JSON report says of its only record."""
        result = self.expect(run("doctor", *arguments, "--format", "json", **options), code)
        self.assertEqual(result.json()["exit_code"], code)
        [record] = result.json()["records"]
        return record

    def test_what_was_made_here_can_be_executed_here(self):
        """Under the numeric profile of its spec, which is not this process's."""
        portable = self.train("--subnets", "1", spec=self.write_spec({"numerics": "x86-64"}))
        result = self.expect(run("doctor", recorded().path, portable), 0,
                             out=("2 of 2 records can be re-executed here", "x86-64"))
        self.assertEqual(result.err, "")
        record = self.record_of(portable, code=0)
        self.assertEqual((record["numerics"], record["has_data"], record["has_environment"]),
                         ("x86-64", True, True))
        self.assertEqual([d for d in record["environment_differences"] if d["numeric"]], [])

    def test_environment_is_the_recorded_one(self):
        """What the engine says of itself is what it wrote into the record."""
        path = copy_record(self)
        engine = run("doctor", "--format", "json").json()["engine"]
        self.assertEqual(engine["environment"], dict(query(path, "SELECT * FROM environment")))
        self.assertIn("cpu", engine["devices"])

    def test_other_environment(self):
        record = copy_record(self)
        tamper(record, "UPDATE environment SET value = '1.0' WHERE key = 'libtorch.version'")
        self.expect(run("doctor", record), 1, out=(
            "1 fact differs that may change bits", "libtorch.version: recorded 1.0, here ",
            "--any-environment", "0 of 1 record can be re-executed here"))

    def test_data_that_is_missing_or_other(self):
        record = copy_record(self)
        folder = self.write_data()
        self.assertTrue(self.record_of(record, "--data", folder, code=0)["has_data"])
        labels = bytearray((folder / "train-labels-idx1-ubyte").read_bytes())
        labels[8:10] = labels[9], labels[8]
        self.write_data(labels=bytes(labels))
        found = self.record_of(record, "--data", folder, code=1)
        self.assertFalse(found["has_data"])
        self.assertIn("is not the recorded one", found["obstacles"][0]["problem"])
        shutil.rmtree(folder)
        found = self.record_of(record, "--data", folder, code=1)
        self.assertIn(str(folder), found["obstacles"][0]["problem"])

    def test_without_an_engine(self):
        found = self.record_of(recorded().path, code=1, env=NOWHERE)
        self.assertFalse(found["has_environment"])
        self.assertIn(NOWHERE["VERBATIM_ENGINE"], found["obstacles"][0]["problem"])
        self.expect(run("doctor", env=NOWHERE), 0, out="program          none")

    def test_no_record(self):
        self.refuse(["doctor", self.folder / "none.db"], 3, "none.db")


if __name__ == "__main__":
    unittest.main()
