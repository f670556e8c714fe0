"""The operators of docs/spec.md section 3 as plain PyTorch calls, and their initial tensors."""

import math

import numpy as np
import torch
import torch.nn.functional as F

import sequences
from philox import DROPOUT, INITIAL_WEIGHTS, Stream, uniform_float


class LayerState:
    """The tensors of one layer: parameters and buffers by name, in the order of the page."""

    def __init__(self, layer, seed):
        self.layer = layer
        self.parameters = {}
        for place, (name, shape) in enumerate(layer.parameters):
            value = initial_value(name, shape, Stream(seed, INITIAL_WEIGHTS, place, layer.id))
            self.parameters[name] = value.requires_grad_(layer.trainable)
        self.buffers = {
            name: torch.ones(shape) if name.endswith("running_var") else torch.zeros(shape)
            for name, shape in layer.buffers
        }

    def named(self):
        """What the weights digest covers, in order."""
        return [*self.parameters.items(), *self.buffers.items()]

    def add_statistics(self, measured):
        """The running statistics take what batch norm measured, in the order measured."""
        for name, value in measured:
            self.buffers[name].mul_(0.9).add_(value, alpha=0.1)


class LateRead:
    """What a subnet reads of a layer with a delay: the parameters of an older version."""

    def __init__(self, layer, parameters):
        self.layer = layer
        self.parameters = {name: value.detach().clone().requires_grad_()
                           for name, value in parameters.items()}
        self.measured = []  # (name of the buffer, value), as batch norm goes by


def initial_value(name, shape, stream):
    if name.endswith(".bias"):
        return torch.zeros(shape)
    if len(shape) < 2:
        return torch.ones(shape)
    bound = np.float32(math.sqrt(6.0 / math.prod(shape[1:])))
    share = uniform_float(stream.words(math.prod(shape)))
    values = (np.float32(2) * share - np.float32(1)) * bound
    return torch.from_numpy(values.reshape(shape)).clone()


class TrainingPass:
    """Batch norm and dropout while micro-batch `part` of subnet `seq` trains."""

    def __init__(self, seed, seq, part, tied=None):
        self._key = seed, seq, part
        self.tied = tied  # the matrix of a tied head

    def batch_norm(self, state, name, x):
        weight, bias = state.parameters[f"{name}.weight"], state.parameters[f"{name}.bias"]
        names = f"{name}.running_mean", f"{name}.running_var"
        momentum = 0.1
        if isinstance(state, LateRead):
            mean, variance = torch.zeros(weight.shape), torch.zeros(weight.shape)
            state.measured += zip(names, (mean, variance))
            momentum = 1.0
        elif state.layer.trainable:
            mean, variance = (state.buffers[each] for each in names)
        else:
            mean = variance = None
        return F.batch_norm(x, mean, variance, weight, bias, training=True, momentum=momentum,
                            eps=1e-5)

    def dropout(self, state, x, probability):
        if probability == 0:
            return x
        seed, seq, part = self._key
        words = Stream(seed, DROPOUT, part, state.layer.id, seq).words(x.numel())
        keep = words >= np.uint64(math.floor(probability * 2**32))
        mask = keep.astype(np.float32) * np.float32(1.0 / (1.0 - probability))
        return x * torch.from_numpy(mask.reshape(x.shape)).clone()


class EvaluationPass:
    """Batch norm while an evaluated subnet is calibrated (`momentum` set) or measured."""

    def __init__(self, statistics, momentum=None, tied=None):
        self.tied = tied
        self._statistics = statistics  # {(layer id, buffer name): tensor}
        self._momentum = momentum

    def batch_norm(self, state, name, x):
        mean = self._statistics[state.layer.id, f"{name}.running_mean"]
        variance = self._statistics[state.layer.id, f"{name}.running_var"]
        weight, bias = state.parameters[f"{name}.weight"], state.parameters[f"{name}.bias"]
        training = self._momentum is not None
        return F.batch_norm(x, mean, variance, weight, bias, training=training,
                            momentum=self._momentum or 0.0, eps=1e-5)

    def dropout(self, state, x, probability):
        return x


def forward(state, x, context):
    """The output of one layer, the residual input added."""
    layer = state.layer
    if len(layer.input) == 2:
        return sequences.forward(state, x, context)
    y = _OPERATORS[layer.op["op"]](state, x, context)
    return y + x if layer.residual else y


def _conv(state, name, x, stride=1, dilation=1, groups=1):
    weight = state.parameters[f"{name}.weight"]
    padding = dilation * (weight.shape[-1] - 1) // 2
    return F.conv2d(x, weight, None, stride, padding, dilation, groups)


def _conv_layer(state, x, context):
    op = state.layer.op
    y = _conv(state, "conv", x, state.layer.stride, op["dilation"], op["groups"])
    return F.relu(context.batch_norm(state, "bn", y))


def _separable_conv(state, x, context):
    y = _conv(state, "depthwise", x, state.layer.stride, state.layer.op["dilation"], x.shape[1])
    return F.relu(context.batch_norm(state, "bn", _conv(state, "pointwise", y)))


def _mbconv(state, x, context):
    if state.layer.op["expansion"] > 1:
        x = F.relu6(context.batch_norm(state, "bn1", _conv(state, "expand", x)))
    x = _conv(state, "depthwise", x, state.layer.stride, 1, x.shape[1])
    x = F.relu6(context.batch_norm(state, "bn2", x))
    return context.batch_norm(state, "bn3", _conv(state, "project", x))


def _avg_pool(state, x, context):
    k = state.layer.op["kernel"]
    return F.avg_pool2d(x, k, state.layer.stride, (k - 1) // 2, count_include_pad=False)


def _max_pool(state, x, context):
    k = state.layer.op["kernel"]
    return F.max_pool2d(x, k, state.layer.stride, (k - 1) // 2)


def _affine(state, name, x):
    return F.linear(x, state.parameters[f"{name}.weight"], state.parameters[f"{name}.bias"])


def _linear(state, x, context):
    op = state.layer.op
    y = sequences.activate(_affine(state, "linear", x.flatten(1)), op["activation"])
    return context.dropout(state, y, op["dropout"])


def _ffn(state, x, context):
    op = state.layer.op
    hidden = sequences.activate(_affine(state, "in", x), op["activation"])
    return _affine(state, "out", context.dropout(state, hidden, op["dropout"]))


def _classifier(state, x, context):
    x = x.mean((2, 3)) if x.dim() == 4 else x
    return _affine(state, "linear", context.dropout(state, x, state.layer.op["dropout"]))


_OPERATORS = {
    "conv": _conv_layer,
    "separable_conv": _separable_conv,
    "mbconv": _mbconv,
    "avg_pool": _avg_pool,
    "max_pool": _max_pool,
    "skip": lambda state, x, context: x,
    "linear": _linear,
    "ffn": _ffn,
    "classifier": _classifier,
}
