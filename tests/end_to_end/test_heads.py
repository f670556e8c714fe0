#!/usr/bin/env python3
"""A head that was kept elsewhere shows whatever is done to a record later, also by somebody who knows
the format and makes the record agree with itself again (seal)."""

import functools
import json
import pathlib
import sqlite3
import tempfile
import unittest

from harness import EndToEndTest, copy_record, recorded, run
from seal import seal

LAYOUT = ("--stages", "2")


@functools.lru_cache(maxsize=None)
def kept():
    """A folder with two pairs of keys, and a signed head of the shared record."""
    folder = tempfile.TemporaryDirectory(prefix="verbatim-test-")
    path = pathlib.Path(folder.name)
    for name in ("run.key", "other.key"):
        assert run("keygen", path / name).code == 0
    result = run("head", recorded(*LAYOUT).path, "-o", path / "run.head", "--sign", path / "run.key")
    assert result.code == 0, result
    return folder, path


def change(record, *statements):
    """Runs SQL; returns how many rows it changed."""
    database = sqlite3.connect(record)
    try:
        with database:
            return sum(database.execute(statement).rowcount for statement in statements)
    finally:
        database.close()


SWAP = ("UPDATE subnets SET seq = 99 WHERE seq = 3", "UPDATE subnets SET seq = 3 WHERE seq = 4",
        "UPDATE subnets SET seq = 4 WHERE seq = 99")
COLUMNS = ("choices, samples, batch_digest, loss_bits, accesses, activations, activity, "
           "content_leaf, layout_leaf")


class Forgeries(EndToEndTest):
    def setUp(self):
        super().setUp()
        self.record = copy_record(self, *LAYOUT)
        self.kept = kept()[1]

    def verify_against_head(self, code, *says):
        return self.verify(self.record, "--head", self.kept / "run.head", "--key",
                           self.kept / "run.key.pub", code=code, says=says)

    def forge(self, *statements):
        self.assertGreater(change(self.record, *statements), 0)
        seal(self.record)

    def test_untouched_copy(self):
        self.verify_against_head(0, "passed   heads", "1 head, the newest of 16 subnets, signed by")

    def test_sealing_changes_no_sound_record(self):
        seal(self.record)
        self.verify_against_head(0)

    def test_plain_edits_are_damage(self):
        """Whoever only edits rows is found by the record itself."""
        for statements in (("UPDATE subnets SET loss_bits = loss_bits + 1 WHERE seq = 5",), SWAP,
                           ("DELETE FROM subnets WHERE seq = 5",),
                           ("DELETE FROM subnets WHERE seq > 9",),
                           ("UPDATE evaluations SET correct = correct + 1 WHERE evaluation = 0",),
                           ("UPDATE run SET policy = 'gpipe'",)):
            with self.subTest(statements):
                self.record = copy_record(self, *LAYOUT)
                self.assertGreater(change(self.record, *statements), 0)
                self.verify(self.record, code=3)
                result = self.verify_against_head(3)
                self.assertNotIn("passed   heads", result.out)

    def test_forged_rows(self):
        """Agrees with itself, in every respect; the head alone tells."""
        for statement, says in (
                ("UPDATE subnets SET loss_bits = loss_bits + 1 WHERE seq = 5",
                 "content of subnets 0 to 15: changed"),
                ("UPDATE subnets SET loss_bits = loss_bits + 1",
                 "content of subnets 0 to 15: changed"),
                ("UPDATE layers SET initial_digest = zeroblob(16) WHERE name = 'head'",
                 "this is another run, or its spec, data set or initial weights were changed"),
                ("UPDATE run SET dataset_digest = zeroblob(16)", "this is another run"),
                ("UPDATE environment SET value = 'another' WHERE key = 'info.host'",
                 "environment or a resumption of the run was changed"),
                ("UPDATE run SET command_line = 'verbatim train'",
                 "program, command line, layout"),
                ("UPDATE evaluations SET correct = correct + 1 WHERE evaluation = 0",
                 "the run's end or its evaluations were changed")):
            with self.subTest(statement):
                self.record = copy_record(self, *LAYOUT)
                self.forge(statement)
                self.verify(self.record, code=0)
                result = self.verify_against_head(1, "FAILED   heads", says, "damaged or forged")
                self.assertTrue(result.out.endswith(
                    "not the record that the heads are of (damaged or forged)\n"), result)

    def test_cut_tail(self):
        self.forge("DELETE FROM subnets WHERE seq >= 12", "DELETE FROM evaluations",
                   "DELETE FROM checkpoints",
                   "UPDATE run SET status = 'interrupted', status_detail = 'stopped on request'")
        self.verify(self.record, code=0)
        self.verify_against_head(1, "the record was cut, or replaced by an earlier state: of the "
                                    "16 subnets it holds 12 without a gap")

    def test_deleted_inserted_and_swapped_rows(self):
        """The record contradicts itself, or its head; whichever, the head is named too."""
        for statements in (("DELETE FROM subnets WHERE seq = 7",), SWAP,
                           (f"INSERT INTO subnets (seq, {COLUMNS}) SELECT 16, {COLUMNS} FROM subnets "
                            "WHERE seq = 15",)):
            with self.subTest(statements):
                self.record = copy_record(self, *LAYOUT)
                self.forge(*statements)
                result = run("verify", self.record, "--head", self.kept / "run.head")
                self.assertIn(result.code, (1, 3), str(result))
                self.assertIn("FAILED   heads", result.out, str(result))

    def test_rewritten_history(self):
        """Another run in the record's place, sound in itself: the bits of another seed."""
        self.record = self.train(*LAYOUT, spec=self.write_spec({"seed": 8}))
        self.verify(self.record, code=0)
        self.verify_against_head(1, "this is another run")

    def test_another_key(self):
        self.verify(self.record, "--head", self.kept / "run.head", "--key",
                    self.kept / "other.key.pub", code=1,
                    says=("FAILED   heads", "it is signed with another key"))
        bare = self.folder / "bare.head"
        self.expect(run("head", self.record, "-o", bare), 0)
        self.verify(self.record, "--head", bare, code=0, says="signatures not checked")
        self.verify(self.record, "--head", bare, "--key", self.kept / "run.key.pub", code=1,
                    says="it is not signed")

    def test_edited_head(self):
        head = json.loads((self.kept / "run.head").read_text(encoding="utf-8"))
        head["subnets"] = 12
        edited = self.folder / "edited.head"
        edited.write_text(json.dumps(head) + "\n", encoding="utf-8")
        self.verify(self.record, "--head", edited, "--key", self.kept / "run.key.pub", code=1,
                    says="its signature does not fit: the head was changed")

    def test_reports(self):
        self.forge("UPDATE subnets SET loss_bits = loss_bits + 1 WHERE seq = 5")
        head = ("--head", self.kept / "run.head")
        verdict = self.verify(self.record, *head, "--format", "json", code=1).json()
        difference = verdict["first_difference"]
        self.assertEqual((difference["class"], difference["subnet"], difference["what"]),
                         ("damaged or forged", None, "content root of 16 subnets"))
        self.assertIn("heads", [check["name"] for check in verdict["checks"]])
        for form in ("junit", "markdown", "html"):
            self.verify(self.record, *head, "--format", form, code=1, says="damaged or forged")


