"""Operators on sequences (docs/spec.md, "Operators on sequences") as plain PyTorch calls."""

import math

import torch
import torch.nn.functional as F

_ACTIVATIONS = {
    "none": lambda x: x,
    "relu": F.relu,
    "swish": F.silu,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.01),
}


def activate(x, name):
    return _ACTIVATIONS[name](x)


def forward(state, x, context):
    """The output of one layer; the places of the other part are handed on."""
    layer = state.layer
    op = layer.op
    if op["op"] == "skip":
        return x
    if op["op"] == "embedding":
        y = F.embedding(x, state.parameters["embedding.weight"])
        return context.dropout(state, y + state.parameters["position.weight"], op["dropout"])
    encoded, decoded = x[:, : layer.source], x[:, layer.source :]
    if op["op"] == "classifier":
        return _classify(state, decoded, context)
    own = encoded if layer.part == "encoder" else decoded
    y = _operate(state, own, encoded, context)
    y = y + own if layer.residual else y
    if layer.source == 0:
        return y
    return torch.cat([y, decoded] if layer.part == "encoder" else [encoded, y], 1)


def _classify(state, x, context):
    x = context.dropout(state, _norm(state, "ln", x), state.layer.op["dropout"])
    weight = context.tied if state.layer.op["tied"] else state.parameters["linear.weight"]
    return F.linear(x, weight, state.parameters["linear.bias"])


def _operate(state, own, encoded, context):
    op = state.layer.op
    x = _norm(state, "ln", own)
    if op["op"] == "ffn":
        hidden = activate(_affine(state, "in", x), op["activation"])
        return _affine(state, "out", context.dropout(state, hidden, op["dropout"]))
    if op["op"] == "cross_attention":
        y = _cross_attention(state, x, encoded)
    else:
        y = _TRANSFORMS[op["op"]](state, x)
    return context.dropout(state, activate(y, op["activation"]), op["dropout"])


def _norm(state, name, x):
    weight, bias = state.parameters[f"{name}.weight"], state.parameters[f"{name}.bias"]
    return F.layer_norm(x, weight.shape, weight, bias, 1e-5)


def _affine(state, name, x):
    return F.linear(x, state.parameters[f"{name}.weight"], state.parameters[f"{name}.bias"])


def _swap(x):
    return x.transpose(1, 2).contiguous()


def _pad(state, x):
    k = state.layer.op["kernel"]
    left = (k - 1) // 2 if state.layer.part == "encoder" else k - 1
    return F.pad(x, (left, k - 1 - left))


def _conv1d(state, x):
    x = _pad(state, _swap(x))
    return _swap(F.conv1d(x, state.parameters["conv.weight"], state.parameters["conv.bias"]))


def _separable_conv1d(state, x):
    x = _pad(state, _swap(x))
    x = F.conv1d(x, state.parameters["depthwise.weight"], groups=x.shape[1])
    pointwise = state.parameters["pointwise.weight"], state.parameters["pointwise.bias"]
    return _swap(F.conv1d(x, *pointwise))


def _lightweight_conv(state, x):
    x = F.glu(_affine(state, "in", x), -1)
    channels, (heads, k) = x.shape[2], state.parameters["kernel.weight"].shape
    weights = F.softmax(state.parameters["kernel.weight"], -1)
    weights = weights.unsqueeze(1).expand(heads, channels // heads, k).reshape(channels, 1, k)
    x = F.conv1d(_pad(state, _swap(x)), weights, groups=channels)
    return _affine(state, "out", _swap(x))


def _attend(query, key, value, heads, causal):
    def split(x):
        return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)

    scale = 1.0 / math.sqrt(query.shape[2] // heads)
    scores = split(query) @ split(key).transpose(2, 3) * scale
    if causal:
        later = torch.ones(scores.shape[2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    return (F.softmax(scores, -1) @ split(value)).transpose(1, 2).reshape(query.shape)


def _attention(state, x):
    heads, causal = state.layer.op["heads"], state.layer.part == "decoder"
    return _affine(state, "out", _attend(*_affine(state, "in", x).chunk(3, -1), heads, causal))


def _cross_attention(state, x, encoded):
    memory = _affine(state, "memory", _norm(state, "memory_ln", encoded))
    query = _affine(state, "query", x)
    return _affine(state, "out",
                   _attend(query, *memory.chunk(2, -1), state.layer.op["heads"], False))


def _glu(state, x):
    return F.glu(_affine(state, "linear", x), -1)


_TRANSFORMS = {
    "conv1d": _conv1d,
    "separable_conv1d": _separable_conv1d,
    "lightweight_conv": _lightweight_conv,
    "attention": _attention,
    "glu": _glu,
}
