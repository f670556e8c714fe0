#!/usr/bin/env python3
"""A run equals the sequential reference, whatever its layout; a broken schedule is found."""

import re
import unittest

from harness import SUBNETS, EndToEndTest, content_digest, query, recorded, run

EQUAL = "equal to the sequential reference"


class MainPath(EndToEndTest):
    def test_equal_content_on_any_number_of_stages(self):
        """Layout changes no bit: one content digest for all, and for one subnet at a time."""
        layouts = [("--stages", "1"), ("--stages", "2"), ("--stages", "3"),
                   ("--stages", "8", "--in-flight", "12"), ("--policy", "sequential")]
        digests = {}
        for layout in layouts:
            record = recorded(*layout).path
            self.verify(record, says="intact and causal (not re-executed)")
            digests[layout] = content_digest(record)
        self.assertEqual(len(set(digests.values())), 1, digests)

    def test_stages_share_the_work(self):
        """Otherwise the test above would compare equal layouts."""
        stages = query(recorded("--stages", "3").path, "SELECT DISTINCT stage FROM accesses")
        self.assertEqual(sorted(stages), [(0,), (1,), (2,)])

    def test_another_seed_gives_another_digest(self):
        other = self.train(spec=self.write_spec({"seed": 8}))
        self.assertNotEqual(content_digest(other), content_digest(recorded("--stages", "1").path))

    def test_reexecution_is_equal(self):
        for layout in [("--stages", "8", "--in-flight", "12"), ("--policy", "sequential")]:
            with self.subTest(layout=layout):
                result = self.verify(recorded(*layout).path, "--reexecute", "all",
                                     says=f"{SUBNETS} subnets equal to the sequential reference")
                accesses = query(recorded(*layout).path, "SELECT count(*) FROM accesses")[0][0]
                self.assertEqual(result.out.splitlines()[-1],
                                 f"{SUBNETS} subnets, {accesses} accesses: {EQUAL}")

    def test_reexecution_of_a_draw(self):
        """What a draw proves is said with it; the seed decides what is drawn."""
        record = recorded("--stages", "3").path
        result = self.verify(record, "--reexecute", "2",
                             says=("(2 drawn by seed 7, with their causal cones), ",
                                   "equal to the sequential reference",
                                   "probability of 95 %"))
        self.assertRegex(result.out, r"Had \d+\.\d % of the subnets been faulty or more")
        self.verify(record, "--reexecute", "2", "--draw-seed", "8", says="drawn by seed 8")

    def test_record_level_losses(self):
        record = recorded("--stages", "2", "--record", "losses").path
        self.verify(record, "--reexecute", "all", says="in every loss (weights are not recorded)")

    def test_record_level_full(self):
        record = recorded("--stages", "3", "--record", "full").path
        self.assertEqual(query(record, "SELECT count(*) FROM accesses WHERE gradients IS NULL"),
                         [(0,)])
        self.verify(record, "--reexecute", "all", says=EQUAL)

    def test_numeric_profile(self):
        """The engine is started under the profile's variables, for training and re-execution."""
        record = self.train("--stages", "2", spec=self.write_spec({"numerics": "x86-64"}))
        self.assertEqual(query(record, "SELECT value FROM environment WHERE key = "
                                       "'variable.ATEN_CPU_CAPABILITY'"), [("default",)])
        self.verify(record, "--reexecute", "all", says=EQUAL)

    def test_record_off_trains_without_a_record(self):
        result = run("train", self.write_spec(), "--record", "off", "--subnets", "3",
                     cwd=self.folder)
        self.expect(result, 0, out="trained 3 subnets")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["spec.json"])

    def test_paths_are_relative_to_the_spec(self):
        """data.folder and the list of a `list` sampler, from another working directory."""
        self.write_data()
        (self.folder / "choices.jsonl").write_text("[0, 1, 2, 0, 1, 2]\n" * SUBNETS)
        spec = self.write_spec({"data.folder": "data",
                                "sampler": {"kind": "list", "file": "choices.jsonl"}})
        result = run("train", spec.name, "-o", "run.db", "--quiet", cwd=self.folder)
        self.assertEqual((result.code, result.out, result.err), (0, "", ""))
        self.verify(self.folder / "run.db", says="choices.jsonl lists")
        self.assertEqual(query(self.folder / "run.db", "SELECT DISTINCT choices FROM subnets"),
                         [("[0,1,2,0,1,2]",)])


class NegativeControl(EndToEndTest):
    """The proof is worth something only if a schedule that breaks causality fails it."""

    OPTIONS = ("--policy", "asynchronous", "--stages", "2", "--in-flight", "6")

    def test_asynchronous_schedule_is_found(self):
        """From the record alone: subnet, layer, stage, and what it should have seen."""
        record = recorded(*self.OPTIONS).path
        result = self.verify(record, code=1, says=("FAILED   causality", "violations in"))
        self.assertIn("not equal to the sequential reference", result.out.splitlines()[-1])
        match = re.search(r"First difference: subnet (\d+), layer (\S+), \w+, schedule", result.out)
        seq, layer = match.groups()
        # The predecessor, found without the program's help.
        before, stage = query(record, """
            SELECT coalesce((SELECT max(b.seq) FROM lineage b WHERE b.name = a.name
                             AND b.seq < a.seq), -1), stage
            FROM lineage a WHERE a.seq = ? AND a.name = ?""", seq, layer)[0]
        due = "it has no causal predecessor" if before < 0 else (
            f"its causal predecessor is subnet {before}")
        self.expect(result, 1, out=(f" on stage {stage}; {due}", f"subnet {seq} ", layer,
                                    f"next      verbatim show {record} --layer {layer}"))

    def test_its_numbers_differ_too(self):
        self.assertNotEqual(content_digest(recorded(*self.OPTIONS).path),
                            content_digest(recorded("--stages", "1").path))

    def test_reexecution_blames_the_schedule(self):
        """Whatever number differs first, it differs because subnets interleaved."""
        result = self.verify(recorded(*self.OPTIONS).path, "--reexecute", "all", code=1,
                             says=("FAILED   causality", "First difference: subnet "))
        first = result.out.split("First difference: ")[1].splitlines()[0]
        self.assertTrue(first.endswith(", schedule"), first)

    def test_the_command_it_names_works(self):
        self.expect(run("show", recorded(*self.OPTIONS).path, "--layer", "stem"), 0, out="stem")


if __name__ == "__main__":
    unittest.main()