class RunsThatLeaveHeads(EndToEndTest):
    def test_every_head_of_a_run_verifies(self):
        """Heads of a run that went on, and of its end."""
        self.expect(run("keygen", self.folder / "run.key"), 0)
        heads = self.folder / "run.head"
        record = self.train("--head-file", heads, "--head-every", "1", "--sign",
                            self.folder / "run.key", *LAYOUT)
        lines = [json.loads(line) for line in heads.read_text(encoding="utf-8").splitlines()]
        sizes = [line["subnets"] for line in lines]
        self.assertEqual(sizes, sorted(sizes))
        self.assertEqual(sizes[-1], 16)
        self.assertEqual(["end" in line for line in lines], [False] * (len(lines) - 1) + [True])
        self.verify(record, "--head", heads, "--key", self.folder / "run.key.pub",
                    says=f"passed   heads        {len(lines)} head")
        self.expect(run("head", record, "-o", heads), 0, out="head of 16 subnets")
        self.refuse(["train", self.write_spec(), "-o", self.folder / "b.db", "--head-file", heads],
                    2, "it may hold an earlier run's heads")

    def test_full_disk_of_the_heads(self):
        """A head that cannot be kept stops the run; what was committed stays."""
        record = self.folder / "run.db"
        self.refuse(["train", self.write_spec(), "-o", record, "--head-file", "/dev/full",
                     "--head-every", "1"], 4, "/dev/full")
        self.verify(record, code=0)

    def test_equal_runs_have_equal_content_roots(self):
        roots = set()
        for stages in ("1", "3"):
            record = self.train("--stages", stages, record=f"{stages}.db")
            roots.add(run("head", record).json()["content_root"])
        self.assertEqual(len(roots), 1)
        self.expect(run("diff", self.folder / "1.db", self.folder / "3.db", "--first"), 0,
                    out="16 subnets compared by their trees: equal")


class Proofs(EndToEndTest):
    def test_subnet(self):
        record = copy_record(self, *LAYOUT)
        head = kept()[1] / "run.head"
        proof = self.folder / "5.proof"
        self.expect(run("show", record, "--subnet", "5", "--proof", proof, "--head", head), 0)
        key = kept()[1] / "run.key.pub"
        self.expect(run("proof", proof, "--head", head, "--key", key), 0,
                    out="subnet 5 is one of the 16 subnets")
        changed = json.loads(proof.read_text(encoding="utf-8"))
        changed["subnet"] = 6
        proof.write_text(json.dumps(changed), encoding="utf-8")
        self.expect(run("proof", proof, "--head", head), 1, out="DOES NOT HOLD")


if __name__ == "__main__":
    unittest.main()
