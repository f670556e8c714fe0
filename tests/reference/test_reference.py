"""Tests of the reference itself: what it computes by other means than the pages' check values."""

import json
import os
import tempfile
import unittest

import numpy as np
import torch
import torch.nn.functional as F

import dataset
import digests
import samplers
import sequences
import spec as specs
from fields import SpecError
from model import LateRead, LayerState, TrainingPass, forward, initial_value
from philox import DROPOUT, SAMPLER, Stream, draw_samples, philox4x32_10, uniform_float
from training import Reference

HERE = os.path.dirname(os.path.abspath(__file__))


def load_spec(name):
    with open(os.path.join(HERE, "specs", name), encoding="utf-8") as file:
        return json.load(file)


class Philox(unittest.TestCase):
    def test_known_answers(self):
        """The vectors published with Random123 for philox4x32-10."""
        cases = [
            ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
            ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
            ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
             "d16cfe09 94fdcceb 5001e420 24126ea1"),
        ]
        for counter, key, expected in cases:
            words = " ".join(f"{int(w):08x}" for w in philox4x32_10(counter, key))
            self.assertEqual(words, expected)

    def test_vectorised_equals_plain_integers(self):
        """Every block of a stream equals the rounds done with Python integers."""
        stream = Stream(0x123456789ABCDEF0, DROPOUT, 5, 77, 2**32 - 1)
        words = stream.words(1001).tolist()
        for block in range(251):
            counter = [block, (DROPOUT << 24) + 5, 77, 2**32 - 1]
            expected = self.plain(counter, [0x9ABCDEF0, 0x12345678])
            self.assertEqual(words[4 * block : 4 * block + 4], expected[: len(words) - 4 * block])

    @staticmethod
    def plain(c, k):
        for _ in range(10):
            p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [p1 >> 32 ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, p0 >> 32 ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
            k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
        return c

    def test_below_rejects(self):
        """Words under the threshold are skipped; the words come from a fixed list."""
        n = 3 * 2**30  # threshold 2^30
        stream = Stream(0, SAMPLER)
        # p = w·n: w = 4 gives low 0 < threshold, w = 1 gives low n, result 0.
        stream._buffer = [1, 4]
        self.assertEqual(stream.below(n), 0)
        self.assertEqual(stream._buffer, [])

    def test_below_reads_on(self):
        """More draws than are buffered at once go on with the next words."""
        stream = Stream(9, SAMPLER, 0, 0, 4)
        drawn = [stream.below(2**31) for _ in range(3000)]
        self.assertEqual(drawn, [w >> 1 for w in Stream(9, SAMPLER, 0, 0, 4).words(3000).tolist()])

    def test_samples_differ(self):
        split = list(range(100, 150))
        samples = draw_samples(split, 50, Stream(2, SAMPLER))
        self.assertEqual(sorted(samples), split)
        self.assertEqual(samples[:7], draw_samples(split, 7, Stream(2, SAMPLER)))


class Data(unittest.TestCase):
    def test_split_check_values(self):
        """The check values of docs/spec.md."""
        self.assertEqual(dataset.split(10, 0.3, 0)[1], [0, 2, 7])
        self.assertEqual(dataset.split(12, 0.25, 0x123456789ABCDEF0)[1], [3, 10, 11])

    def test_cifar_records(self):
        with tempfile.TemporaryDirectory() as folder:
            for i, name in enumerate(["train.bin", "test.bin"]):
                with open(os.path.join(folder, name), "wb") as file:
                    for k in range(2 + i):
                        file.write(bytes([19, 10 * k + i]) + bytes([k] * 3072))
            data = dataset.load(folder, "cifar100")
        self.assertEqual(data.train.labels.tolist(), [0, 10])
        self.assertEqual(data.test.labels.tolist(), [1, 11, 21])
        self.assertEqual(data.test.pixels.shape, (3, 3, 32, 32))
        self.assertEqual(int(data.test.pixels[2].min()), 2)

    def test_texts_are_cut_into_samples(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "t"), "wb") as file:
                file.write(b"abcdefghijk")
            data = dataset.load(folder, "text", {"file": "t", "length": 5, "source": 3})
        self.assertEqual([bytes(piece) for piece in data.train.pieces], [b"abcde", b"fghij"])
        self.assertEqual([bytes(labels) for labels in data.train.labels], [b"ef", b"jk"])

    def test_normalise_per_channel(self):
        pixels = np.full((1, 2, 1, 1), 10, dtype=np.uint8)
        values = dataset.normalise(pixels, [1, 2], [3, 4]).reshape(-1)
        self.assertEqual(values.tolist(), [3.0, 2.0])
        self.assertEqual(values.dtype, np.float32)


