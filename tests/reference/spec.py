"""Reads a spec (docs/spec.md) strictly: unknown fields, wrong types and bad values are errors.

Imports no torch, so that the numeric profile can be set before torch is loaded.
"""

import json
import math
import os
from dataclasses import dataclass, field

from fields import (REQUIRED, boolean, integer, need, not_negative, odd, one_of, pair_of_betas,
                    per_channel, take, take_kind, text, unit)

KERNEL = {"kernel": (odd, 3)}
DILATION = {"dilation": (integer(1, 2**16), 1)}
DROPOUT = {"dropout": (unit, 0.0)}
HEADS = {"heads": (integer(1), 4)}


def activation(default):
    return {"activation": (one_of("none", "relu", "swish", "leaky_relu"), default)}


OPERATORS = {
    "conv": {**KERNEL, **DILATION, "groups": (integer(1), 1)},
    "separable_conv": {**KERNEL, **DILATION},
    "mbconv": {**KERNEL, "expansion": (integer(1), 6)},
    "avg_pool": KERNEL,
    "max_pool": KERNEL,
    "skip": {},
    "linear": {**activation("relu"), **DROPOUT},
    "ffn": {"hidden": (integer(1), REQUIRED), **activation("relu"), **DROPOUT},
    "classifier": {**DROPOUT, "tied": (boolean, False)},
    "embedding": DROPOUT,
    "conv1d": {**KERNEL, **activation("relu"), **DROPOUT},
    "separable_conv1d": {**KERNEL, **activation("relu"), **DROPOUT},
    "lightweight_conv": {**KERNEL, **HEADS, **activation("none"), **DROPOUT},
    "attention": {**HEADS, **activation("none"), **DROPOUT},
    "cross_attention": {**HEADS, **activation("none"), **DROPOUT},
    "glu": {**activation("none"), **DROPOUT},
}
BLOCK = {
    "repeat": (integer(1), 1),
    "channels": (integer(1), None),
    "features": (integer(1), None),
    "stride": (integer(1, 2), 1),
    "residual": (boolean, False),
    "trainable": (boolean, True),
    "delay": (integer(0, 2**16), 0),
    "part": (one_of("encoder", "decoder"), "decoder"),
}
SAMPLERS = {
    "uniform": {},
    "list": {"file": (text, REQUIRED)},
    "fair": {"reuse_distance": (integer(0, 2**16), None)},
}
ADAM = {
    "betas": (pair_of_betas, [0.9, 0.999]),
    "epsilon": (not_negative, 1e-8),
    "weight_decay": (not_negative, 0.0),
}
OPTIMIZERS = {
    "sgd": {
        "momentum": (unit, 0.0),
        "nesterov": (boolean, False),
        "weight_decay": (not_negative, 0.0),
    },
    "adam": ADAM,
    "adamw": ADAM,
}
RATE = {"base": (not_negative, REQUIRED), "warmup": (integer(0), 0)}
LEARNING_RATES = {
    "constant": RATE,
    "step": {**RATE, "every": (integer(1), REQUIRED), "gamma": (not_negative, 0.1)},
    "cosine": {**RATE, "final": (not_negative, 0.0)},
}


def operator(value, where):
    return take_kind(value, where, OPERATORS, key="op")


def fixed_layer(names, accepted):
    """The stem or the head: an operator with the shape fields `names` beside its own."""
    fields = {name: BLOCK[name] for name in names}
    kinds = {op: {**own, **fields} for op, own in OPERATORS.items() if op in accepted}

    def check(value, where):
        value = take_kind(value, where, kinds, key="op")
        block = {name: value.pop(name, BLOCK[name][1]) for name in BLOCK}
        return {**block, "candidates": [value]}

    return check


