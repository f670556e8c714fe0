#!/usr/bin/env python3
"""Whatever is changed in a record is found, and named for what it is.

A changed row is damage by its leaf or seal. Where these are written anew too (seal), the record is what
a run with another result would have left, and only a re-execution contradicts it."""

import json
import sqlite3
import unittest

from harness import EndToEndTest, copy_record, idx_bytes, query, recorded, run, tamper
from packed import delete_access, edit_access
from seal import seal

LAYOUT = ("--stages", "2")


class Tampering(EndToEndTest):
    def setUp(self):
        super().setUp()
        self.record = copy_record(self, *LAYOUT)

    def used_layer(self, seq):
        """A versioned layer that subnet `seq` uses in some block: (id, name)."""
        return query(self.record, "SELECT layer, name FROM accesses JOIN layers USING (layer) "
                                  "WHERE seq = ? AND position BETWEEN 1 AND 6", seq)[-1]

    def tamper_and_seal(self, *statements):
        tamper(self.record, *statements)
        seal(self.record)

    def first_difference(self, *options, code=1):
        return self.verify(self.record, "--format", "json", *options, code=code).json()[
            "first_difference"]

    def test_untouched_copy_is_intact(self):
        self.verify(self.record, says="intact and causal")

    def test_sealing_changes_no_sound_record(self):
        """The leaves, nodes and seals of the program and of this test's encoding agree."""
        queries = ("SELECT seq, content_leaf, layout_leaf, accesses FROM subnets",
                   "SELECT * FROM tree", "SELECT * FROM seals")
        before = [query(self.record, sql) for sql in queries]
        self.assertEqual(len(before[1]), 1)
        edit_access(self.record, 5, self.used_layer(5)[0])
        seal(self.record)
        self.assertEqual([query(self.record, sql) for sql in queries], before)

    def test_edited_rows(self):
        """Found without re-execution, by the leaf that the subnet was written with."""
        layer, _ = self.used_layer(5)
        for edit in ("UPDATE subnets SET loss_bits = loss_bits + 1 WHERE seq = 5",
                     "UPDATE subnets SET batch_digest = zeroblob(16) WHERE seq = 5",
                     "UPDATE subnets SET content_leaf = zeroblob(32) WHERE seq = 5",
                     {"weights": bytes(16)}, {"read_seq": 3}):
            with self.subTest(edit):
                self.record = copy_record(self, *LAYOUT)
                if isinstance(edit, str):
                    tamper(self.record, edit)
                else:
                    edit_access(self.record, 5, layer, **edit)
                self.verify(self.record, "--reexecute", "all", code=3, says=(
                    "FAILED   subnets", "subnet 5: its row was changed after it was written",
                    "not run  re-execution", "the record is damaged"))

    def test_edited_layout(self):
        """Stages and times are no content, but no less what was recorded."""
        layer, _ = self.used_layer(5)
        edit_access(self.record, 5, layer, stage=0)
        tamper(self.record, "UPDATE subnets SET activity = "
                            "(SELECT activity FROM subnets WHERE seq = 7) WHERE seq = 6")
        self.verify(self.record, code=3, says=(
            "subnet 5: its stages or times were changed", "subnet 6: its stages or times"))

    def test_leaves_that_the_tree_contradicts(self):
        """Whoever forgets the nodes is found by them; rows of two runs do not mix."""
        nodes = query(self.record, "SELECT * FROM tree")
        self.tamper_and_seal("UPDATE subnets SET loss_bits = loss_bits + 1 WHERE seq = 4")
        self.verify(self.record, says="intact and causal")
        tamper(self.record, ("UPDATE tree SET content = ? WHERE node = ?", nodes[0][1],
                             nodes[0][0]))
        self.verify(self.record, code=3, says=(
            "FAILED   trees", "subnets 0 … 15: the tree node over them (level 4) is not that of"))

    def test_missing_and_added_nodes(self):
        tamper(self.record, "DELETE FROM tree")
        self.verify(self.record, code=3, says="the tree node over them (level 4) is missing")
        seal(self.record)
        tamper(self.record, "INSERT INTO tree SELECT (5 << 48), content, layout FROM tree")
        self.verify(self.record, code=3, says="1 tree node more than its subnets have")

    def test_what_is_under_a_seal(self):
        for statement, part in (
                ("UPDATE run SET command_line = 'verbatim'", "circumstances"),
                ("UPDATE run SET started_utc = '2020-01-01T00:00:00Z'", "circumstances"),
                ("UPDATE environment SET value = '1.0' WHERE key = 'libtorch.version'",
                 "circumstances"),
                ("UPDATE run SET ended_utc = '2020-01-01T00:00:00Z'", "end"),
                ("UPDATE evaluations SET correct = correct + 1 WHERE evaluation = 1", "end"),
                ("UPDATE run SET dataset_digest = zeroblob(16)", "data set"),
                ("UPDATE layers SET initial_digest = zeroblob(16) WHERE name = 'head'", "layers"),
                ("UPDATE seals SET seal = zeroblob(32) WHERE part = 'start'", "layers"),
                ("DELETE FROM seals WHERE part = 'end'", "seal end is missing")):
            with self.subTest(statement):
                self.record = copy_record(self, *LAYOUT)
                tamper(self.record, statement)
                self.verify(self.record, code=3, says=("FAILED   seals", part))

    def test_changed_views(self):
        database = sqlite3.connect(self.record)
        database.executescript("DROP VIEW lineage; CREATE VIEW lineage AS SELECT 1 AS name")
        database.close()
        self.verify(self.record, code=3, says="the definition of view lineage was changed")

    def test_weights(self):
        """Causality cannot see it; re-execution says where, and that the inputs were equal."""
        layer, name = self.used_layer(5)
        edit_access(self.record, 5, layer, weights=bytes(16))
        seal(self.record)
        self.verify(self.record, says="intact and causal")
        self.verify(self.record, "--reexecute", "all", code=1, says=(
            "passed   causality", "FAILED   re-execution",
            f"First difference: subnet 5, layer {name}, update, computation",
            "recorded  00000000", "5 subnets equal to the sequential reference",
            f"next      verbatim replay {self.record} --subnet 5 --explain"))
        self.expect(run("replay", self.record, "--until", "4"), 0,
                    out="re-executed the first 5 of 16 subnets, equal")

    def test_loss(self):
        self.tamper_and_seal("UPDATE subnets SET loss_bits = loss_bits + 1 WHERE seq = 4")
        difference = self.first_difference("--reexecute", "all")
        self.assertEqual((difference["class"], difference["subnet"], difference["what"]),
                         ("computation", 4, "loss"))

    def test_samples(self):
        """Two samples of one batch swapped: the same set in another order."""
        samples = query(self.record, "SELECT samples FROM subnets WHERE seq = 3")[0][0]
        self.tamper_and_seal(("UPDATE subnets SET samples = ? WHERE seq = 3",
                              samples[4:8] + samples[:4] + samples[8:]))
        difference = self.first_difference("--reexecute", "all")
        self.assertEqual((difference["class"], difference["subnet"]), ("sample order", 3))

    def test_batch_digest(self):
        self.tamper_and_seal("UPDATE subnets SET batch_digest = zeroblob(16) WHERE seq = 3")
        difference = self.first_difference("--reexecute", "all")
        self.assertEqual((difference["class"], difference["subnet"]), ("batch bytes", 3))

    def test_initial_weights(self):
        self.tamper_and_seal("UPDATE layers SET initial_digest = zeroblob(16) WHERE name = 'head'")
        difference = self.first_difference("--reexecute", "all")
        self.assertEqual((difference["class"], difference["subnet"], difference["layer_name"]),
                         ("initial weights", None, "head"))

    def test_seed(self):
        """Without re-execution the stream differs; with it, the initial weights before that."""
        self.tamper_and_seal("UPDATE run SET spec_json = json_set(spec_json, '$.seed', 8)")
        self.assertEqual(self.first_difference()["class"], "spec")
        difference = self.first_difference("--reexecute", "all")
        self.assertEqual((difference["class"], difference["subnet"]), ("initial weights", None))

    def test_read_version(self):
        """An access that saw the initial weights where its predecessor's version was due."""
        edit_access(self.record, 9, 0, read_seq=-1, base_seq=8)
        seal(self.record)
        self.verify(self.record, code=1, says=(
            "First difference: subnet 9, layer stem, forward, schedule",
            "recorded  the initial weights", "expected  version 8"))

    def test_choices_that_accesses_contradict(self):
        layer, name = self.used_layer(6)
        position, candidate = query(self.record, "SELECT position, candidate FROM layers "
                                                 "WHERE layer = ?", layer)[0]
        choices = json.loads(query(self.record, "SELECT choices FROM subnets WHERE seq = 6")[0][0])
        self.assertEqual(choices[position - 1], candidate)
        choices[position - 1] = 1 - candidate
        tamper(self.record, ("UPDATE subnets SET choices = ? WHERE seq = 6",
                             json.dumps(choices, separators=(",", ":"))))
        self.verify(self.record, code=3, says=("FAILED   subnets", "subnet 6", name.split(".")[0],
                                               "the record is damaged"))

    def test_choices_and_accesses_together(self):
        """Consistent with itself, but not what the sampler draws."""
        last = max(seq for (seq,) in query(self.record, "SELECT seq FROM subnets"))
        layer, name = self.used_layer(last)
        block, candidate = map(int, name.removeprefix("block").split("."))
        other = layer + 1 - 2 * candidate
        earlier = query(self.record, "SELECT coalesce(max(seq), -1) FROM accesses WHERE layer = ?",
                        other)[0][0]
        edit_access(self.record, last, layer, layer=other, read_seq=earlier, base_seq=earlier)
        self.tamper_and_seal(("UPDATE subnets SET choices = json_set(choices, ?, ?) WHERE seq = ?",
                              f"$[{block}]", 1 - candidate, last), "DELETE FROM checkpoints")
        self.verify(self.record, code=1, says=(
            "FAILED   stream", f"subnet {last}, layer block{block}.{1 - candidate}, spec",
            f"expected  {name}"))

    def test_deleted_access(self):
        layer, name = self.used_layer(7)
        delete_access(self.record, 7, layer)
        self.verify(self.record, code=3,
                    says=("FAILED   subnets", f"subnet 7 has no access of {name}"))

    def test_deleted_subnet(self):
        tamper(self.record, "DELETE FROM subnets WHERE seq = 7")
        self.verify(self.record, code=3, says=("subnet 7 is missing", "the record is damaged"))

    def test_cut_tail(self):
        """A complete run that lacks its last subnet."""
        tamper(self.record, "DELETE FROM subnets WHERE seq = 15")
        self.verify(self.record, code=3, says="15 of 16 subnets")

    def test_cut_tail_and_plan(self):
        """The run's row agrees with the cut, the spec does not."""
        tamper(self.record, "DELETE FROM subnets WHERE seq = 15",
               "UPDATE run SET subnets_planned = 15")
        self.verify(self.record, code=3, says="15 subnets are said to be planned, the spec has 16")

    def test_damaged_record_is_not_reexecuted(self):
        delete_access(self.record, 7, 0)
        self.verify(self.record, "--reexecute", "all", code=3, says=(
            "subnet 7 has no access of stem", "not run  re-execution", "the record is damaged"))

    def test_layout_that_cannot_be(self):
        tamper(self.record, "UPDATE run SET stages = 0")
        self.verify(self.record, code=3, says=("FAILED   run", "stages is 0"))

    def test_spec_that_cannot_be_parsed(self):
        tamper(self.record, "UPDATE run SET spec_json = '{'")
        self.verify(self.record, code=3, says=("FAILED   run", "the recorded spec"))

    def test_evaluation(self):
        self.tamper_and_seal(
            "UPDATE evaluations SET correct = correct + 1 WHERE evaluation = 1")
        difference = self.first_difference("--reexecute", "all")
        self.assertEqual((difference["class"], difference["what"]),
                         ("computation", "evaluation 1"))

    def test_evaluation_of_a_run_that_says_interrupted(self):
        self.tamper_and_seal(
            "UPDATE evaluations SET correct = correct + 1 WHERE evaluation = 1",
            "UPDATE run SET status = 'interrupted'")
        difference = self.first_difference("--reexecute", "all")
        self.assertEqual(difference["what"], "evaluation 1")

    def test_evaluations_without_all_subnets(self):
        tamper(self.record, "DELETE FROM subnets WHERE seq = 15",
               "UPDATE run SET status = 'interrupted'")
        self.verify(self.record, code=3, says="only 15 of the 16 subnets")

    def test_report_onto_a_part_of_the_record(self):
        for suffix in ("", "-wal", "-shm", "-journal"):
            with self.subTest(suffix=suffix):
                result = run("verify", self.record, "-o", str(self.record) + suffix)
                self.assertEqual(result.code, 2)
                self.assertIn("the record itself", result.err)
        self.verify(self.record, code=0, says="intact and causal")

    def test_environment(self):
        """Bits that differ in another environment say nothing of the run, and it is said so."""
        self.tamper_and_seal(
            "UPDATE environment SET value = '1.0' WHERE key = 'libtorch.version'",
            "UPDATE subnets SET loss_bits = loss_bits + 1 WHERE seq = 2")
        self.refuse(["verify", self.record, "--reexecute", "all"], 4,
                    "the numeric environment differs", "libtorch.version: recorded 1.0, here ")
        result = self.verify(self.record, "--reexecute", "all", "--any-environment", code=1, says=(
            "The environment is not the recorded one:", "libtorch.version: recorded 1.0, here ",
            "First difference: subnet 2, forward, environment"))
        self.assertLess(result.out.index("The environment"), result.out.index("causality"))

    def test_flipped_byte_in_every_page(self):
        """No damage of the file crashes the program and none passes."""
        content = self.record.read_bytes()
        page = int.from_bytes(content[16:18], "big")
        for start in range(0, len(content), page):
            damaged = bytearray(content)
            damaged[start] ^= 0xff
            self.record.write_bytes(damaged)
            with self.subTest(page=start // page):
                self.assertEqual(run("verify", self.record).code, 3)


class OtherData(EndToEndTest):
    def test_one_pixel(self):
        """Named before training starts, by the data set's digests."""
        images = bytearray(idx_bytes("train-images-idx3-ubyte"))
        images[5000] ^= 1
        folder = self.write_data(images=bytes(images))
        record = recorded(*LAYOUT).path
        recorded_digest = query(record, "SELECT lower(hex(dataset_digest)) FROM run")[0][0]
        self.verify(record, "--reexecute", "all", "--data", folder, code=1, says=(
            "before the first subnet, batch bytes", "what      data set",
            f"recorded  {recorded_digest[:8]}", "--data FOLDER"))

    def test_same_bytes_elsewhere(self):
        """Uncompressed and in another folder, the data set is the same."""
        self.verify(recorded(*LAYOUT).path, "--reexecute", "all", "--data", self.write_data(),
                    says="equal to the sequential reference")


if __name__ == "__main__":
    unittest.main()
