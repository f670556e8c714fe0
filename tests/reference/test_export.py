"""Python's safetensors reads what `verbatim export` and checkpoints hold, bit for bit.

VERBATIM_BINARY names the program; ctest sets that.
"""

import os
import pathlib
import sqlite3
import subprocess
import tempfile
import unittest

import digests
import safetensors
import safetensors.numpy

SPEC = pathlib.Path(__file__).resolve().parent / "specs" / "convolution.json"


def verbatim(*arguments):
    command = [os.environ["VERBATIM_BINARY"], *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)


class ExportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="verbatim-test-")
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.record = cls.folder / "run.db"
        verbatim("train", SPEC, "-o", cls.record, "--stages", 2, "--checkpoint-every", 3,
                 "--keep-checkpoints", 100)
        cls.database = sqlite3.connect(cls.record)
        cls.addClassCleanup(cls.database.close)

    def query(self, sql, *parameters):
        return self.database.execute(sql, parameters).fetchall()

    def export(self, *options):
        path = self.folder / "model.safetensors"
        verbatim("export", self.record, "-o", path, *options)
        with safetensors.safe_open(path, "numpy") as file:
            metadata = file.metadata()
        return safetensors.numpy.load_file(path), metadata

    def recorded(self, cut):
        """By layer's name: its newest version below the cut, and the digests that were recorded."""
        versions = {name: (-1, initial, None) for name, initial in
                    self.query("SELECT name, lower(hex(initial_digest)) FROM layers")}
        versions.update((name, (seq, weights, optimizer)) for name, seq, weights, optimizer in
                        self.query("SELECT name, seq, weights, optimizer_state FROM lineage "
                                   "WHERE seq < ? ORDER BY seq", cut))
        return versions

    def layer_metadata(self, cut, name):
        """What the layer's checkpoint file says of it."""
        (file,) = self.query("SELECT file FROM checkpoint_layers JOIN layers USING (layer) "
                             "WHERE cut = ? AND name = ?", cut, name)[0]
        path = pathlib.Path(f"{self.record}.checkpoints") / f"{file}.safetensors"
        with safetensors.safe_open(path, "numpy") as opened:
            return opened.metadata()

    def test_every_checkpoint_holds_what_was_recorded(self):
        cuts = [cut for (cut,) in self.query("SELECT cut FROM checkpoints ORDER BY cut")]
        self.assertGreater(len(cuts), 2)
        for cut in cuts:
            tensors, metadata = self.export("--at", cut, "--optimizer")
            recorded = self.recorded(cut)
            self.assertEqual(metadata["cut"], str(cut))
            self.assertEqual(metadata["versions"], ",".join(
                f"{name}={recorded[name][0]}"
                for (name,) in self.query("SELECT name FROM layers ORDER BY layer")))
            for name, (version, weights, optimizer) in recorded.items():
                layer = self.layer_metadata(cut, name)
                split = {key: [item for item in layer.get(key, "").split(",") if item]
                         for key in ("parameters", "buffers", "optimizer")}
                names = split["parameters"] + split["buffers"]
                found = digests.named([(item, tensors.pop(f"{name}.{item}")) for item in names])
                self.assertEqual(found, weights, f"{name} at {cut}, version {version}")
                states = [f"{parameter}.{state}" for parameter in split["parameters"]
                          for state in split["optimizer"]]
                if "optimizer" in layer:
                    states.append("step")
                found = digests.named([(item, tensors.pop(f"{name}.{item}")) for item in states])
                if optimizer:
                    self.assertEqual(found, optimizer, f"{name} at {cut}, version {version}")
            self.assertEqual(tensors, {})

    def test_a_subnet_has_its_layers_alone(self):
        tensors, metadata = self.export("--subnet", 2)
        (choices,) = self.query("SELECT choices FROM subnets WHERE seq = 2")[0]
        self.assertEqual(f"[{metadata['choices']}]", choices)
        names = [name for (name,) in self.query("SELECT name FROM layers")]
        used = {name for name in names if any(key.startswith(f"{name}.") for key in tensors)}
        accessed = {name for (name,) in self.query("SELECT name FROM lineage WHERE seq = 2")}
        self.assertLessEqual(accessed, used)
        whole, _ = self.export()
        for key, value in tensors.items():
            self.assertEqual(value.tobytes(), whole[key].tobytes())
        self.assertLess(len(tensors), len(whole))


if __name__ == "__main__":
    unittest.main()
