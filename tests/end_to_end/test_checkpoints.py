#!/usr/bin/env python3
"""Checkpoints of real runs: what train leaves, what verify finds, what export writes."""

import json
import os
import pathlib
import random
import shutil
import struct
import unittest

from harness import SUBNETS, EndToEndTest, query, run


def read_tensors(path):
    """(metadata, {name: (dtype, shape, bytes)}) of a safetensors file."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header, data = json.loads(content[8:8 + length]), content[8 + length:]
    metadata = header.pop("__metadata__", {})
    return metadata, {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
                      for name, entry in header.items()}


def folder_of(record):
    return pathlib.Path(f"{record}.checkpoints")


def cuts_of(record):
    return [cut for (cut,) in query(record, "SELECT cut FROM checkpoints ORDER BY cut")]


class CheckpointsTest(EndToEndTest):
    def files(self, record):
        return {path.name for path in folder_of(record).iterdir()}

    def named(self, record):
        return {f"{file}.safetensors"
                for (file,) in query(record, "SELECT file FROM checkpoint_layers")}

    def check(self, record):
        """The outcome and detail of verify's check, and its exit code."""
        result = run("verify", record, "--format", "json")
        (check,) = [item for item in result.json()["checks"] if item["name"] == "checkpoints"]
        return check["outcome"], check, result.code

    def test_the_newest_stay_and_nothing_else(self):
        record = self.train("--checkpoint-every", "5", "--stages", "3")
        self.assertEqual(cuts_of(record), [15, SUBNETS])
        self.assertEqual(self.files(record), self.named(record))
        outcome, check, code = self.check(record)
        self.assertEqual((outcome, code), ("passed", 0))
        self.assertIn("2 checkpoints", check["detail"])

    def test_train_says_where_the_last_one_is(self):
        result = run("train", self.write_spec(), "-o", self.folder / "run.db")
        self.expect(result, 0, out=f"checkpoint: after {SUBNETS} subnets, in "
                                   f"{self.folder / 'run.db'}.checkpoints")

    def test_layouts_and_times_leave_the_same_files(self):
        files = [self.files(self.train(*options, "--checkpoint-every", "4",
                                       "--keep-checkpoints", "9", record=f"{name}.db"))
                 for name, options in (("a", ()), ("b", ("--stages", "4", "--in-flight", "8")))]
        self.assertEqual(*files)

    def test_none_are_kept_where_none_are_wanted(self):
        record = self.train("--keep-checkpoints", "0")
        self.assertEqual(cuts_of(record), [])
        self.assertFalse(folder_of(record).exists())
        self.refuse(["export", record, "-o", self.folder / "a"], 3, "has no checkpoint",
                    "--keep-checkpoints 0")

    def test_force_removes_the_old_ones(self):
        record = self.train("--checkpoint-every", "5")
        self.train("--force", spec=self.write_spec({"seed": 8}))
        self.assertEqual(cuts_of(record), [SUBNETS])
        self.assertEqual(self.files(record), self.named(record))
        self.train("--force", "--keep-checkpoints", "0")
        self.assertFalse(folder_of(record).exists())

    def test_a_folder_without_its_record_is_kept(self):
        record = self.train()
        record.unlink()
        files = self.files(record)
        self.refuse(["train", self.write_spec(), "-o", record], 2, "left over", "--force")
        self.assertEqual(self.files(record), files)
        self.train("--force")

    def test_what_is_in_the_folders_way_is_kept(self):
        record = self.train("--checkpoint-every", "5", "--subnets", "6")
        other = self.folder / "other.db"
        folder_of(other).write_text("mine")
        for options in ((), ("--force",), ("--keep-checkpoints", "0")):
            self.refuse(["train", self.write_spec(), "-o", other, *options], 2, "in the way")
        self.assertFalse(other.exists())
        folder_of(record).rename(self.folder / "elsewhere")
        folder_of(record).symlink_to(self.folder / "nowhere")
        before = record.read_bytes()
        self.refuse(["resume", record], 2, "in the way")
        self.assertEqual(record.read_bytes(), before)

    def test_wrong_usage(self):
        spec = self.write_spec()
        record = self.folder / "run.db"
        self.refuse(["train", spec, "--record", "off", "--checkpoint-every", "5"], 2,
                    "--record off")
        self.refuse(["train", spec, "-o", record, "--policy", "asynchronous",
                     "--keep-checkpoints", "1"], 2, "asynchronous")
        self.refuse(["train", spec, "-o", record, "--checkpoint-every", "-1"], 2,
                    "--checkpoint-every")
        self.train("--policy", "asynchronous")
        self.assertEqual(cuts_of(record), [])

    def test_verify_finds_every_flipped_bit(self):
        record = self.train("--checkpoint-every", "8")
        seed = int(os.environ.get("VERBATIM_TEST_SEED", random.randrange(2**32)))
        print(f"seed {seed}: repeat with VERBATIM_TEST_SEED={seed}")
        draw = random.Random(seed)
        for path in draw.sample(sorted(folder_of(record).iterdir()), 8):
            good = path.read_bytes()
            at, bit = draw.randrange(len(good)), draw.randrange(8)
            bad = bytearray(good)
            bad[at] ^= 1 << bit
            path.write_bytes(bad)
            outcome, check, code = self.check(record)
            self.assertEqual((outcome, code), ("failed", 3), f"{path}, byte {at}, bit {bit}")
            self.assertIn(path.name, check["problems"][0])
            path.write_bytes(good[:draw.randrange(len(good))])
            self.assertEqual(self.check(record)[::2], ("failed", 3), f"{path} cut off")
            path.unlink()
            self.assertEqual(self.check(record)[::2], ("failed", 3), f"{path} removed")
            path.write_bytes(good)
        self.assertEqual(self.check(record)[::2], ("passed", 0))

    def test_a_folder_that_is_gone_is_only_noted(self):
        record = self.train()
        shutil.rmtree(folder_of(record))
        outcome, check, code = self.check(record)
        self.assertEqual((outcome, code), ("not run", 0))
        self.assertIn("run.db.checkpoints is not there", check["detail"])
        self.verify(record, says="checkpoints")

    def test_export(self):
        record = self.train("--checkpoint-every", "10")
        whole, part, choices = (self.folder / name for name in ("whole", "part", "choices"))
        self.expect(run("export", record, "-o", whole), 0)
        self.expect(run("export", record, "--subnet", "3", "-o", part), 0)
        drawn = json.loads(query(record, "SELECT choices FROM subnets WHERE seq = 3")[0][0])
        text = ",".join(map(str, drawn))
        self.expect(run("export", record, "--choices", text, "-o", choices), 0)
        metadata, tensors = read_tensors(part)
        self.assertEqual(metadata["spec"], "end to end")
        self.assertEqual(metadata["cut"], str(SUBNETS))
        self.assertEqual((metadata["subnet"], metadata["choices"]), ("3", text))
        self.assertEqual(tensors["stem.conv.weight"][:2], ("F32", [4, 1, 3, 3]))
        self.assertEqual({name.split(".")[0] for name in tensors},
                         {"stem", "head"} | {f"block{i}" for i, choice in enumerate(drawn)
                                             if choice != 2})
        everything = read_tensors(whole)[1]
        self.assertEqual(tensors, {name: everything[name] for name in tensors})
        self.assertEqual(tensors, read_tensors(choices)[1])
        self.assertFalse([name for name in everything if "momentum" in name or "step" in name])
        self.expect(run("export", record, "--at", "10", "--optimizer", "-o", whole), 0)
        metadata, with_state = read_tensors(whole)
        self.assertEqual(metadata["cut"], "10")
        self.assertIn("head.linear.weight.momentum_buffer", with_state)
        self.assertEqual(struct.unpack("<q", with_state["head.step"][2]), (10,))
        self.assertNotEqual(with_state["head.linear.weight"], everything["head.linear.weight"])

    def test_export_refuses(self):
        record = self.train("--checkpoint-every", "10")
        out = self.folder / "out"
        refused = (
            (("--at", "11"), 3, "has no checkpoint at 11", "10, 16"),
            (("--subnet", "99"), 2, "has no subnet 99"),
            (("--choices", "0,1"), 2, "2 choices for 6 blocks"),
            (("--choices", "0,0,0,0,0,9"), 2, "candidate 9"),
            (("--choices", "0,x"), 2, "no index"),
            (("--choices", ""), 2, "no index"),
        )
        for options, code, *says in refused:
            self.refuse(["export", record, *options, "-o", out], code, *says)
        self.refuse(["export", record, "-o", record], 2, "the record itself")
        path = next(folder_of(record).iterdir())
        self.refuse(["export", record, "-o", path], 2, "a part of it")
        self.refuse(["export", self.folder / "none.db", "-o", out], 3, "does not exist")
        for path in folder_of(record).iterdir():
            path.write_bytes(b"x")
        self.refuse(["export", record, "-o", out], 3, "is damaged")
        shutil.rmtree(folder_of(record))
        self.refuse(["export", record, "-o", out], 3, "is missing")
        self.assertFalse(out.exists())


if __name__ == "__main__":
    unittest.main()
