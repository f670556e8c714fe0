#!/usr/bin/env python3
"""What is recorded here under a portable numeric profile has the same bits on other processors.

The other processors are emulated: qemu-x86_64 executes the engine itself, with the profile's
variables set (docs/cli.md, "Two programs"), since `verbatim` would become an engine that runs on
the real one. Each start of the engine takes about ten seconds there, so all of them are begun at
once, two at a time, and every record is small.
"""

import concurrent.futures
import functools
import os
import pathlib
import subprocess
import unittest

from harness import (BINARY, TIMEOUT_S, EndToEndTest, Result, SharedRecord, content_digest,
                     environment)

QEMU = os.environ.get("VERBATIM_QEMU", "qemu-x86_64")
ENGINE = pathlib.Path(BINARY).with_name("verbatim-engine")

VARIABLES = {
    "native": {},
    "x86-64-v3": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2",
                  "MKL_CBWR": "COMPATIBLE"},
    "x86-64": {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41",
               "MKL_CBWR": "COMPATIBLE"},
}

# Every image operator, and an optimizer and a schedule with functions beyond + and *.
SPEC = {
    "supernet.blocks": [{
        "repeat": 6,
        "residual": True,
        "candidates": [{"op": "conv"}, {"op": "separable_conv", "kernel": 5}, {"op": "mbconv"},
                       {"op": "avg_pool"}, {"op": "max_pool"}, {"op": "skip"}],
    }],
    "training.subnets": 8,
    "training.optimizer": {"kind": "adamw", "weight_decay": 0.01},
    "training.lr": {"kind": "cosine", "base": 0.01, "warmup": 2},
    "evaluation.subnets": 1,
}

# Which profile is for which processors. Nehalem has no AVX; Haswell's maker and EPYC's differ.
PAIRS = [("x86-64-v3", "Haswell"), ("x86-64-v3", "EPYC"),
         ("x86-64", "Haswell"), ("x86-64", "EPYC"), ("x86-64", "Nehalem")]


@functools.lru_cache(maxsize=None)
def record_of(profile):
    return SharedRecord("--stages", "2", "--record", "full", changes={**SPEC, "numerics": profile})


def emulate(processor, profile, *arguments):
    """Runs the engine on an emulated processor; what TCG cannot emulate is none of our concern."""
    command = [QEMU, "-cpu", processor, str(ENGINE), *map(str, arguments)]
    done = subprocess.run(command, env=environment(**VARIABLES[profile]), text=True,
                          capture_output=True, timeout=TIMEOUT_S, check=False)
    err = "".join(line for line in done.stderr.splitlines(keepends=True)
                  if "TCG doesn't support requested feature" not in line)
    return Result(done.returncode, done.stdout, err)


def verify(processor, profile):
    return emulate(processor, profile, "verify", record_of(profile).path, "--reexecute", "all",
                   "--format", "json")


class PortableBits(EndToEndTest):
    @classmethod
    def setUpClass(cls):
        for profile in VARIABLES:
            record_of(profile)
        cls.pool = concurrent.futures.ThreadPoolExecutor(max_workers=2)
        cls.addClassCleanup(cls.pool.shutdown)
        cls.verified = {(profile, processor): cls.pool.submit(verify, processor, profile)
                        for profile, processor in
                        [*PAIRS, ("native", "Haswell"), ("x86-64-v3", "Nehalem")]}
        cls.diagnosed = cls.pool.submit(
            emulate, "Nehalem", "x86-64", "doctor", record_of("x86-64").path,
            record_of("x86-64-v3").path, "--format", "json")

    def test_equal_bits(self):
        for profile, processor in PAIRS:
            with self.subTest(profile=profile, processor=processor):
                result = self.expect(self.verified[profile, processor].result(), 0)
                verdict = result.json()
                self.assertEqual(verdict["verdict"], "equal", result)
                self.assertEqual(result.err, "")
                differences = {d["key"]: d for d in verdict["environment_differences"]}
                self.assertIn(processor, differences["cpu.model"]["here"])
                self.assertEqual([d for d in differences.values() if d["numeric"]], [])

    def test_native_bits_are_this_processors(self):
        """Another processor cannot decide, and says so before it trains anything."""
        result = self.expect(self.verified["native", "Haswell"].result(), 4,
                             err=("the numeric environment differs from the recorded one",
                                  "cpu.model: recorded ", "(Haswell)", "--any-environment"))
        self.assertEqual(result.out, "")

    def test_processor_that_the_profile_is_not_for(self):
        self.expect(self.verified["x86-64-v3", "Nehalem"].result(), 4,
                    err=("cpu.instruction_sets", "avx2"))

    def test_doctor_knows_the_emulated_processor(self):
        report = self.expect(self.diagnosed.result(), 1).json()
        self.assertIn("Nehalem", report["machine"]["model"])
        self.assertEqual({p["numerics"]: p["available"] for p in report["profiles"]},
                         {"native": True, "x86-64-v3": False, "x86-64": True})
        self.assertEqual([r["can_reexecute"] for r in report["records"]], [True, False])
        self.assertIn("avx2", report["records"][1]["obstacles"][0]["problem"])

    def test_profiles_differ_from_each_other(self):
        """Otherwise the variables would do nothing, and equal bits would be no news."""
        digests = {content_digest(record_of(profile).path) for profile in VARIABLES}
        self.assertGreater(len(digests), 1)


if __name__ == "__main__":
    unittest.main()
