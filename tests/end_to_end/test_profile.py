#!/usr/bin/env python3
"""Measured costs balance a run, change none of its bits, and belong to one search space."""

import json
import pathlib
import signal
import subprocess
import time
import unittest

from harness import (TIMEOUT_S, EndToEndTest, command, content_digest, environment, query,
                     recorded, run)


def catches(pid, number):
    """Whether a process has a handler for a signal."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


class Profile(EndToEndTest):
    def measure(self, *options, spec=None):
        costs = self.folder / "costs.json"
        result = run("profile", spec or self.write_spec(), "-o", costs, "--repeat", "3", *options)
        return costs, self.expect(result, 0)

    def test_costs_of_every_layer(self):
        costs, result = self.measure()
        document = json.loads(costs.read_text(encoding="utf-8"))
        self.assertEqual((document["format"], document["unit"], document["microbatch_rows"]),
                         ("verbatim-costs", "second", 8))
        names = ["stem", *(f"block{b}.{c}" for b in range(6) for c in range(3)), "head"]
        self.assertEqual([layer["layer"] for layer in document["layers"]], names)
        for layer in document["layers"]:
            self.assertGreaterEqual(layer["forward"], 0.0)
            self.assertEqual(layer["update"] > 0.0, layer["op"] != "skip", layer)
            self.assertIn(f"\n  {layer['layer']} ", result.out)
        self.assertIn(f"--costs {costs}", result.out)

    def test_balanced_by_costs_changes_no_bit(self):
        """Whatever the file says: here that the head takes a second, and all else nothing."""
        costs, _ = self.measure()
        measured = self.train("--stages", "3", "--partition", "balanced", "--costs", costs)
        document = json.loads(costs.read_text(encoding="utf-8"))
        for layer in document["layers"]:
            layer["forward"] = layer["backward"] = float(layer["layer"] == "head")
        costs.write_text(json.dumps(document), encoding="utf-8")
        skewed = self.train("--stages", "3", "--costs", costs, record="skewed.db")
        reference = content_digest(recorded("--stages", "1").path)
        self.assertEqual([content_digest(measured), content_digest(skewed)], [reference] * 2)
        alone = query(skewed, "SELECT DISTINCT name FROM lineage WHERE stage = 2")
        self.assertEqual(alone, [("head",)])

    def test_costs_of_another_space_are_refused(self):
        costs, _ = self.measure()
        other = self.write_spec({"supernet.stem.channels": 6}, name="other.json")
        self.refuse(["train", other, "-o", self.folder / "run.db", "--costs", costs], 3,
                    str(costs), "stem", "verbatim profile SPEC -o costs.json")

    def test_interrupted(self):
        costs = self.folder / "costs.json"
        arguments = ["profile", self.write_spec(), "-o", costs, "--repeat", "100000"]
        process = subprocess.Popen(command(arguments), env=environment(), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + TIMEOUT_S
        while not catches(process.pid, signal.SIGINT):
            self.assertLess(time.monotonic(), deadline, "it never began")
            self.assertIsNone(process.poll(), "it ended early")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual((process.returncode, out), (4, ""))
        self.assertIn("stopped on request", err)
        self.assertFalse(costs.exists())


if __name__ == "__main__":
    unittest.main()