def candidates(value, where):
    need(isinstance(value, list) and value, where, "must be a list of operators")
    for i, candidate in enumerate(value):
        for name, place in ("classifier", "head"), ("embedding", "stem"):
            need(not isinstance(candidate, dict) or candidate.get("op") != name,
                 f"{where}[{i}].op", f"is {name!r}, which is for the {place} only")
    return [operator(v, f"{where}[{i}]") for i, v in enumerate(value)]


def block(value, where):
    return take(value, where, {**BLOCK, "candidates": (candidates, REQUIRED)})


def blocks(value, where):
    need(isinstance(value, list) and value, where, "must be a list of blocks")
    return [block(v, f"{where}[{i}]") for i, v in enumerate(value)]


STEM_FIELDS = "channels", "features", "stride", "trainable", "delay"
HEAD_FIELDS = "trainable", "delay"


def section(fields):
    return lambda value, where: take(value, where, fields)


def kind(kinds, key="kind"):
    return lambda value, where: take_kind(value, where, kinds, key)


SUPERNET = {
    "stem": (fixed_layer(STEM_FIELDS, set(OPERATORS) - {"classifier"}), REQUIRED),
    "blocks": (blocks, REQUIRED),
    "head": (fixed_layer(HEAD_FIELDS, {"classifier"}), REQUIRED),
}
REORDER = {
    "of": (kind(SAMPLERS), REQUIRED),
    "window": (integer(1, 2**16), 128),
    "neighbours": (integer(1, 2**10), 16),
}
FILES = {"folder": (text, REQUIRED), "holdout": (unit, 0.2)}
IMAGES = {
    **FILES,
    "mean": (per_channel(lambda v: True, "(finite)"), 0.0),
    "std": (per_channel(lambda v: v > 0, "above 0"), 255.0),
}
TEXT = {
    **FILES,
    "file": (text, REQUIRED),
    "length": (integer(1, 2**16), REQUIRED),
    "source": (integer(0), 0),
}
DATA = {"idx": IMAGES, "cifar10": IMAGES, "cifar100": IMAGES, "text": TEXT}
TRAINING = {
    "subnets": (integer(1, 2**32 - 1), REQUIRED),
    "batch": (integer(1), REQUIRED),
    "microbatches": (integer(1, 2**24 - 1), 1),
    "optimizer": (kind(OPTIMIZERS), REQUIRED),
    "lr": (kind(LEARNING_RATES), REQUIRED),
    "loss": (one_of("cross_entropy"), "cross_entropy"),
    "label_smoothing": (unit, 0.0),
}
EVALUATION = {"subnets": (integer(0, 2**32 - 1), 0), "calibration_batches": (integer(0), 4)}
SPEC = {
    "name": (text, REQUIRED),
    "seed": (integer(0, 2**64 - 1), 0),
    "numerics": (one_of("native", "x86-64-v3", "x86-64"), "native"),
    "data": (kind(DATA, "format"), REQUIRED),
    "supernet": (section(SUPERNET), REQUIRED),
    "sampler": (kind({**SAMPLERS, "reorder": REORDER}), {"kind": "uniform"}),
    "training": (section(TRAINING), REQUIRED),
    "evaluation": (section(EVALUATION), {"subnets": 0, "calibration_batches": 4}),
    "record": (section({"level": (one_of("losses", "weights", "full"), "weights")}),
               {"level": "weights"}),
}


def parse(document, subnets=None):
    """The spec as nested dicts with every default filled in; `subnets` replaces its own."""
    spec = take(document, "spec", SPEC)
    data = spec["data"]
    need(data.get("source", 0) < data.get("length", 1), "spec.data.source",
         "must be below the length")
    training = spec["training"]
    optimizer = training["optimizer"]
    need(not optimizer.get("nesterov") or optimizer["momentum"] > 0,
         "spec.training.optimizer.nesterov", "needs a momentum above 0")
    sampler = spec["sampler"].get("of", spec["sampler"])
    for i, each in enumerate(spec["supernet"]["blocks"]):
        need((sampler.get("reuse_distance") or 0) <= len(each["candidates"]),
             "spec.sampler.reuse_distance", f"is more than the candidates of blocks[{i}]")
    if subnets is not None:
        training["subnets"] = integer(1, 2**32 - 1)(subnets, "--subnets")
    micro_batch_sizes(training)
    return spec


