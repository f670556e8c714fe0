#!/usr/bin/env python3
"""A replay equals the run on every layout; a cone executes only the cone; faults are explained."""

import unittest

from harness import (SUBNETS, EndToEndTest, content_digest, copy_record, query, recorded, run)

LAYOUT = ("--stages", "3")
# Frozen ends, and many candidates of few blocks, so that cones are thinner than prefixes.
THIN_CONES = {
    "supernet.stem.trainable": False,
    "supernet.head.trainable": False,
    "supernet.blocks.0.repeat": 2,
    "supernet.blocks.0.candidates": [{"op": op, "kernel": kernel} for op in
                                     ("conv", "separable_conv") for kernel in (1, 3, 5, 7)],
}


class Replay(EndToEndTest):
    def replay(self, record, *options, code=0, says=(), err=()):
        return self.expect(run("replay", record, *options), code, out=says, err=err)

    def test_is_equal_on_any_number_of_stages(self):
        record = recorded(*LAYOUT).path
        for stages in (1, 2, 3, 5, 8):
            with self.subTest(stages=stages):
                plural = "stage" if stages == 1 else "stages"
                self.replay(record, "--stages", stages, err=f"re-executing all {SUBNETS} subnets",
                            says=f"{SUBNETS} subnets equal to a replay on {stages} {plural}, "
                                 "and the evaluations")

    def test_records_itself(self):
        record = recorded(*LAYOUT).path
        copy = self.folder / "replayed.db"
        self.replay(record, "--stages", "2", "-o", copy)
        self.assertEqual(content_digest(copy), content_digest(record))
        self.assertEqual(query(copy, "SELECT stages, status FROM run"), [(2, "complete")])
        self.verify(copy)
        self.refuse(["replay", record, "-o", copy], 2, "exists already", "--force")
        self.replay(record, "--until", "4", "-o", copy, "--force")
        self.assertEqual(query(copy, "SELECT status, status_detail FROM run"),
                         [("interrupted", f"stopped on request after 5 of {SUBNETS} subnets")])
        self.verify(copy)

    def test_a_cone_executes_only_the_cone(self):
        record = self.train("--stages", "2", spec=self.write_spec(THIN_CONES))
        whole = self.replay(record, "--format", "json").json()
        self.assertEqual(whole["coverage"]["subnets_executed"], SUBNETS)
        self.assertEqual(whole["verdict"], "equal")
        thin = 0
        for subnet in range(0, SUBNETS, 3):
            with self.subTest(subnet=subnet):
                result = self.replay(record, "--subnet", subnet, "--stages", "3", "--format",
                                     "json")
                coverage = result.json()["coverage"]
                self.assertEqual(result.json()["counts"]["subnets_reexecuted"],
                                 coverage["subnets_executed"])
                self.assertIn(f"re-executing {coverage['subnets_executed']} of {SUBNETS} subnets "
                              f"(the causal cone of subnet {subnet})", result.err)
                thin += coverage["subnets_executed"] < subnet + 1
        self.assertGreater(thin, 0)

    def test_a_version_of_a_layer(self):
        record = recorded(*LAYOUT).path
        layer, seq = query(record, "SELECT name, seq FROM lineage WHERE name LIKE 'block%' "
                                   "ORDER BY seq DESC LIMIT 1")[0]
        self.replay(record, "--layer", layer, "--at", SUBNETS - 1,
                    err=f"the causal cone of subnet {seq}, which wrote {layer} last")

    def test_refuses_what_makes_no_sense(self):
        record = copy_record(self, *LAYOUT)
        for options, part in [
                (["--subnet", SUBNETS], "the record has no such subnet"),
                (["--until", SUBNETS], "the record has no such subnet"),
                (["--layer", "block9.9", "--at", "3"], "the record has no such layer"),
                (["--layer", "stem"], "--layer and --at go together"),
                (["--at", "3"], "--at requires --layer"),
                (["--subnet", "1", "--until", "2"], "excludes"),
                (["--subnet", "1", "-o", self.folder / "cone.db"], "makes no record"),
                (["-o", record], "the replayed record itself"),
                (["--report", record], "the record itself"),
                (["--stages", "99"], "99"),
                (["--force"], "--force requires --output")]:
            with self.subTest(options=options):
                self.refuse(["replay", record, *options], 2, part)
        self.verify(record)

    def test_names_the_data_that_is_missing_or_another(self):
        record = recorded(*LAYOUT).path
        digest = query(record, "SELECT substr(lower(hex(dataset_digest)), 1, 8) FROM run")[0][0]
        self.refuse(["replay", record, "--data", self.folder / "none"], 3, "is no folder")
        empty = self.folder / "empty"
        empty.mkdir()
        self.refuse(["replay", record, "--data", empty], 3, digest)
        images = bytearray((self.write_data() / "train-images-idx3-ubyte").read_bytes())
        images[100] ^= 1
        other = self.write_data(images=bytes(images))
        self.replay(record, "--data", other, code=1, says=("batch bytes", "data set", digest))

    def test_refuses_an_empty_and_a_foreign_file(self):
        empty = self.folder / "empty.db"
        empty.touch()
        self.refuse(["replay", empty], 3, str(empty))
        self.refuse(["replay", self.folder / "none.db"], 3, "none.db")


class Injected(EndToEndTest):
    """Faults that were injected into a run are found, named and, by --explain, pinned down."""

    def replay_fault(self, fault, *options):
        record = self.train("--stages", "2", "--inject", fault, record=f"{fault}.db")
        result = run("replay", record, "--explain", "--format", "json", *options)
        self.assertEqual(result.code, 1, str(result))
        return result.json()

    def test_explains_a_flipped_bit(self):
        verdict = self.replay_fault("bit-flip@5")
        first = verdict["first_difference"]
        self.assertEqual((first["class"], first["subnet"], first["phase"]),
                         ("computation", 5, "update"))
        explanation = verdict["explanation"]
        self.assertTrue(explanation["left_reproduced"])
        tensor = explanation["first_tensor"]
        self.assertEqual((tensor["layer_name"], tensor["phase"], tensor["elements_different"]),
                         (first["layer_name"], "update", 1))
        self.assertNotEqual(tensor["left"], tensor["right"])

    def test_explains_a_stale_read(self):
        verdict = self.replay_fault("stale-read@9")
        self.assertEqual(verdict["first_difference"]["subnet"], 9)
        tensor = verdict["explanation"]["first_tensor"]
        self.assertEqual(tensor["phase"], "forward")
        self.assertIn("output of micro-batch 0", tensor["tensor"])

    def test_keeps_going_and_tells_origins_from_taint(self):
        verdict = self.replay_fault("lost-update@6", "--keep-going")
        comparison = verdict["comparison"]
        self.assertEqual(comparison["origin_count"], 1)
        self.assertEqual(comparison["origins"][0]["subnet"], 6)
        # Stem and head are shared by all, so everything afterwards follows from it.
        self.assertEqual(comparison["tainted"], [[7, SUBNETS - 1]])

    def test_says_that_an_edited_row_is_no_computation(self):
        record = self.train("--stages", "2", "--inject", "rewritten-row@4")
        self.verify(record, code=3, says="subnet 4")


if __name__ == "__main__":
    unittest.main()
