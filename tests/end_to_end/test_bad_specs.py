#!/usr/bin/env python3
"""A spec that is wrong is refused with its place, its field and what to do."""

import unittest

from harness import EndToEndTest, run

CANDIDATE = "supernet.blocks.0.candidates.0"
# What is changed in a sound spec, and what the message must hold. `check` finds these.
WRONG = {
    "unknown field": ({"training.optimizer": None, "training.optimiser": {"kind": "sgd"}},
                      "training.optimiser: unknown field", 'did you mean "optimizer"?'),
    "unknown operator": ({f"{CANDIDATE}.op": "cnov"},
                         "supernet.blocks[0].candidates[0].op", "cnov", 'did you mean "conv"?'),
    "missing field": ({"training.lr": None}, "training.lr"),
    "text for a number": ({"training.subnets": "many"},
                          "training.subnets: expected an integer, found a string"),
    "fraction for a count": ({"training.batch": 1.5}, "training.batch: expected an integer"),
    "object for a list": ({"supernet.blocks": {}}, "supernet.blocks: expected", "an object"),
    "no subnets": ({"training.subnets": 0}, "training.subnets: must be from 1", "found 0"),
    "negative batch": ({"training.batch": -3}, "training.batch: must be from 1", "found -3"),
    "no micro-batches": ({"training.microbatches": 0}, "training.microbatches: must be from 1"),
    "no channels": ({"supernet.stem.channels": 0}, "supernet.stem.channels"),
    "negative seed": ({"seed": -1}, "seed: must be at least 0, found -1"),
    "negative learning rate": ({"training.lr.base": -0.1}, "training.lr.base"),
    "even kernel": ({f"{CANDIDATE}.kernel": 4}, "kernel: must be odd, found 4"),
    "no candidates": ({"supernet.blocks.0.candidates": []}, "supernet.blocks[0].candidates"),
    "empty micro-batch": ({"training.batch": 5, "training.microbatches": 4},
                          "the last of 4 micro-batches of 5 rows would be empty"),
    "reuse farther apart than a block has candidates":
        ({"sampler": {"kind": "fair", "reuse_distance": 5}}, "sampler.reuse_distance",
         "supernet.blocks[0] has 3 candidates"),
    "a reordered sampler reordered":
        ({"sampler": {"kind": "reorder", "of": {"kind": "reorder", "of": {"kind": "uniform"}}}},
         "sampler.of: a reordered sampler cannot be reordered"),
    "negative delay": ({"supernet.stem.delay": -1},
                       "supernet.stem.delay: must be from 0 to 65536, found -1"),
    "unknown level": ({"record": {"level": "ful"}}, "record.level", 'did you mean "full"?'),
}
# These depend on the data, so that only a run can tell.
WRONG_FOR_THE_DATA = {
    "kernel larger than the image": ({"supernet.stem.kernel": 9}, "supernet.stem",
                                     "spans 9 pixels", "1×8×8"),
    "shapes that cannot be added": ({"supernet.blocks.0.stride": 2},
                                    "supernet.blocks[0].candidates[0]", "4×4×4 cannot be added",
                                    'leave out "residual"'),
    "batch larger than the data": ({"training.batch": 2000}, "training.batch: 2000", "1438"),
}


class BadSpecs(EndToEndTest):
    def test_wrong_values(self):
        for name, (changes, *parts) in WRONG.items():
            with self.subTest(name):
                spec = self.write_spec(changes)
                result = self.refuse(["check", spec], 3, *parts)
                self.assertRegex(result.err, r"spec\.json:\d+:\d+: ")

    def test_train_refuses_what_check_refuses(self):
        """With the same words, and no record is left."""
        for name in ("unknown field", "empty micro-batch"):
            spec = self.write_spec(WRONG[name][0])
            result = self.refuse(["train", spec, "-o", self.folder / "run.db"], 3, *WRONG[name][1:])
            self.assertEqual(result.err, run("check", spec).err)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["spec.json"])

    def test_wrong_for_the_data(self):
        for name, (changes, *parts) in WRONG_FOR_THE_DATA.items():
            with self.subTest(name):
                self.refuse(["train", self.write_spec(changes), "-o", self.folder / "run.db"], 3,
                            *parts)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["spec.json"])

    def test_malformed_json(self):
        """Line and column of the token that cannot be there."""
        for text, place in (('{\n "name": "x",\n "seed" 1\n}\n', ":3:9: "), ("", ":1:1: "),
                            ('{"name": "x",}', ":1:14: "), ('{"a": [1, 2}', ":1:12: ")):
            with self.subTest(text):
                spec = self.folder / "malformed.json"
                spec.write_text(text, encoding="utf-8")
                self.refuse(["check", spec], 3, f"{spec}{place}")

    def test_field_given_twice(self):
        spec = self.folder / "twice.json"
        spec.write_text('{"seed": 1,\n "seed": 2}', encoding="utf-8")
        self.refuse(["check", spec], 3, ':2:2: "seed" is given twice, first in line 1')

    def test_no_spec(self):
        for path in (self.folder / "none.json", self.folder):
            self.refuse(["check", path], 3, f"{path}", "cannot be read")

    def test_bytes_that_are_no_text(self):
        spec = self.folder / "binary.json"
        spec.write_bytes(bytes(range(256)))
        self.refuse(["check", spec], 3, f"{spec}:1:1: ")

    def test_list_that_does_not_fit(self):
        """Too short, a candidate that does not exist, another number of blocks, no file."""
        spec = self.write_spec({"sampler": {"kind": "list", "file": "choices.jsonl"}})
        for text, *parts in (("[0, 0, 0, 0, 0, 0]\n", "choices.jsonl", "16"),
                             ("[0, 0, 0, 0, 0, 3]\n" * 16, "choices.jsonl", "3"),
                             ("[0, 0]\n" * 16, "choices.jsonl", "6"), (None, "choices.jsonl")):
            with self.subTest(text):
                listed = self.folder / "choices.jsonl"
                listed.unlink(missing_ok=True)
                if text is not None:
                    listed.write_text(text)
                self.refuse(["train", spec, "-o", self.folder / "run.db"], 3, *parts)


if __name__ == "__main__":
    unittest.main()
