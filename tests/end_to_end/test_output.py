#!/usr/bin/env python3
"""What the program prints, for people and for machines."""

import json
import os
import pty
import subprocess
import unittest

from harness import (SUBNETS, TIMEOUT_S, EndToEndTest, command, copy_record, environment, query,
                     recorded, run, tamper)

COMMANDS = ("check", "train", "verify", "show")
# docs/cli.md: fields may be added, none may go.
VERDICT_FIELDS = {"format", "version", "tool_version", "record", "verdict", "exit_code", "summary",
                  "run", "counts", "environment_differences", "checks", "first_difference"}
VERDICT_RUN_FIELDS = {"name", "status", "status_detail", "policy", "stages", "in_flight", "device",
                      "record_level", "tool_version"}
COUNT_FIELDS = {"subnets_planned", "subnets", "accesses", "subnets_audited", "accesses_audited",
                "violations", "subnets_with_violations", "subnets_reexecuted"}
CHECK_FIELDS = {"name", "outcome", "detail", "problems", "problem_count"}
DIFFERENCE_FIELDS = {"class", "subnet", "layer", "layer_name", "phase", "what", "recorded",
                     "expected", "cause", "next_command"}
SHOW_FIELDS = {"record", "name", "status", "status_detail", "started_utc", "ended_utc",
               "command_line", "stages", "in_flight", "partition", "device", "policy", "record_level",
               "subnets_planned", "subnets", "accesses", "layers", "versioned_layers", "loss",
               "accuracy", "dataset_digest", "content_digest", "content_root",
               "subnets_under_root", "resumptions", "checkpoints", "tool_version", "environment"}
SUBNET_FIELDS = {"record", "subnet", "loss", "choices", "choice_names", "samples", "batch_digest",
                 "accesses", "activations"}
ACCESS_FIELDS = {"layer", "layer_name", "stage", "read_seq", "base_seq", "weights",
                 "optimizer_state", "gradients"}
LAYER_FIELDS = {"record", "layer", "layer_name", "op", "position", "candidate", "versioned",
                "initial_weights", "lineage"}
LINEAGE_FIELDS = {"subnet", "read_seq", "base_seq", "stage", "weights", "optimizer_state"}
CHECKS = ["file", "run", "layers", "subnets", "stream", "causality", "evaluations", "trees", "seals",
          "checkpoints", "re-execution"]


class Json(EndToEndTest):
    def has(self, fields, value):
        self.assertLessEqual(fields, set(value), "missing fields")

    def show(self, record, *options):
        result = self.expect(run("show", record, "--format", "json", *options), 0)
        self.assertEqual(result.err, "")
        return result.json()

    def test_verdict(self):
        record = copy_record(self)
        verdict = self.verify(record, "--format", "json").json()
        self.has(VERDICT_FIELDS, verdict)
        self.has(VERDICT_RUN_FIELDS, verdict["run"])
        self.has(COUNT_FIELDS, verdict["counts"])
        self.assertEqual([check["name"] for check in verdict["checks"]], CHECKS)
        for check in verdict["checks"]:
            self.has(CHECK_FIELDS, check)
        self.assertEqual((verdict["format"], verdict["version"], verdict["verdict"]),
                         ("verbatim-verdict", 1, "intact"))
        self.assertEqual((verdict["exit_code"], verdict["record"]), (0, str(record)))
        self.assertEqual(verdict["counts"]["subnets_audited"], SUBNETS)
        self.assertIsNone(verdict["first_difference"])

    def test_equal_verdict(self):
        verdict = self.verify(recorded().path, "--reexecute", "all", "--format", "json").json()
        self.assertEqual((verdict["verdict"], verdict["counts"]["subnets_reexecuted"]),
                         ("equal", SUBNETS))
        self.assertEqual({check["outcome"] for check in verdict["checks"]}, {"passed"})

    def test_difference(self):
        record = copy_record(self, "--policy", "asynchronous", "--stages", "2", "--in-flight", "6")
        verdict = self.verify(record, "--format", "json", code=1).json()
        self.assertEqual((verdict["verdict"], verdict["exit_code"]), ("different", 1))
        self.has(DIFFERENCE_FIELDS, verdict["first_difference"])
        self.assertGreater(verdict["counts"]["violations"], 0)

    def test_damaged(self):
        record = copy_record(self)
        for sql in ("UPDATE run SET stages = 0", "UPDATE run SET spec_json = 'x'"):
            tamper(record, sql)
            for options in ([], ["--reexecute", "all"]):
                verdict = self.verify(record, "--format", "json", *options, code=3).json()
                self.assertEqual((verdict["verdict"], verdict["exit_code"]), ("damaged", 3))
                self.assertEqual([check["name"] for check in verdict["checks"]], CHECKS)

    def test_run(self):
        shown = self.show(copy_record(self))
        self.has(SHOW_FIELDS, shown)
        self.has({"first", "last", "mean_of_last_tenth"}, shown["loss"])
        self.has({"subnets", "mean", "min", "max"}, shown["accuracy"])
        self.assertRegex(shown["loss"]["first"]["bits"], "^0x[0-9a-f]{8}$")
        self.assertEqual((shown["status"], shown["subnets"]), ("complete", SUBNETS))
        self.assertEqual(shown["environment"]["threads_per_stage"], "1")

    def test_subnet(self):
        record = copy_record(self, "--record", "full", "--stages", "3")
        shown = self.show(record, "--subnet", "5")
        self.has(SUBNET_FIELDS, shown)
        self.has(ACCESS_FIELDS, shown["accesses"][0])
        self.has({"microbatch", "position", "digest"}, shown["activations"][0])
        choices = query(record, "SELECT choices FROM subnets WHERE seq = 5")[0][0]
        self.assertEqual((shown["subnet"], shown["choices"]), (5, json.loads(choices)))
        self.assertEqual(len(shown["samples"]), 16)
        self.assertEqual(len(shown["activations"]), 2 * 8)

    def test_layer(self):
        shown = self.show(copy_record(self), "--layer", "stem")
        self.has(LAYER_FIELDS, shown)
        self.has(LINEAGE_FIELDS, shown["lineage"][0])
        self.assertEqual([entry["read_seq"] for entry in shown["lineage"]],
                         list(range(-1, SUBNETS - 1)))


