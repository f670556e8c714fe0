#!/usr/bin/env python3
"""What goes past the causal bound: streams, delays, partitions. Each equals the reference."""

import json
import unittest

from harness import SUBNETS, EndToEndTest, content_digest, query, recorded, run, tamper
from seal import seal

EQUAL = "equal to the sequential reference"
# A fair stream, and delays on a stem with batch norm, a middle block and the head.
FAIR = {"sampler": {"kind": "fair"}, "supernet.stem.delay": 4, "supernet.head.delay": 2,
        "supernet.blocks.0.delay": 1}
REORDERED = {"sampler": {"kind": "reorder", "of": {"kind": "uniform"}, "window": 8},
             "supernet.stem.delay": 1}
POSITIONS = 8


class PastTheBound(EndToEndTest):
    def test_no_layout_changes_a_bit(self):
        layouts = [("--policy", "sequential"), ("--stages", "2", "--in-flight", "8"),
                   ("--stages", "3", "--partition", "equal"), ("--stages", "3"),
                   ("--stages", "3", "--partition", "1,6,1"), ("--stages", "2", "--policy", "1f1b"),
                   ("--stages", "4", "--policy", "gpipe"),
                   ("--stages", "3", "--recompute", "1-4,5")]
        for name, changes, draws in (
                ("fair", FAIR, "fair draws with seed 7"),
                ("reordered", REORDERED, "reorder makes of what sampler uniform draws with seed 7")):
            spec = self.write_spec(changes)
            digests = {}
            for number, layout in enumerate(layouts):
                record = self.train(*layout, spec=spec, record=f"{name}{number}.db")
                digests[layout] = content_digest(record)
                self.verify(record, says=(f"{SUBNETS} subnets chose what sampler {draws}",
                                          "as late as the delays say"))
            self.assertEqual(len(set(digests.values())), 1, digests)
            self.verify(self.folder / f"{name}3.db", "--reexecute", "all", "--recompute", "all",
                        says=EQUAL)
            self.expect(run("diff", self.folder / f"{name}0.db", self.folder / f"{name}3.db"), 0)

    def test_versions_are_read_late_and_updated_in_order(self):
        record = self.train("--stages", "2", "--in-flight", "8", spec=self.write_spec(FAIR))
        for seq, read, base in query(record, "SELECT seq, read_seq, base_seq FROM lineage WHERE "
                                             "name = 'stem' ORDER BY seq"):
            self.assertEqual((read, base), (max(seq - 5, -1), seq - 1))

    def test_replays_on_other_partitions(self):
        record = self.train("--stages", "3", spec=self.write_spec(FAIR))
        stages = query(record, "SELECT count(DISTINCT stage) FROM accesses GROUP BY layer")
        self.assertIn((2,), stages, "no layer moved: the partition says nothing")
        for options in (("--stages", "2", "--partition", "equal"), ("--stages", "5"),
                        ("--stages", "2", "--partition", "2,6"), ("--subnet", "9"),
                        ("--stages", "2", "--recompute", "2-5"),
                        ("--layer", "stem", "--at", "9")):
            self.expect(run("replay", record, *options), 0, out="equal to a replay")

    def test_a_delay_that_a_record_denies_is_found(self):
        """The audit follows the recorded spec: other delays make other predecessors due."""
        record = self.train(spec=self.write_spec(FAIR))
        spec = json.loads(query(record, "SELECT spec_json FROM run")[0][0])
        spec["supernet"]["stem"]["delay"] = 3
        tamper(record, ("UPDATE run SET spec_json = ?",
                        json.dumps(spec, sort_keys=True, separators=(",", ":"))))
        seal(record)
        self.verify(record, code=1, says=("FAILED   causality", "stem"))

    def test_faults_are_found(self):
        for fault in ("dropped-dependency", "stale-read", "stale-optimizer", "lost-update"):
            with self.subTest(fault=fault):
                record = self.train("--stages", "2", "--inject", fault, "--force",
                                    spec=self.write_spec(FAIR))
                injected = query(record, "SELECT value FROM environment WHERE key = "
                                         "'info.injected'")[0][0]
                result = run("verify", record, "--reexecute", "all")
                self.assertEqual(result.code, 1, f"{injected}\n{result}")

    def test_bad_layouts(self):
        spec = self.write_spec()
        out = self.folder / "run.db"
        cases = [("3", "1,6,2", 2, "9 positions, but there are 8"),
                 ("3", "4,0,4", 2, "stage 1 would be empty"),
                 ("2", "8", 2, "1 stages, but --stages is 2"),
                 ("2", "even", 2, "no such partition")]
        for stages, partition, code, message in cases:
            with self.subTest(partition=partition):
                self.refuse(["train", spec, "-o", out, "--stages", stages, "--partition",
                             partition], code, message, "balanced")
                self.assertFalse(out.exists())

    def test_bad_recomputation(self):
        spec = self.write_spec()
        out = self.folder / "run.db"
        for ranges, message in [("5-7", "there is no block 7: this supernet has 6"),
                                ("0-2", "there is no block 0"), ("4-2", "ends before it begins"),
                                ("1-3,3-6", "block 3 does not come after block 3"),
                                ("blocks", "is no range of blocks")]:
            with self.subTest(ranges=ranges):
                self.refuse(["train", spec, "-o", out, "--recompute", ranges], 2, message,
                            "ranges of blocks from 1 to 6")
                self.assertFalse(out.exists())
        record = recorded("--stages", "1").path
        for command in (["resume", record], ["replay", record],
                        ["verify", record, "--reexecute", "all"], ["simulate", spec]):
            with self.subTest(command=command[0]):
                result = run(*command, "--recompute", "5-7")
                # A complete run is not resumed, whatever the layout.
                self.assertEqual(result.code, 0 if command[0] == "resume" else 2, str(result))
        self.refuse(["verify", record, "--recompute", "all"], 2, "--recompute requires --reexecute")

    def test_simulations_know_the_spec(self):
        spec = self.write_spec(FAIR)
        result = run("simulate", spec, "--stages", "2", "--costs", "equal", "--format", "json")
        simulated = self.expect(result, 0).json()["runs"][0]
        self.assertEqual(simulated["violations"], 0)
        self.assertGreater(simulated["speedup"], 1.5)


if __name__ == "__main__":
    unittest.main()
