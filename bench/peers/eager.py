#!/usr/bin/env python3
"""A peer: PyTorch eager, one subnet after another in one process."""

import json

import workload


def train(work, clock):
    from model import forward  # tests/reference

    layers, context = workload.Layers(work.states, work.training), workload.Pass()
    make_loss = workload.make_loss(work)
    sizes = workload.specs.micro_batch_sizes(work.training)
    losses = []
    for seq, (path, rate) in enumerate(zip(work.paths, work.rates)):
        clock.before(seq)
        reads = layers.read(path, seq)
        inputs, labels = work.batches[seq]
        total = None
        for x, target in zip(inputs.split(sizes), labels.split(sizes)):
            for state in reads:
                x = forward(state, x, context)
            loss = make_loss(x, target)
            loss.backward()
            total = loss.detach() if total is None else total + loss.detach()
        layers.update(path, reads, seq, rate)
        losses.append(workload.bits(total))
    return losses


def main():
    options = workload.arguments(__doc__, threads=1)
    work = workload.Workload(options.spec, options.data, options.subnets)
    import torch
    torch.set_num_threads(options.threads)
    clock = workload.Clock(options.warmup)
    losses = train(work, clock)
    print(json.dumps(clock.result(options.subnets, losses)))


if __name__ == "__main__":
    main()
