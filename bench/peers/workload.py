"""What every peer trains: the layers, choices and batches of a spec, as tests/reference reads them.

Import it first: it sets the spec's numeric profile before torch is loaded.
"""

import argparse
import json
import sys
import time
from collections import deque
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "reference"))

import spec as specs  # noqa: E402: tests/reference


def arguments(description, **choices):
    """The options that all peers share, and `choices`: further options with a default."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("spec")
    parser.add_argument("--data", help="instead of the spec's data.folder")
    parser.add_argument("--subnets", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=20, help="subnets before the clock starts")
    for name, default in choices.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args()


class Workload:
    """Everything a peer needs, prepared before its clock starts."""

    def __init__(self, path, data, subnets):
        spec = specs.parse(json.loads(Path(path).read_text(encoding="utf-8")), subnets)
        specs.need(not spec["supernet"]["head"]["candidates"][0]["tied"], "spec.supernet.head.tied",
                   "is true, which these peers do not train")
        specs.set_numerics(spec["numerics"])
        import torch
        from philox import BATCH, Stream, draw_samples
        from training import Reference

        reference = Reference(spec, Path(path).resolve().parent, data)
        torch.use_deterministic_algorithms(False)  # the reference's own setting
        self.training = spec["training"]
        self.states = reference.states
        self.paths = [reference.path(reference.stream[seq]) for seq in range(subnets)]
        self.rates = [specs.learning_rate(self.training, seq) for seq in range(subnets)]
        self.batches = []
        for seq in range(subnets):
            samples = draw_samples(reference.train_split, self.training["batch"],
                                   Stream(spec["seed"], BATCH, 0, 0, seq))
            labels = torch.from_numpy(reference.data.train.labels[samples].astype("int64"))
            self.batches.append((reference.inputs(reference.data.train, samples), labels))


def memory(name):
    """A size of this process from /proc/self/status, in bytes."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise ValueError(name)


class Clock:
    """Times the subnets after the warm-up, on the wall and on the processor."""

    def __init__(self, warmup):
        self._warmup = warmup
        self._start_bytes = memory("VmRSS")

    def before(self, seq):
        if seq == self._warmup:
            self._wall, self._processor = time.perf_counter(), time.process_time()

    def result(self, subnets, losses):
        """As train_bench prints it, and the losses' bits."""
        return {"subnets": subnets - self._warmup,
                "seconds": time.perf_counter() - self._wall,
                "processor_seconds": time.process_time() - self._processor,
                "start_bytes": self._start_bytes,
                "peak_bytes": memory("VmHWM"),
                "losses": losses}


class Layers:
    """The layers that one process trains, read with their delays, and one optimizer for them."""

    MOMENTUM = 0.1

    def __init__(self, states, training):
        import torch
        self._torch = torch
        self._training = training
        self._delayed = {state.layer.id: deque([(-1, self._snapshot(state))])
                         for state in states if state.layer.versioned and state.layer.delay}
        parameters = [p for state in states for p in state.parameters.values() if p.requires_grad]
        self._optimizer = self._make_optimizer(parameters)

    def _snapshot(self, state):
        return {name: p.detach().clone().requires_grad_() for name, p in state.parameters.items()}

    def _make_optimizer(self, parameters):
        torch, options = self._torch, self._training["optimizer"]
        common = {"lr": 0.0, "weight_decay": options["weight_decay"], "fused": True}
        if options["kind"] != "sgd":
            make = torch.optim.Adam if options["kind"] == "adam" else torch.optim.AdamW
            return make(parameters, betas=options["betas"], eps=options["epsilon"], **common)
        made = torch.optim.SGD(parameters, momentum=options["momentum"],
                               nesterov=options["nesterov"], **common)
        if options["momentum"] > 0:  # the fused kernel wants all buffers or none
            for parameter in parameters:
                made.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
        return made

    def read(self, path, seq):
        """The path as subnet `seq` reads it: a delayed layer's older version in its place."""
        return [self._read_delayed(state, seq) if state.layer.id in self._delayed else state
                for state in path]

    def _read_delayed(self, state, seq):
        versions = self._delayed[state.layer.id]
        while len(versions) > 1 and versions[1][0] < seq - state.layer.delay:
            versions.popleft()
        return Delayed(state, versions[0][1])

    def update(self, path, reads, seq, rate):
        """Applies the gradients of what was read to the newest versions."""
        for state, read in zip(path, reads):
            if read is not state:
                read.hand_over(self.MOMENTUM)
        self._optimizer.param_groups[0]["lr"] = rate
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        for state, read in zip(path, reads):
            if read is not state:
                self._delayed[state.layer.id].append((seq, self._snapshot(state)))


class Delayed:
    """An older version of a layer for one subnet. Batch statistics wait for the update."""

    def __init__(self, state, parameters):
        self.layer, self.parameters, self._state = state.layer, parameters, state
        self.statistics = []  # (buffer's name, of one micro-batch), in order
        for parameter in parameters.values():
            parameter.grad = None

    def hand_over(self, momentum):
        for name, parameter in self.parameters.items():
            self._state.parameters[name].grad = parameter.grad
        for name, value in self.statistics:
            self._state.buffers[name].mul_(1 - momentum).add_(value, alpha=momentum)


class Pass:
    """Batch norm and dropout of the training pass: tests/reference calls them."""

    tied = None  # the matrix of a tied head: such a supernet does not come apart into two ranks

    def __init__(self):
        import torch
        import torch.nn.functional as F
        self._torch, self._functional = torch, F

    def batch_norm(self, state, name, x):
        momentum, mean, variance = Layers.MOMENTUM, None, None
        if isinstance(state, Delayed):
            momentum = 1.0
            mean, variance = self._torch.zeros(x.shape[1]), self._torch.zeros(x.shape[1])
            state.statistics += [(f"{name}.running_mean", mean), (f"{name}.running_var", variance)]
        elif state.layer.trainable:
            mean = state.buffers[f"{name}.running_mean"]
            variance = state.buffers[f"{name}.running_var"]
        return self._functional.batch_norm(
            x, mean, variance, state.parameters[f"{name}.weight"], state.parameters[f"{name}.bias"],
            training=True, momentum=momentum, eps=1e-5)

    def dropout(self, state, x, probability):
        """Masks of torch's own: with dropout, losses are not those of the spec."""
        return self._functional.dropout(x, probability) if probability else x


def make_loss(work):
    """The loss of a micro-batch: its share of the mean over a batch's targets."""
    import torch.nn.functional as F
    targets = work.batches[0][1].numel()
    smoothing = work.training["label_smoothing"]

    def loss(logits, labels):
        total = F.cross_entropy(logits.flatten(0, -2), labels.flatten(), reduction="sum",
                                label_smoothing=smoothing)
        return total / targets

    return loss


def bits(loss):
    """A float32 as a record keeps it."""
    import torch
    return int(loss.detach().view(torch.int32)) & 0xFFFFFFFF