class Digests(unittest.TestCase):
    """The worked values of docs/format.md."""

    def test_bytes(self):
        for content, expected in [(b"", "99aa06d3014798d86001c324468d497f"),
                                  (b"abc", "06b05ab6733a618578af5f94892f3950"),
                                  (bytes(65536), "fd5ee061c8433a0f33b202d302b65caa")]:
            self.assertEqual(digests.digest_bytes(content).hex(), expected)

    def test_tensors(self):
        matrix = torch.arange(1.0, 7.0).reshape(2, 3)
        cases = [(matrix, "00b9fc53f768a0c78b6e0c1057622687"),
                 (matrix.t().contiguous().t(), "00b9fc53f768a0c78b6e0c1057622687"),
                 (torch.tensor(0.5), "8c628ad6f47d57679201c1a0e3a9202a"),
                 (torch.zeros(0, dtype=torch.int64), "f6609a823f14cd9f882f8b8e7a36998b"),
                 ((np.arange(100000) % 251).astype(np.uint8), "6084219344dc82abfb9d9f99a3b959d5")]
        for value, expected in cases:
            self.assertEqual(digests.tensor(value), expected)
        self.assertEqual(digests.named([("weight", matrix), ("bias", torch.tensor(0.5))]),
                         "17b23826e04c246f505078ed3498088c")
        self.assertEqual(digests.named([]), digests.digest_bytes(b"").hex())

    def test_digits(self):
        """The digest of examples/digits that docs/spec.md gives."""
        data = dataset.load(os.path.join(HERE, "../../examples/digits"), "idx")
        named = [("pixels", data.train.pixels), ("labels", data.train.labels)]
        self.assertEqual(digests.named(named), "a8de18265146627c5f4f083534e5e992")


class Space(unittest.TestCase):
    def setUp(self):
        self.spec = specs.parse(load_spec("convolution.json"))
        self.positions = specs.build_positions(self.spec, (1, 8, 8), 10)

    def test_layers_are_counted_in_order(self):
        layers = [layer for layers in self.positions for layer in layers]
        self.assertEqual([layer.id for layer in layers], list(range(len(layers))))
        self.assertEqual([layers[0].name, layers[1].name, layers[-1].name],
                         ["stem", "block0.0", "head"])
        self.assertEqual(layers[10].name, "block1.0")

    def test_only_the_first_repeat_has_the_stride(self):
        self.assertEqual([layers[0].output for layers in self.positions],
                         [(8, 8, 8)] * 4 + [(12, 4, 4)] * 3 + [(12, 2, 2), (10,)])

    def test_errors_name_the_place(self):
        def change(path, value):
            document = load_spec("convolution.json")
            place = document
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value
            with self.assertRaises(SpecError) as caught:
                specs.build_positions(specs.parse(document), (1, 8, 8), 10)
            return str(caught.exception)

        self.assertIn("spec.training", change(["training", "microbatches"], 30))
        self.assertIn("unknown field 'extra'", change(["data", "extra"], 1))
        self.assertIn("spec.supernet.blocks[0].candidates[0].kernel",
                      change(["supernet", "blocks", 0, "candidates", 0, "kernel"], 2))
        self.assertIn("block0.1", change(["supernet", "blocks", 0, "candidates", 1, "groups"], 3))
        self.assertIn("block0.2", change(["supernet", "blocks", 0, "candidates", 2, "dilation"], 4))
        self.assertIn("block3.0", change(["supernet", "blocks", 2, "residual"], True))
        self.assertIn("blocks[0].candidates[8]: has the unknown field 'kernel'",
                      change(["supernet", "blocks", 0, "candidates", 8, "kernel"], 3))


