#!/usr/bin/env python3
"""Two records are aligned whatever their layouts; differences are told from what they taint."""

import pathlib
import shutil
import unittest

from harness import SUBNETS, EndToEndTest, query, recorded, run

SUBNETS_LONG = 300
FLIPPED = 150
# Frozen ends, and many candidates of few blocks, so that not everything depends on everything.
LONG = {
    "training.subnets": SUBNETS_LONG,
    "evaluation": None,
    "supernet.stem.trainable": False,
    "supernet.head.trainable": False,
    "supernet.blocks.0.repeat": 2,
    "supernet.blocks.0.candidates": [{"op": op, "kernel": kernel} for op in
                                     ("conv", "separable_conv") for kernel in (1, 3, 5, 7)] * 2,
}


def reached_from(record, seq, layer):
    """Subnets whose weights depend on a version of a layer, from the recorded accesses alone."""
    reached, layers = set(), {layer}
    uses = {}
    for user, used in query(record, "SELECT seq, layer FROM accesses ORDER BY seq"):
        uses.setdefault(user, set()).add(used)
    for later in sorted(uses):
        if later > seq and uses[later] & layers:
            reached.add(later)
            layers |= uses[later]
    return reached


class Diff(EndToEndTest):
    def diff(self, a, b, *options, code=0, says=()):
        return self.expect(run("diff", a, b, *options), code, out=says)

    def test_layouts_make_no_difference(self):
        a, b = recorded("--stages", "1").path, recorded("--stages", "3").path
        self.diff(a, b, says=("stages: A 1, B 3", f"{SUBNETS} subnets"))

    def test_one_flipped_bit_taints_exactly_what_depends_on_it(self):
        spec = self.write_spec(LONG)
        clean = self.train("--stages", "1", spec=spec, record="clean.db")
        flipped = self.train("--stages", "3", "--inject", f"bit-flip@{FLIPPED}", spec=spec,
                             record="flipped.db")
        place = query(flipped, "SELECT value FROM environment WHERE key = 'info.injected'")[0][0]
        _, name, phase = place.split()
        layer = query(flipped, "SELECT layer FROM layers WHERE name = ?", name)[0][0]
        verdict = self.diff(clean, flipped, "--format", "json", code=1).json()
        first = verdict["first_difference"]
        self.assertEqual((first["subnet"], first["layer_name"], first["phase"], first["class"]),
                         (FLIPPED, name, phase, "computation"))
        comparison = verdict["comparison"]
        self.assertEqual(comparison["origin_count"], 1)
        tainted = {seq for low, high in comparison["tainted"] for seq in range(low, high + 1)}
        # What differs, by the sealed rows alone. Causality bounds it; where a rectifier cuts a
        # gradient off, a layer of a tainted subnet can come out equal, and less is tainted.
        contents = [dict(query(record, "SELECT seq, content_leaf FROM subnets"))
                    for record in (clean, flipped)]
        differing = {seq for seq in contents[0] if contents[0][seq] != contents[1][seq]}
        reached = reached_from(clean, FLIPPED, layer)
        self.assertEqual(tainted, differing - {FLIPPED})
        self.assertLessEqual(tainted, reached)
        self.assertGreater(len(tainted), len(reached) / 2)
        self.assertLess(len(reached), SUBNETS_LONG - FLIPPED - 1)

    def test_compares_the_common_prefix_of_two_lengths(self):
        long = recorded("--stages", "3").path
        short = self.train("--subnets", "6", record="short.db")
        self.diff(long, short, says="the first 6 subnets")

    def test_says_first_that_environments_and_specs_differ(self):
        a = recorded("--stages", "3").path
        b = self.train("--threads-per-stage", "2", spec=self.write_spec({"training.lr.base": 0.06}),
                       record="other.db")
        out = self.diff(a, b, code=1, says=("threads_per_stage: A 1, B 2",
                                            "training.lr.base: A 0.05, B 0.06")).out
        self.assertLess(out.index("threads_per_stage"), out.index("First difference"))

    def test_another_seed_is_another_spec(self):
        other = self.train(spec=self.write_spec({"seed": 8}), record="other.db")
        report = self.diff(recorded("--stages", "3").path, other, "--format", "json", code=1).json()
        difference = report["first_difference"]
        self.assertEqual((difference["class"], difference["what"]), ("spec", "initial weights"))
        self.assertIn("the specs differ (seed)", difference["cause"])

    def test_explains(self):
        a = recorded("--stages", "3").path
        b = self.train("--inject", "lost-update@7", record="lost.db")
        explanation = self.diff(a, b, "--explain", "--format", "json", code=1).json()["explanation"]
        self.assertTrue(explanation["left_reproduced"] and explanation["right_reproduced"])
        self.assertEqual(explanation["first_tensor"]["phase"], "update")

    def test_refuses_what_cannot_be_compared(self):
        a = recorded("--stages", "3").path
        link = self.folder / "link.db"
        link.symlink_to(a)
        empty = self.folder / "empty.db"
        empty.touch()
        text = self.folder / "text.db"
        text.write_text("no record", encoding="utf-8")
        self.refuse(["diff", a, a], 2, "the same file")
        self.refuse(["diff", a, link], 2, "the same file")
        for other in (empty, text, self.folder / "none.db"):
            self.refuse(["diff", a, other], 3, other.name)
        damaged = pathlib.Path(shutil.copyfile(a, self.folder / "damaged.db"))
        with open(damaged, "r+b") as file:
            file.truncate(damaged.stat().st_size // 2)
        self.assertEqual(run("diff", a, damaged).code, 3)
        wider = self.train(spec=self.write_spec({"supernet.stem.channels": 6}), record="wide.db")
        self.diff(a, wider, code=1, says="supernet.stem.channels: A 4, B 6")


class Against(EndToEndTest):
    def test_a_recorded_reference(self):
        reference = recorded("--stages", "1").path
        self.verify(recorded("--stages", "3").path, "--against", reference,
                    says=(f"{SUBNETS} of {SUBNETS} subnets equal to",
                          f"; equal to {reference}"))
        other = self.train("--inject", "lost-update@7", record="lost.db")
        self.verify(other, "--against", reference, code=1,
                    says=f"not equal to {reference}, first at subnet 7")
        self.refuse(["verify", other, "--against", other], 2, "the record itself")
        self.refuse(["verify", other, "--against", self.folder / "none.db"], 3, "none.db")


if __name__ == "__main__":
    unittest.main()
