#!/usr/bin/env python3
"""The CI files in docs/ci do what docs/ci.md says, as far as that needs no network.

A small project is made as a user would have it, with a spec and records, and the steps of each job
are executed in it as the CI system would: in order, until one fails, then only those for every
case. Only what fetches and builds verbatim is left out; the program under test takes its place.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest
import xml.etree.ElementTree

try:
    import yaml
except ModuleNotFoundError:
    sys.exit("the Python package yaml is missing: apt-get install python3-yaml")

from harness import BINARY, TIMEOUT_S, EndToEndTest, environment, recorded, run
from packed import edit_access

CI = pathlib.Path(__file__).resolve().parents[2] / "docs" / "ci"
GITHUB = yaml.safe_load((CI / "github-actions.yml").read_text(encoding="utf-8"))
GITLAB = yaml.safe_load((CI / "gitlab-ci.yml").read_text(encoding="utf-8"))

# They need the network, and are tested by scripts/check-clean-machine.
INSTALLS = {"Install verbatim", "Install verbatim without LibTorch"}


class CiTest(EndToEndTest):
    def setUp(self):
        super().setUp()
        self.project = self.folder / "project"
        self.project.mkdir()
        self.write_spec({"numerics": "x86-64-v3"}, name="project/spec.json")
        self.summary = self.folder / "summary.md"

    def variables(self, defaults, **changes):
        path = f"{pathlib.Path(BINARY).resolve().parent}{os.pathsep}{os.environ['PATH']}"
        small = {"SUBNETS": "8", "DRAW": "3"}
        return environment(PATH=path, **{**defaults, **small, **changes})

    def shell(self, options, script, variables):
        return subprocess.run(["bash", *options, "-c", script], cwd=self.project, env=variables,
                              text=True, capture_output=True, timeout=TIMEOUT_S, check=False)

    def add_records(self):
        """One that is sound and one whose digest of an access was changed, in folders."""
        for name in ("sound", "changed"):
            (self.project / name).mkdir()
            shutil.copyfile(recorded().path, self.project / name / "run.db")
        edit_access(self.project / "changed" / "run.db", 3, self.first_layer(), weights=bytes(16))

    def first_layer(self):
        accesses = run("show", recorded().path, "--subnet", "3", "--format", "json").json()
        return accesses["accesses"][0]["layer"]

    def assert_junit(self, path, failed):
        suite = xml.etree.ElementTree.parse(self.project / path).getroot()
        cases = list(suite.iter("testcase"))
        self.assertTrue(cases)
        bad = [case for case in cases if case.find("failure") is not None
               or case.find("error") is not None]
        self.assertEqual(bool(bad), failed, path)


class GithubActions(CiTest):
    def run_job(self, name, **changes):
        """The exit code of the step that failed, or 0, and the names of the steps that ran."""
        variables = self.variables(GITHUB["env"], GITHUB_STEP_SUMMARY=str(self.summary),
                                   GITHUB_PATH=str(self.folder / "path"), GITHUB_RUN_NUMBER="5",
                                   **changes)
        code, ran = 0, []
        for step in GITHUB["jobs"][name]["steps"]:
            if "run" not in step or step["name"] in INSTALLS:
                continue
            if not self.is_due(step.get("if", "success()"), code, variables):
                continue
            done = self.shell(["-e"], step["run"], variables)
            ran.append(step["name"])
            self.said = done.stdout + done.stderr
            code = code or done.returncode
        return code, ran

    def is_due(self, condition, code, variables):
        if condition == "always()":
            return True
        if condition == "env.REFERENCE != ''":
            return code == 0 and variables["REFERENCE"] != ""
        self.assertEqual(condition, "success()")
        return code == 0

    def artifacts(self, job):
        [step] = [step for step in GITHUB["jobs"][job]["steps"]
                  if step.get("uses", "").startswith("actions/upload-artifact")]
        self.assertEqual(step["if"], "always()")
        return step["with"]["path"].split()

    def test_training_is_verified(self):
        code, ran = self.run_job("reexecute")
        self.assertEqual((code, len(ran)), (0, 4), self.said)
        self.assert_junit("reports/reexecution.xml", failed=False)
        self.assertIn("end to end", self.summary.read_text(encoding="utf-8"))
        self.assertIn("<!doctype html>",
                      (self.project / "reports/reexecution.html").read_text(encoding="utf-8"))
        for path in self.artifacts("reexecute"):
            self.assertTrue((self.project / path).exists(), path)

    def test_reference(self):
        """An equal one passes; the record of another seed fails the job, and is summarised."""
        for name, seed, expected in (("same.db", 7, 0), ("other.db", 8, 1)):
            with self.subTest(name):
                self.write_spec({"numerics": "x86-64-v3", "seed": seed})
                self.train("--subnets", "8", record=f"project/{name}",
                           spec=self.folder / "spec.json")
                code, ran = self.run_job("reexecute", REFERENCE=name)
                self.assertEqual(code, expected, self.said)
                self.assertIn("Summary", ran)
                self.assert_junit("reports/reference.xml", failed=expected != 0)
                (self.project / "ci.db").unlink()
                shutil.rmtree(self.project / "ci.db.checkpoints")

    def test_failed_training_ends_the_job(self):
        code, ran = self.run_job("reexecute", SPEC="none.json")
        self.assertEqual((code, ran), (3, ["Which machine this is", "Train", "Summary"]))

    def test_records_are_audited(self):
        self.assertEqual(self.run_job("audit")[0], 0, "a project without records")
        self.add_records()
        code, ran = self.run_job("audit")
        self.assertEqual((code, ran), (3, ["Audit", "Summary"]), self.said)
        self.assert_junit("reports/sound-run.db.xml", failed=False)
        self.assert_junit("reports/changed-run.db.xml", failed=True)
        self.assertIn("damaged", self.summary.read_text(encoding="utf-8"))
        self.assertEqual(self.artifacts("audit"), ["reports/"])

    def test_actions_have_versions(self):
        for job in GITHUB["jobs"].values():
            for step in job["steps"]:
                self.assertRegex(step.get("uses", "a@v1"), r"@v\d+$")


class Gitlab(CiTest):
    def run_job(self, name, **changes):
        variables = self.variables(GITLAB["variables"], CI_PIPELINE_IID="5", **changes)
        done = self.shell(["-eo", "pipefail"], "\n".join(GITLAB[name]["script"]), variables)
        self.said = done.stdout + done.stderr
        return done.returncode

    def test_training_is_verified(self):
        self.assertEqual(self.run_job("reexecute"), 0, self.said)
        self.assert_junit("reports/reexecution.xml", failed=False)
        for path in GITLAB["reexecute"]["artifacts"]["paths"]:
            self.assertTrue((self.project / path).exists(), path)

    def test_reference(self):
        self.write_spec({"numerics": "x86-64-v3", "seed": 8})
        self.train("--subnets", "8", record="project/other.db", spec=self.folder / "spec.json")
        self.assertEqual(self.run_job("reexecute", REFERENCE="other.db"), 1, self.said)
        self.assert_junit("reports/reference.xml", failed=True)

    def test_failed_training_ends_the_job(self):
        self.assertEqual(self.run_job("reexecute", SPEC="none.json"), 3, self.said)

    def test_records_are_audited(self):
        self.add_records()
        for command in (["init", "--quiet"], ["add", "."]):
            subprocess.run(["git", *command], cwd=self.project, check=True)
        self.assertEqual(self.run_job("audit"), 3, self.said)
        self.assert_junit("reports/sound-run.db.xml", failed=False)
        self.assert_junit("reports/changed-run.db.xml", failed=True)


if __name__ == "__main__":
    unittest.main()