class Sequences(unittest.TestCase):
    """What each place may depend on, found by changing one input."""

    def changed_places(self, op, part, place, source=4):
        """The places of the output that follow a change of one place of the input."""
        document = load_spec("sequences.json")
        document["data"]["source"] = source
        document["supernet"]["blocks"] = [{"part": part, "candidates": [{"op": op}]}]
        positions = specs.build_positions(specs.parse(document), (10, 1), 256)
        state = LayerState(positions[1][0], 0)
        x = torch.linspace(-1, 1, 10 * 16).sin().reshape(1, 10, 16)
        y = forward(state, x, TrainingPass(0, 0, 0))
        x[0, place, 5] += 1
        z = forward(state, x, TrainingPass(0, 0, 0))
        return [t for t in range(10) if not torch.equal(y[0, t], z[0, t])]

    def test_places_see_what_they_may(self):
        self.assertEqual(self.changed_places("glu", "decoder", 6), [6])
        self.assertEqual(self.changed_places("conv1d", "decoder", 6), [6, 7, 8])
        self.assertEqual(self.changed_places("conv1d", "encoder", 1), [0, 1, 2])
        self.assertEqual(self.changed_places("separable_conv1d", "encoder", 3), [2, 3])
        self.assertEqual(self.changed_places("lightweight_conv", "decoder", 8), [8, 9])
        self.assertEqual(self.changed_places("attention", "decoder", 6), [6, 7, 8, 9])
        self.assertEqual(self.changed_places("attention", "encoder", 2), [0, 1, 2, 3])
        self.assertEqual(self.changed_places("cross_attention", "decoder", 6), [6])
        self.assertEqual(self.changed_places("cross_attention", "decoder", 2), [2, 4, 5, 6, 7, 8, 9])

    def test_attention_equals_pytorchs_own(self):
        query, key, value = torch.rand(3, 2, 7, 8, generator=torch.Generator().manual_seed(1))
        split = [x.reshape(2, 7, 4, 2).transpose(1, 2) for x in (query, key, value)]
        for causal in False, True:
            expected = F.scaled_dot_product_attention(*split, is_causal=causal)
            computed = sequences._attend(query, key, value, 4, causal)
            torch.testing.assert_close(computed, expected.transpose(1, 2).reshape(2, 7, 8))


