#!/usr/bin/env python3
"""A fault injected with `train --inject` is found, at the place that summary and record name."""

import re
import unittest

from harness import EndToEndTest, query, run


class FaultInjection(EndToEndTest):
    def inject(self, fault, *options):
        """Trains with a fault; returns the record and the text of the place."""
        record = self.folder / "faulty.db"
        result = self.expect(
            run("train", self.write_spec(), "-o", record, "--inject", fault, *options), 0)
        place = re.search(rf"^injected: {fault.split('@')[0]} at (.*)$", result.out, re.MULTILINE)
        self.assertTrue(place, str(result))
        return record, place[1]

    def test_a_dropped_dependency_is_found_without_a_re_execution(self):
        record, place = self.inject("dropped-dependency", "--stages", "3")
        result = self.verify(record, code=1)
        self.assertIn(f"First difference: {place}, schedule", result.out, str(result))

    def test_a_stale_read_is_found_by_a_re_execution_alone(self):
        record, place = self.inject("stale-read@9", "--stages", "2", "--record", "full")
        self.assertIn("subnet 9, layer ", place)
        self.verify(record)
        result = self.verify(record, "--reexecute", "all", code=1)
        self.assertIn(f"First difference: {place}, computation", result.out, str(result))

    def test_the_record_says_what_was_injected(self):
        record, place = self.inject("lost-update@5")
        layer = re.fullmatch(r"subnet 5, layer (\S+), update", place)
        self.assertTrue(layer, place)
        self.assertEqual(query(record, "SELECT value FROM environment WHERE key = 'info.injected'"),
                         [(f"lost-update@5 {layer[1]} update",)])

    def test_a_deleted_row_is_damage(self):
        record, place = self.inject("deleted-row@6")
        self.assertEqual(place, "subnet 6")
        self.assertEqual(query(record, "SELECT count(*) FROM subnets WHERE seq = 6"), [(0,)])
        self.verify(record, code=3)

    def test_a_cut_file_is_damage(self):
        record, place = self.inject("truncated-file")
        self.assertEqual(place, "the middle of the file")
        self.expect(run("verify", record), 3)

    def test_what_cannot_show_is_refused_before_training(self):
        spec = self.write_spec()
        record = self.folder / "none.db"
        for fault, *says in (
                ("dropout-key", "no subnet of this run could show it"),
                ("gradient-order", "training.microbatches 2", "3 or more"),
                ("stale-read@0", "subnet 0 uses no layer", "stale-read@1"),
                ("bit-flip@16", "the run's subnets are 0 to 15"),
                ("bit-flop", "did you mean \"bit-flip\"?")):
            with self.subTest(fault):
                self.refuse(["train", spec, "-o", record, "--inject", fault], 2, *says)
                self.assertFalse(record.exists())


if __name__ == "__main__":
    unittest.main()
