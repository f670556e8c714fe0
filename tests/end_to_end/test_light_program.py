#!/usr/bin/env python3
"""What computes nothing on tensors needs neither LibTorch nor the engine."""

import shutil
import subprocess
import unittest

from harness import BINARY, EndToEndTest, copy_record, environment, run

NOWHERE = {"VERBATIM_ENGINE": "/nonexistent/verbatim-engine"}


class LightProgram(EndToEndTest):
    def test_links_no_libtorch(self):
        lines = subprocess.run(["ldd", BINARY], capture_output=True, text=True, check=True).stdout
        # The names alone: hexadecimal addresses may spell c10.
        libraries = " ".join(line.split()[0] for line in lines.splitlines())
        self.assertIn("libsqlite3", libraries)
        for name in ("torch", "c10", "cuda"):
            self.assertNotIn(name, libraries)

    def test_works_without_the_engine(self):
        record = copy_record(self)
        for arguments in (["verify", record], ["show", record], ["check", self.write_spec()],
                          ["show", record, "--subnet", "0"], ["train", "--help"], ["--version"]):
            with self.subTest(arguments):
                self.expect(run(*arguments, env=NOWHERE), 0)

    def test_missing_engine(self):
        """Named by the variable, or nowhere beside the program."""
        record = copy_record(self)
        for arguments in (["train", self.write_spec(), "-o", self.folder / "run.db"],
                          ["verify", record, "--reexecute", "all"]):
            result = run(*arguments, env=NOWHERE)
            self.expect(result, 4, err=(NOWHERE["VERBATIM_ENGINE"], "VERBATIM_ENGINE"))
        alone = self.folder / "bin" / "verbatim"
        alone.parent.mkdir()
        shutil.copy(BINARY, alone)
        done = subprocess.run([alone, "train", self.write_spec(), "-o", self.folder / "run.db"],
                              env=environment(), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 4)
        for part in ("no trainer", "-DVERBATIM_TRAINER=ON", str(alone.parent), "VERBATIM_ENGINE"):
            self.assertIn(part, done.stderr)
        self.assertFalse((self.folder / "run.db").exists())

    def test_programs_that_are_no_engine(self):
        """Another one; this one, by itself and behind a script that claims to be the engine."""
        version = run("--version").out.split()[1]
        wrapper = self.folder / "wrapper"
        wrapper.write_text(f'#!/bin/sh\n# verbatim-engine:{version}\nexec "{BINARY}" "$@"\n')
        wrapper.chmod(0o755)
        for engine, part in ((shutil.which("true"), "is not verbatim-engine"),
                             (BINARY, "is not verbatim-engine"),
                             (wrapper, "started verbatim, not verbatim-engine")):
            with self.subTest(engine):
                result = run("train", self.write_spec(), "-o", self.folder / "run.db",
                             env={"VERBATIM_ENGINE": str(engine)})
                self.expect(result, 4, err=(str(engine), part))

    def test_engine_in_libexec(self):
        """As installed: bin/verbatim and libexec/verbatim/verbatim-engine."""
        program = self.folder / "bin" / "verbatim"
        engine = self.folder / "libexec" / "verbatim" / "verbatim-engine"
        for path in (program, engine):
            path.parent.mkdir(parents=True)
        shutil.copy(BINARY, program)
        version = run("--version").out.split()[1]
        engine.write_text(f"#!/bin/sh\n# verbatim-engine:{version}\n")
        engine.chmod(0o755)
        done = subprocess.run([program, "train", self.write_spec(), "-o", self.folder / "run.db"],
                              env=environment(), capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_bad_input_is_told_without_the_engine(self):
        self.refuse(["train", self.write_spec({"training.batch": 0}), "-o",
                     self.folder / "run.db"], 3, "training.batch")


if __name__ == "__main__":
    unittest.main()
