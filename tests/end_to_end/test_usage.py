#!/usr/bin/env python3
"""Wrong usage and outputs that cannot be: refused with what to do instead."""

import unittest

from harness import EndToEndTest, content_digest, copy_record, query, run


class WrongUsage(EndToEndTest):
    def refuse_training(self, options, code, *parts):
        self.refuse(["train", self.write_spec(), *options], code, *parts)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["spec.json"])

    def test_option_values(self):
        record = ("-o", self.folder / "run.db")
        for options, *parts in (
                (["--policy", "causall"], "causall", "sequential"),
                (["--device", "gpu"], "'gpu' is no device: cpu, cuda or cuda:N"),
                (["--device", "cuda:x"], "'cuda:x' is no device"),
                (["--record", "everything"], "everything", "losses"),
                (["--stages", "0"], "--stages: '0' is no whole number from 1 to"),
                (["--stages", "-1"], "--stages"),
                (["--stages", "two"], "--stages", "two"), (["--in-flight", "0"], "--in-flight"),
                (["--subnets", "0"], "--subnets"), (["--stagse", "2"], "--stagse"),
                (["--subnets", "4294967296"], "from 1 to 4,294,967,295"),
                (["--threads-per-stage", "1000000"], "from 1 to 1,024")):
            with self.subTest(options):
                self.refuse_training([*record, *options], 2, *parts, "verbatim train --help")

    def test_more_stages_than_positions(self):
        self.refuse_training(["-o", self.folder / "run.db", "--stages", "9"], 2, "--stages 9",
                             "6 blocks", "8 positions", "use --stages 8 or fewer")

    def test_sequential_policy_has_one_stage(self):
        self.refuse_training(["-o", self.folder / "run.db", "--stages", "2", "--policy",
                              "sequential"], 2, "--policy sequential", "one stage")

    def test_no_record_named(self):
        self.refuse_training([], 2, "-o RUN.db", "--record off")
        self.refuse_training(["-o", self.folder / "run.db", "--record", "off"], 2, "--record off")

    def test_no_subcommand(self):
        result = run()
        self.expect(result, 2, err="Subcommands:")
        self.assertEqual(result.out, "")

    def test_unknown_subcommand(self):
        self.refuse(["trian"], 2, "unknown command 'trian'", 'did you mean "train"?')

    def test_verify_values(self):
        record = copy_record(self)
        for options, *parts in ((["--reexecute", "0"], "'0' is neither 'all' nor a number"),
                                (["--reexecute", "some"], "'some'"), (["--format", "xml"], "xml"),
                                (["-o", record], "is the record itself")):
            with self.subTest(options):
                self.refuse(["verify", record, *options], 2, *parts)

    def test_show_what_is_not_there(self):
        record = copy_record(self)
        self.refuse(["show", record, "--subnet", "99"], 2, "no subnet 99", "16 subnets")
        self.refuse(["show", record, "--layer", "stm"], 2, "'stm'", 'did you mean "stem"?')
        self.refuse(["show", record, "--layer", "stem", "--subnet", "1"], 2, "--layer", "--subnet")


class Output(EndToEndTest):
    def test_existing_record(self):
        """Kept without --force, replaced with it."""
        record = copy_record(self)
        before = record.read_bytes()
        spec = self.write_spec({"seed": 8})
        self.refuse(["train", spec, "-o", record], 2, f"{record} exists already", "--force")
        self.assertEqual(record.read_bytes(), before)
        old_digest = content_digest(record)
        self.train("--force", spec=spec, record=record)
        self.assertNotEqual(content_digest(record), old_digest)

    def test_replaced_leftovers(self):
        """A stale -wal beside the record must not become part of the new one."""
        record = copy_record(self)
        (self.folder / "copy.db-wal").write_bytes(b"stale" * 1000)
        self.train("--force", "--subnets", "3", record=record)
        self.verify(record, says="3 of 3 subnets")

    def test_failed_start_keeps_the_record(self):
        """--force replaces only once there is something to replace it with."""
        record = copy_record(self)
        before = record.read_bytes()
        spec = self.write_spec({"training.batch": 2000})
        self.refuse(["train", spec, "-o", record, "--force"], 3, "training.batch")
        self.assertEqual(record.read_bytes(), before)

    def test_file_of_another_kind(self):
        """--force overwrites records, not what happens to bear the name."""
        spec = self.write_spec()
        self.refuse(["train", spec, "-o", spec, "--force"], 2, "not a verbatim record")
        self.assertTrue(spec.read_text().startswith("{"))

    def test_folder(self):
        for options in ([], ["--force"]):
            self.refuse(["train", self.write_spec(), "-o", self.folder, *options], 2, "is a folder")

    def test_missing_folder(self):
        self.refuse(["train", self.write_spec(), "-o", self.folder / "none" / "run.db"], 2,
                    f"there is no folder {self.folder}/none")

    def test_folder_that_cannot_be_written(self):
        """/proc takes no files, not even from root."""
        self.refuse(["train", self.write_spec(), "-o", "/proc/run.db"], 4, "/proc/run.db",
                    "check that its folder can be written")

    def test_odd_names(self):
        """Spaces, quotes, percent signs and letters beyond ASCII in every path."""
        self.folder = self.folder / "o'dd %41 ?#näme"
        self.folder.mkdir()
        record = self.train("--subnets", "2", record="rün 1%20.db")
        self.verify(record, says="2 of 2 subnets")
        self.assertEqual(query(record, "SELECT count(*) FROM subnets"), [(2,)])


if __name__ == "__main__":
    unittest.main()
