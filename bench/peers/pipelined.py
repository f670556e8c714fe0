#!/usr/bin/env python3
"""A peer: torch.distributed.pipelining on two processes of this machine, one subnet per step."""

import json
import os
import tempfile

import workload

RANKS = 2


def share(path, rank):
    """The positions of a path that a rank holds: equal ranges, the first takes what is left."""
    middle = (len(path) + 1) // 2
    return path[:middle] if rank == 0 else path[middle:]


def make_stage(context):
    import torch
    from model import forward  # tests/reference

    class Stage(torch.nn.Module):
        """Runs the layers of the subnet whose turn it is."""

        reads = ()

        def forward(self, x):
            for state in self.reads:
                x = forward(state, x, context)
            return x

    return Stage()


def train(work, rank, kind, clock):
    from torch.distributed import pipelining

    states = {state.layer.id: state for path in work.paths for state in share(path, rank)}
    layers = workload.Layers(list(states.values()), work.training)
    module = make_stage(workload.Pass())
    stage = pipelining.PipelineStage(module, rank, RANKS, "cpu")
    make = {"gpipe": pipelining.ScheduleGPipe, "1f1b": pipelining.Schedule1F1B}[kind]
    schedule = make(stage, work.training["microbatches"], scale_grads=False,
                    loss_fn=workload.make_loss(work))
    totals = []
    for seq, (whole_path, rate) in enumerate(zip(work.paths, work.rates)):
        clock.before(seq)
        path = share(whole_path, rank)
        module.reads = layers.read(path, seq)
        inputs, labels = work.batches[seq]
        if rank == 0:
            schedule.step(inputs)
        else:
            losses = []
            schedule.step(target=labels, losses=losses)
            total = losses[0].detach()
            for loss in losses[1:]:
                total = total + loss.detach()
            totals.append(workload.bits(total))
        layers.update(path, module.reads, seq, rate)
    return totals


def run(rank, options, folder):
    work = workload.Workload(options.spec, options.data, options.subnets)
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank,
                            world_size=RANKS)
    clock = workload.Clock(options.warmup)
    losses = train(work, rank, options.schedule, clock)
    result = clock.result(options.subnets, losses)
    with open(f"{folder}/{rank}.json", "w", encoding="ascii") as file:
        json.dump(result, file)
    dist.barrier()
    dist.destroy_process_group()


def main():
    options = workload.arguments(__doc__, schedule="1f1b")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    import torch.multiprocessing as multiprocessing
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(run, (options, folder), nprocs=RANKS)
        ranks = []
        for rank in range(RANKS):
            with open(f"{folder}/{rank}.json", encoding="ascii") as file:
                ranks.append(json.load(file))
    result = {name: sum(rank[name] for rank in ranks)
              for name in ("processor_seconds", "start_bytes", "peak_bytes")}
    last = ranks[-1]
    print(json.dumps({"subnets": last["subnets"], "seconds": max(r["seconds"] for r in ranks),
                      **result, "losses": last["losses"]}))


if __name__ == "__main__":
    main()
