"""Trains the stream one subnet after another, and evaluates (docs/spec.md sections 4 to 10)."""

import os
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F

import dataset
import digests
import samplers
import spec as specs
from model import EvaluationPass, LateRead, LayerState, TrainingPass, forward
from philox import BATCH, CALIBRATION_BATCH, EVALUATED_SUBNET, Stream, draw_samples


@dataclass
class Access:
    """What one subnet did to one versioned layer. Digests are None below their level."""

    layer: int
    name: str
    read_seq: int  # the subnet that wrote the version read, -1 for the initial one
    base_seq: int  # likewise of the version updated
    weights: str
    optimizer: str
    gradients: str = None


@dataclass
class Activation:
    position: int
    microbatch: int
    digest: str


@dataclass
class Subnet:
    seq: int
    choices: list  # one candidate per block
    samples: list  # indices into the training file or files
    batch: str  # digest
    loss: str  # float32 bits, eight hexadecimal digits
    accesses: list = field(default_factory=list)
    activations: list = field(default_factory=list)


@dataclass
class Evaluated:
    index: int
    choices: list
    correct: int
    samples: int


class Reference:
    def __init__(self, spec, spec_folder, data_folder=None, full=None):
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
        self.spec = spec
        self.seed = spec["seed"]
        self.full = spec["record"]["level"] == "full" if full is None else full
        self.data = dataset.load(data_folder or os.path.join(spec_folder, spec["data"]["folder"]),
                                 spec["data"]["format"], spec["data"])
        self._split()
        self._check_normalisation()
        self.positions = specs.build_positions(spec, self.data.train.shape, self.data.classes)
        self.states = [LayerState(layer, self.seed)
                       for layers in self.positions for layer in layers]
        self.optimizers = {}
        self.updates = [0] * len(self.states)
        self.last_writer = [-1] * len(self.states)
        # (writer, parameters) of every version of a layer with a delay, oldest first.
        self.versions = [[(-1, self._parameters(state))] for state in self.states]
        self._draw_stream(spec_folder)

    def _split(self):
        count, self.held_out_images = len(self.data.train.labels), self.data.test
        self.train_split, self.held_out = list(range(count)), []
        if self.data.test is None:
            self.held_out_images = self.data.train
            self.train_split, self.held_out = dataset.split(
                count, self.spec["data"]["holdout"], self.seed)
        else:
            self.held_out = list(range(len(self.data.test.labels)))
        batch = self.spec["training"]["batch"]
        specs.need(batch <= len(self.train_split), "spec.training.batch",
                   f"is {batch}, the training split has {len(self.train_split)} samples")
        specs.need(self.held_out or not self.spec["evaluation"]["subnets"],
                   "spec.evaluation.subnets", "needs held-out samples, there are none")

    def _check_normalisation(self):
        if self.spec["data"]["format"] == "text":
            return
        channels = self.data.train.shape[0]
        for name in ("mean", "std"):
            value = self.spec["data"][name]
            specs.need(not isinstance(value, list) or len(value) == channels, f"spec.data.{name}",
                       f"must have one number per channel, the data have {channels}")

    def _draw_stream(self, spec_folder):
        sampler = self.spec["sampler"]
        self.candidates = [len(layers) for layers in self.positions[1:-1]]
        versioned = [[layer.versioned for layer in layers] for layers in self.positions[1:-1]]
        subnets = self.spec["training"]["subnets"]
        file = sampler.get("of", sampler).get("file")
        listed = self._load_list(spec_folder, file, subnets) if file else None
        self.stream = samplers.stream(sampler, self.seed, versioned, subnets, listed)

    def _load_list(self, spec_folder, file, subnets):
        listed = specs.load_list(os.path.join(spec_folder, file))
        specs.need(len(listed) >= subnets, file,
                   f"holds {len(listed)} entries, training.subnets is {subnets}")
        for i, entry in enumerate(listed):
            good = len(entry) == len(self.candidates) and all(
                isinstance(c, int) and 0 <= c < n for c, n in zip(entry, self.candidates))
            specs.need(good, f"{file}, entry {i}", f"{entry} does not fit the blocks")
        return listed

    @staticmethod
    def _parameters(state):
        return {name: value.detach().clone() for name, value in state.parameters.items()}

    def path(self, choices):
        """The states of a subnet's layers, by position."""
        picks = [0, *choices, 0]
        return [self.states[layers[pick].id] for layers, pick in zip(self.positions, picks)]

    def inputs(self, images, samples):
        data = self.spec["data"]
        if data["format"] == "text":
            return torch.from_numpy(images.pieces[samples].astype(np.int64))
        values = dataset.normalise(images.pixels[samples], data["mean"], data["std"])
        return torch.from_numpy(np.ascontiguousarray(values)).clone()

    def data_digest(self):
        test = self.data.test
        return digests.named(self.data.train.named() + (test.named("test.") if test else []))

    def weights_digests(self):
        return [digests.named(state.named()) for state in self.states]

    def train(self, seq):
        """Trains subnet `seq`; the layers must hold the versions after seq - 1."""
        training = self.spec["training"]
        choices = self.stream[seq]
        samples = draw_samples(self.train_split, training["batch"],
                               Stream(self.seed, BATCH, 0, 0, seq))
        x = self.inputs(self.data.train, samples)
        labels = torch.from_numpy(self.data.train.labels[samples].astype(np.int64))
        subnet = Subnet(seq, choices, samples,
                        digests.named([("inputs", x), ("labels", labels)]), "")
        path = [self._read(state, seq) for state in self.path(choices)]
        losses = self._forward(subnet, path, x, labels)
        total = losses[0].detach()
        for loss in losses[1:]:
            total = total + loss.detach()
        subnet.loss = f"{int(total.view(torch.int32)) & 0xFFFFFFFF:08x}"
        self._backward(path, losses)
        for read in path:
            if read.layer.versioned:
                subnet.accesses.append(self._update(read, seq))
        return subnet

    def _read(self, state, seq):
        """What subnet `seq` reads of a layer: the newest version, or one that is old enough."""
        layer = state.layer
        if not layer.versioned or layer.delay == 0:
            return state
        return LateRead(layer, self._late_version(layer, seq)[1])

    def _late_version(self, layer, seq):
        return [version for version in self.versions[layer.id]
                if version[0] < max(seq - layer.delay, 0)][-1]

    def _forward(self, subnet, path, x, labels):
        losses, first = [], 0
        self.tied = self._embedding(path[0])
        if self.tied is not None:  # a leaf of its own: section 6 says how the gradients are added
            self.tied = self.tied.detach().requires_grad_(path[0].layer.trainable)
        for part, rows in enumerate(specs.micro_batch_sizes(self.spec["training"])):
            y = x[first : first + rows].clone()
            context = TrainingPass(self.seed, subnet.seq, part, self.tied)
            for position, state in enumerate(path):
                y = forward(state, y, context)
                if self.full:
                    subnet.activations.append(
                        Activation(position, part, digests.tensor(y.detach())))
            target = labels[first : first + rows].clone()
            loss = F.cross_entropy(y.flatten(0, -2), target.flatten(), reduction="sum",
                                   label_smoothing=self.spec["training"]["label_smoothing"])
            losses.append(loss / labels.numel())
            first += rows
        return losses

    def _backward(self, path, losses):
        for state in path:
            for parameter in state.parameters.values():
                parameter.grad = None
        for loss in losses:
            if loss.requires_grad:
                loss.backward()
        if self.tied is not None and self.tied.requires_grad:
            embedding = self._embedding(path[0])
            embedding.grad = embedding.grad + self.tied.grad

    def _optimizer(self, state):
        if state.layer.id not in self.optimizers:
            options = self.spec["training"]["optimizer"]
            common = {"lr": 0.0, "weight_decay": options["weight_decay"], "fused": True}
            parameters = list(state.parameters.values())
            if options["kind"] == "sgd":
                made = torch.optim.SGD(parameters, momentum=options["momentum"],
                                       nesterov=options["nesterov"], **common)
            else:
                make = torch.optim.Adam if options["kind"] == "adam" else torch.optim.AdamW
                made = make(parameters, betas=tuple(options["betas"]), eps=options["epsilon"],
                            **common)
            self.optimizers[state.layer.id] = made
        return self.optimizers[state.layer.id]

    def _update(self, read, seq):
        layer, state = read.layer, self.states[read.layer.id]
        base = read_seq = self.last_writer[layer.id]
        if read is not state:
            read_seq = self._late_version(layer, seq)[0]
            state.add_statistics(read.measured)
            for name, parameter in state.parameters.items():
                parameter.grad = read.parameters[name].grad
        access = Access(layer.id, layer.name, read_seq, base, "", "")
        if self.full:
            access.gradients = digests.named(
                [(name, p.grad) for name, p in state.parameters.items()])
        optimizer = self._optimizer(state)
        optimizer.param_groups[0]["lr"] = specs.learning_rate(self.spec["training"], seq)
        optimizer.step()
        self.updates[layer.id] += 1
        self.last_writer[layer.id] = seq
        if read is not state:
            self.versions[layer.id].append((seq, self._parameters(state)))
        access.weights = digests.named(state.named())
        access.optimizer = self._optimizer_digest(state, optimizer)
        return access

    def _optimizer_digest(self, state, optimizer):
        options = self.spec["training"]["optimizer"]
        entries = ["exp_avg", "exp_avg_sq"]
        if options["kind"] == "sgd":
            entries = ["momentum_buffer"] if options["momentum"] > 0 else []
        named = [(f"{name}.{entry}", optimizer.state[parameter][entry])
                 for name, parameter in state.parameters.items() for entry in entries]
        step = torch.tensor(self.updates[state.layer.id], dtype=torch.int64)
        return digests.named([*named, ("step", step)])

    @torch.no_grad()
    def evaluate(self, index):
        choices = samplers.draw_uniform(self.candidates, self.seed, EVALUATED_SUBNET, index)
        path = self.path(choices)
        statistics = self._calibrate(path, index)
        batch, correct = self.spec["training"]["batch"], 0
        for first in range(0, len(self.held_out), batch):
            samples = self.held_out[first : first + batch]
            y = self._pass(path, self.inputs(self.held_out_images, samples),
                           EvaluationPass(statistics, tied=self._embedding(self.states[0])))
            best = np.argmax(y.numpy(), axis=-1)
            correct += int((best == self.held_out_images.labels[samples]).sum())
        return Evaluated(index, choices, correct,
                         self.held_out_images.labels[self.held_out].size)

    def _embedding(self, stem):
        """The matrix that a tied head shares with the stem as it is read."""
        is_tied = self.positions[-1][0].op["tied"]
        return stem.parameters["embedding.weight"] if is_tied else None

    def _calibrate(self, path, index):
        batches = self.spec["evaluation"]["calibration_batches"]
        statistics = {}
        for state in path:
            for name, value in state.buffers.items():
                fresh = torch.ones if name.endswith("running_var") else torch.zeros
                statistics[state.layer.id, name] = fresh(value.shape) if batches else value.clone()
        for b in range(batches):
            samples = draw_samples(self.train_split, self.spec["training"]["batch"],
                                   Stream(self.seed, CALIBRATION_BATCH, b, 0, index))
            self._pass(path, self.inputs(self.data.train, samples),
                       EvaluationPass(statistics, 1.0 / (b + 1), self._embedding(self.states[0])))
        return statistics

    def _pass(self, path, x, context):
        for state in path:
            x = forward(state, x, context)
        return x