class Streams(unittest.TestCase):
    def test_check_values(self):
        """The check values of docs/spec.md."""
        self.assertEqual(samplers.fair_block(1, 0, 4, 2, 16),
                         [3, 0, 2, 1, 3, 2, 1, 0, 3, 0, 2, 1, 0, 1, 3, 2])
        self.assertEqual(samplers.fair_block(1, 0, 5, 2, 15),
                         [4, 0, 3, 2, 1, 4, 3, 1, 2, 0, 4, 2, 0, 3, 1])

    def test_a_fair_block_keeps_its_distance(self):
        for candidates, distance in (4, 4), (6, 3), (9, 0):
            drawn = samplers.fair_block(7, 2, candidates, distance, 200)
            apart = [j - i for i in range(200) for j in range(i + 1, 200)
                     if drawn[i] == drawn[j]]
            self.assertEqual(min(apart), max(distance, 1))

    def test_a_reordered_stream_is_a_permutation(self):
        draws = [[n] for n in range(50)]
        versioned = [[True] * 50]
        self.assertEqual(samplers.reorder(draws, versioned, 8, 4), draws)  # nothing is shared
        twice = samplers.reorder([[n // 2] for n in range(50)], versioned, 8, 4)
        self.assertEqual(sorted(twice), sorted([n // 2] for n in range(50)))
        self.assertTrue(all(a != b for a, b in zip(twice[:40], twice[1:])))

    def test_distances_that_no_order_keeps_are_refused(self):
        document = load_spec("fair.json")
        document["sampler"]["reuse_distance"] = 2
        specs.parse(document)
        document["sampler"]["reuse_distance"] = 3
        with self.assertRaisesRegex(SpecError, r"blocks\[2\]"):
            specs.parse(document)


class Training(unittest.TestCase):
    def test_dropout_keeps_its_share(self):
        """The kept share is 1 - p, kept values are scaled by 1/(1 - p)."""
        document = load_spec("linear.json")
        positions = specs.build_positions(specs.parse(document), (1, 8, 8), 10)
        state = LayerState(positions[1][0], 0)
        y = TrainingPass(0, 3, 1).dropout(state, torch.ones(100, 100), 0.25)
        self.assertEqual(sorted(set(y.reshape(-1).tolist())), [0.0, float(np.float32(1 / 0.75))])
        self.assertAlmostEqual(float((y > 0).float().mean()), 0.75, delta=0.02)

    def test_initial_weights_fill_their_bound(self):
        value = initial_value("conv.weight", (50, 6, 5, 5), Stream(1, 1, 0, 0))
        bound = (6 / 150) ** 0.5
        self.assertLessEqual(float(value.abs().max()), bound * (1 + 1e-6))
        self.assertGreater(float(value.abs().max()), 0.99 * bound)
        self.assertAlmostEqual(float(value.mean()), 0, delta=0.01)

    def test_uniform_float_is_exact(self):
        words = np.array([0, 0xFF, 0x100, 0xFFFFFFFF], dtype=np.uint64)
        self.assertEqual(uniform_float(words).tolist(), [0, 0, 2.0**-24, 1 - 2.0**-24])

    def test_learning_rates(self):
        def rates(lr):
            training = {"subnets": 6, "lr": {"warmup": 2, "base": 0.8, **lr}}
            return [specs.learning_rate(training, seq) for seq in range(6)]

        self.assertEqual(rates({"kind": "constant"}), [0.4, 0.8, 0.8, 0.8, 0.8, 0.8])
        self.assertEqual(rates({"kind": "step", "every": 2, "gamma": 0.5}),
                         [0.4, 0.8, 0.8, 0.8, 0.4, 0.4])
        cosine = rates({"kind": "cosine", "final": 0.2})
        self.assertEqual(cosine[2], 0.8)
        self.assertAlmostEqual(cosine[4], 0.5, places=15)

    def test_late_reads(self):
        """Subnet j reads what the updates below j - delay left, and updates the newest version."""
        document = load_spec("reorder.json")
        document["training"]["subnets"] = 12
        reference = Reference(specs.parse(document), os.path.join(HERE, "specs"), full=True)
        for seq in range(12):
            before = [value.clone() for value in reference.states[-1].parameters.values()]
            head = reference.train(seq).accesses[-1]
            self.assertEqual((head.read_seq, head.base_seq), (max(seq - 8, -1), seq - 1))
            late = reference._read(reference.states[-1], seq)
            parameters = list(late.parameters.values())
            self.assertEqual(torch.equal(parameters[0], before[0]), seq == 0)

    def test_late_statistics_are_those_of_the_micro_batches(self):
        """Without a difference in time, a delay changes running statistics by rounding alone."""
        positions = specs.build_positions(specs.parse(load_spec("fair.json")), (1, 8, 8), 10)
        state, other = (LayerState(positions[0][0], 0) for _ in range(2))
        late = LateRead(state.layer, state.parameters)
        x = torch.linspace(-1, 1, 6 * 64).sin().reshape(6, 1, 8, 8)
        for part in range(3):
            context = TrainingPass(0, 0, part)
            rows = x[2 * part : 2 * part + 2] * (part + 1)
            self.assertTrue(torch.equal(forward(late, rows, context),
                                        forward(other, rows, context)))
        state.add_statistics(late.measured)
        for name, value in state.buffers.items():
            torch.testing.assert_close(value, other.buffers[name])

    def test_frozen_layers_write_no_buffers(self):
        positions = specs.build_positions(specs.parse(load_spec("convolution.json")), (1, 8, 8), 10)
        layer = positions[6][0]
        self.assertFalse(layer.trainable)
        state = LayerState(layer, 0)
        before = {name: value.clone() for name, value in state.named()}
        x = torch.linspace(-1, 1, 5 * 12 * 4 * 4).reshape(5, *layer.input)
        y = forward(state, x, TrainingPass(0, 0, 0))
        self.assertTrue(all(torch.equal(before[name], value) for name, value in state.named()))
        z = F.conv2d(x, state.parameters["conv.weight"], padding=1)
        variance, mean = torch.var_mean(z, (0, 2, 3), unbiased=False, keepdim=True)
        torch.testing.assert_close(y, ((z - mean) / (variance + 1e-5).sqrt()).clamp(min=0))


if __name__ == "__main__":
    unittest.main()