def micro_batch_sizes(training):
    """Rows of each micro-batch, in order."""
    rows, parts = training["batch"], training["microbatches"]
    size = -(-rows // parts)
    sizes = [min(size, rows - first) for first in range(0, size * parts, size)]
    need(min(sizes) > 0, "spec.training.microbatches",
         f"{parts} parts of {size} of {rows} rows leave the last one empty")
    return sizes


def set_numerics(profile):
    """Must run before torch is imported (docs/spec.md section 9)."""
    settings = {
        "native": {},
        "x86-64-v3": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2",
                      "MKL_CBWR": "COMPATIBLE"},
        "x86-64": {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41",
                   "MKL_CBWR": "COMPATIBLE"},
    }
    os.environ.update(settings[profile])


@dataclass
class Layer:
    """One candidate of one position. Shapes are without the batch dimension: (channels, height,
    width) of an image, (places, features) of a sequence, (features,) of a vector."""

    id: int
    name: str
    position: int
    op: dict
    stride: int
    residual: bool
    trainable: bool
    delay: int
    input: tuple
    output: tuple
    part: str  # of a sequence: the places that it changes
    source: int  # places of the encoder
    parameters: list = field(default_factory=list)  # (name, shape)
    buffers: list = field(default_factory=list)  # (name, shape)

    @property
    def versioned(self):
        return self.trainable and bool(self.parameters)


def _add_norm(layer, name, channels):
    layer.parameters += [(f"{name}.weight", (channels,)), (f"{name}.bias", (channels,))]
    layer.buffers += [(f"{name}.running_mean", (channels,)), (f"{name}.running_var", (channels,))]