class Streams(EndToEndTest):
    def test_report_file(self):
        """-o writes what standard output would show, and nothing else is printed."""
        record = copy_record(self)
        for options in ([], ["--format", "json"]):
            report = self.folder / "report"
            result = self.verify(record, *options, "-o", report)
            self.assertEqual((result.out, result.err), ("", ""))
            self.assertEqual(report.read_text(encoding="utf-8"), self.verify(record, *options).out)

    def test_closed_pipe(self):
        """`verbatim … | head` is no error, whether the reader closes early or at once."""
        record = copy_record(self, "--record", "full", "--stages", "3")
        for arguments in (["show", record, "--format", "json"], ["verify", record],
                          ["show", record, "--subnet", "1"], ["train", "--help"]):
            with self.subTest(arguments):
                read_end, write_end = os.pipe()
                os.close(read_end)
                done = subprocess.run(command(arguments), env=environment(), stdout=write_end,
                                      stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False)
                os.close(write_end)
                self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_training_prints_no_progress_into_files(self):
        result = run("train", self.write_spec(), "-o", self.folder / "run.db")
        self.expect(result, 0, out=("trained 16 subnets", "loss:", "held-out accuracy of 2",
                                    f"next: verbatim verify {self.folder}/run.db --reexecute all"))
        self.assertEqual(result.err, "")

    def terminal_error(self, *options, **variables):
        """What a terminal shows of an error."""
        leader, follower = pty.openpty()
        try:
            subprocess.run(command(["check", "none.json", *options]), env=environment(**variables),
                           stderr=follower, timeout=TIMEOUT_S, check=False)
            return os.read(leader, 1000)
        finally:
            os.close(leader)
            os.close(follower)

    def test_color(self):
        """On terminals only, and not where it is refused."""
        self.assertIn(b"\x1b[31m", self.terminal_error())
        self.assertNotIn(b"\x1b", self.terminal_error("--no-color"))
        self.assertNotIn(b"\x1b", self.terminal_error(NO_COLOR="1"))
        self.assertNotIn("\x1b", run("check", "none.json").err)


class Help(EndToEndTest):
    def test_every_command_has_examples(self):
        for name in COMMANDS:
            result = self.expect(run(name, "--help"), 0, out=("Examples:", f"  verbatim {name} "))
            self.assertEqual(result.err, "")

    def test_every_option_has_an_example(self):
        """A line of help that names an option goes on to show one, but for --help itself."""
        for name in COMMANDS:
            text = run(name, "--help").out.split("Examples:")[0]
            options = text.split("\n  -")[1:]
            self.assertGreater(len(options), 0)
            for option in options:
                if not option.startswith("h,--help"):
                    self.assertIn("Example: ", " ".join(option.split()), f"{name}: -{option}")

    def test_top_level(self):
        self.expect(run("--help"), 0, out=("Exit codes:", "Examples:", *COMMANDS))
        self.assertRegex(run("--version").out, r"^verbatim \d+\.\d+\.\d+")

    def test_no_color_is_taken_anywhere(self):
        spec = self.write_spec()
        for arguments in (["--no-color", "check", spec], ["check", spec, "--no-color"]):
            self.expect(run(*arguments), 0)


if __name__ == "__main__":
    unittest.main()