def _add_tensors(layer, where):
    """Fills in parameters and buffers, in the order of docs/spec.md section 3."""
    op, c, d = layer.op, layer.input[0], layer.output[0]
    k = op.get("kernel")
    if len(layer.input) == 2:
        layer.parameters += _sequence_tensors(op, layer.input, layer.output[1])
    elif op["op"] == "conv":
        groups = op["groups"]
        need(c % groups == 0 and d % groups == 0, where,
             f"groups {groups} must divide the {c} input and {d} output channels")
        layer.parameters.append(("conv.weight", (d, c // groups, k, k)))
        _add_norm(layer, "bn", d)
    elif op["op"] == "separable_conv":
        layer.parameters += [("depthwise.weight", (c, 1, k, k)), ("pointwise.weight", (d, c, 1, 1))]
        _add_norm(layer, "bn", d)
    elif op["op"] == "mbconv":
        hidden = c * op["expansion"]
        if op["expansion"] > 1:
            layer.parameters.append(("expand.weight", (hidden, c, 1, 1)))
            _add_norm(layer, "bn1", hidden)
        layer.parameters.append(("depthwise.weight", (hidden, 1, k, k)))
        _add_norm(layer, "bn2", hidden)
        layer.parameters.append(("project.weight", (d, hidden, 1, 1)))
        _add_norm(layer, "bn3", d)
    elif op["op"] == "linear":
        c = math.prod(layer.input)
        layer.parameters += [("linear.weight", (d, c)), ("linear.bias", (d,))]
    elif op["op"] == "ffn":
        h = op["hidden"]
        layer.parameters += [("in.weight", (h, c)), ("in.bias", (h,)),
                             ("out.weight", (d, h)), ("out.bias", (d,))]
    elif op["op"] == "classifier":
        layer.parameters += [("linear.weight", (d, c)), ("linear.bias", (d,))]


def _matrix(name, d, c):
    return [(f"{name}.weight", (d, c)), (f"{name}.bias", (d,))]


def _sequence_tensors(op, shape, d):
    """Of an operator on a sequence of this shape that gives `d` features."""
    name, k, (length, c) = op["op"], op.get("kernel"), shape
    if name == "embedding":
        return [("embedding.weight", (256, d)), ("position.weight", (length, d))]
    if name == "skip":
        return []
    own = {
        "conv1d": [("conv.weight", (d, c, k)), ("conv.bias", (d,))],
        "separable_conv1d": [("depthwise.weight", (c, 1, k)), ("pointwise.weight", (d, c, 1)),
                             ("pointwise.bias", (d,))],
        "lightweight_conv": [*_matrix("in", 2 * c, c), ("kernel.weight", (op.get("heads"), k)),
                             *_matrix("out", d, c)],
        "attention": [*_matrix("in", 3 * c, c), *_matrix("out", d, c)],
        "cross_attention": [("memory_ln.weight", (c,)), ("memory_ln.bias", (c,)),
                            *_matrix("query", c, c), *_matrix("memory", 2 * c, c),
                            *_matrix("out", d, c)],
        "glu": _matrix("linear", 2 * d, c),
        "ffn": [*_matrix("in", op.get("hidden"), c), *_matrix("out", d, op.get("hidden"))],
        "classifier": _matrix("linear", d, c)[bool(op.get("tied")):],
    }
    return [("ln.weight", (c,)), ("ln.bias", (c,)), *own[name]]


SEQUENCE_OPERATORS = ("conv1d", "separable_conv1d", "lightweight_conv", "attention",
                      "cross_attention", "glu", "ffn", "skip")


def _sequence_shape(block, op, shape, source, where):
    name = op["op"]
    need(block["stride"] == 1 and block["channels"] is None, where,
         "a sequence has neither 'stride' nor 'channels'")
    width = block["features"] or shape[1]
    if name == "classifier":
        return (shape[0] - source, width)
    if name == "embedding":
        need(block["features"], where, "lacks 'features'")
        return (shape[0], width)
    need(name in SEQUENCE_OPERATORS, where, f"{name} does not take a sequence")
    need(name != "skip" or width == shape[1], where, "skip keeps its width")
    need(source > 0 or block["part"] == "decoder", where, "there is no encoder")
    need(name != "cross_attention" or (source > 0 and block["part"] == "decoder"), where,
         "cross_attention is for the decoder beside an encoder")
    need(source == 0 or width == shape[1], where, "encoder and decoder share one width")
    need(shape[1] % op.get("heads", 1) == 0, where, "its heads must divide its features")
    return (shape[0], width)


VECTOR_OPERATORS = "linear", "ffn", "classifier"


def _output_shape(block, op, shape, stride, where):
    """The shape `op` gives in `block` for an input of `shape`."""
    name = op["op"]
    need(name not in SEQUENCE_OPERATORS[:-2] + ("embedding",) and not op.get("tied"), where,
         f"{name} needs a sequence")
    if name in VECTOR_OPERATORS:
        need(block["channels"] is None, where, f"'channels' does not fit the operator {name}")
        need(stride == 1, where, f"stride {stride} does not fit the operator {name}")
        need(name != "ffn" or len(shape) == 1, where, "ffn needs a vector, its input is an image")
        return (block["features"] or math.prod(shape),)
    need(block["features"] is None or name == "skip", where,
         f"'features' does not fit the operator {name}")
    if name == "skip":
        return shape
    need(len(shape) == 3, where, f"{name} needs an image, its input is a vector")
    extent = op.get("dilation", 1) * (op["kernel"] - 1) + 1
    need(extent <= min(shape[1:]), where,
         f"the kernel covers {extent} pixels, the image has {shape[1]}x{shape[2]}")
    channels = shape[0] if name.endswith("_pool") else block["channels"] or shape[0]
    return (channels, -(-shape[1] // stride), -(-shape[2] // stride))


def _position_layers(block, position, name, first_id, shape, stride, source):
    layers = []
    for i, op in enumerate(block["candidates"]):
        label = name if name in ("stem", "head") else f"{name}.{i}"
        if len(shape) == 2:
            output = _sequence_shape(block, op, shape, source, label)
        else:
            output = _output_shape(block, op, shape, stride, label)
        residual = block["residual"] and op["op"] != "skip"
        need(not block["residual"] or output == shape, label,
             f"residual needs equal shapes, has {shape} and {output}")
        layer = Layer(first_id + i, label, position, op, stride, residual, block["trainable"],
                      block["delay"], shape, output, block["part"], source)
        _add_tensors(layer, label)
        layers.append(layer)
    need(not block["channels"] or not block["features"], name, "has both channels and features")
    wanted = block["channels"] or block["features"]
    for layer in layers:
        need(layer.output == layers[0].output, layer.name,
             f"its output is {layer.output}, that of {layers[0].name} is {layers[0].output}")
        width = layer.output[1 if len(layer.output) == 2 else 0]
        need(wanted is None or width == wanted, layer.name,
             f"its output has length {width}, the block's is {wanted}")
    return layers


def build_positions(spec, input_shape, classes):
    """Lists of layers by position: the stem, every block with its repeats, the head."""
    supernet = spec["supernet"]
    entries = [(supernet["stem"], "stem", supernet["stem"]["stride"])]
    for block in supernet["blocks"]:
        for repeat in range(block["repeat"]):
            stride = block["stride"] if repeat == 0 else 1
            entries.append((block, f"block{len(entries) - 1}", stride))
    entries.append(({**supernet["head"], "features": classes}, "head", 1))

    positions, shape, next_id = [], tuple(input_shape), 0
    for position, (block, name, stride) in enumerate(entries):
        layers = _position_layers(block, position, name, next_id, shape, stride,
                                  spec["data"].get("source", 0))
        positions.append(layers)
        next_id += len(layers)
        shape = layers[0].output
    _check_norms(spec, positions)
    _check_ends(positions)
    return positions


def _check_ends(positions):
    stem, head = positions[0][0], positions[-1][0]
    is_embedding = stem.op["op"] == "embedding"
    need(is_embedding == (len(stem.input) == 2), "stem", "a text, and nothing else, is embedded")
    need(not head.op["tied"] or stem.output[1:] == head.input[1:], "head",
         "is tied to an embedding of another width")


def _check_norms(spec, positions):
    rows = min(micro_batch_sizes(spec["training"]))
    for layer in (layer for layers in positions for layer in layers):
        pixels = math.prod(layer.output[1:])
        need(not layer.buffers or rows * pixels > 1, layer.name,
             "a micro-batch gives its batch norm one value per channel")


def learning_rate(training, seq):
    """docs/spec.md section 8, in float64."""
    lr, total = training["lr"], training["subnets"]
    base, warmup = lr["base"], lr["warmup"]
    if seq < warmup:
        return base * (seq + 1) / warmup
    if lr["kind"] == "step":
        rate = base
        for _ in range((seq - warmup) // lr["every"]):
            rate *= lr["gamma"]
        return rate
    if lr["kind"] == "cosine":
        share = (seq - warmup) / (total - warmup)
        return lr["final"] + (base - lr["final"]) * (0.5 * (1 + math.cos(math.pi * share)))
    return base


def load_list(path):
    """The choices of a `list` sampler's file, one list per subnet."""
    with open(path, encoding="utf-8") as file:
        content = file.read()
    try:
        entries = json.loads(content)
        whole = isinstance(entries, list) and all(isinstance(e, (list, dict)) for e in entries)
    except json.JSONDecodeError:
        whole = False
    if not whole:
        entries = [json.loads(line) for line in content.splitlines() if line.strip()]
    choices = [entry.get("op") if isinstance(entry, dict) else entry for entry in entries]
    for i, entry in enumerate(choices):
        need(isinstance(entry, list), f"{path}, entry {i}", "is no list of candidate indices")
    return choices
