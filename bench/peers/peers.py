#!/usr/bin/env python3
"""Times verbatim beside other trainers of the same spec, weights and batches on this machine.

First all train the same subnets, and their losses are compared bit for bit. Then each trains in a
process of its own, in turn, as often as --repeat says: machines drift, so that only ratios taken
within one round are compared. See bench/README.md.
"""

import argparse
import json
import os
import platform
import re
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import make_images

HERE = Path(__file__).resolve().parent
EXAMPLE = """example:
  bench/peers/peers.py bench/specs/conv16x4.json --build build/release -o peers.json"""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec", help="what to train")
    parser.add_argument("--build", default="build/release", metavar="DIR",
                        help="folder of a build with -DVERBATIM_BENCH=ON")
    parser.add_argument("--data", metavar="DIR",
                        help="instead of the spec's data.folder; where that is absent, images are "
                             "made up")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="rounds")
    parser.add_argument("--subnets", type=int, default=60, metavar="N",
                        help="subnets that each trains in a round")
    parser.add_argument("--warmup", type=int, default=12, metavar="N",
                        help="of those, how many pass before the clock starts")
    parser.add_argument("--only", metavar="REGEX", default="",
                        help="only trainers whose name holds a match")
    parser.add_argument("-o", "--output", metavar="FILE", help="all numbers as JSON")
    options = parser.parse_args()
    if not 0 < options.warmup < options.subnets or options.repeat < 1:
        parser.error("--warmup must be above 0 and below --subnets, --repeat above 0")
    return options


class Bench:
    """Runs trainers of one spec; `folder` is for what it writes."""

    def __init__(self, options, folder):
        self.spec = Path(options.spec).resolve()
        self.build = Path(options.build).resolve()
        self.data = options.data
        self.folder = folder
        self.causal = folder / "causal.json"
        spec = json.loads(self.spec.read_text(encoding="utf-8"))
        self.causal.write_text(json.dumps(plain_causal(spec)), encoding="utf-8")
        if self.data is None:
            self.data = self.spec.parent / spec["data"]["folder"]
        if spec["data"]["format"] == "cifar10" and not Path(self.data).is_dir():
            self.data = folder / "images"
            make_images.make(self.data)

    def ours(self, stages, level="off", spec=None):
        def run(subnets, warmup):
            return execute([self.build / "bench" / "train_bench", spec or self.spec, stages, level,
                            subnets, warmup, 2 * stages, self.data])
        return run

    def our_ranks(self, ranks, level="off"):
        """A stage in each of several processes."""
        def run(subnets, warmup):
            command = [self.build / "bench" / "train_bench", self.spec, ranks, level, subnets,
                       warmup, 2 * ranks, self.data]
            return execute_ranks(ranks, [str(word) for word in command])
        return run

    def peer(self, script, *arguments):
        def run(subnets, warmup):
            return execute([sys.executable, HERE / script, self.spec, "--data", self.data,
                            "--subnets", subnets, "--warmup", warmup, *arguments])
        return run

    def recorded_losses(self, subnets):
        record = self.folder / "losses.db"
        execute_program([self.build / "cli" / "verbatim", "train", self.spec, "--data", self.data,
                         "--subnets", subnets, "--record", "losses", "-o", record, "--quiet"])
        with sqlite3.connect(record) as connection:
            return [bits for bits, in connection.execute(
                "SELECT loss_bits FROM subnets ORDER BY seq")]

    def trainers(self):
        """Those of the spec itself by name; the first is what the others are compared with."""
        return {
            "verbatim, 1 stage": self.ours(1),
            "verbatim, 2 stages": self.ours(2),
            "verbatim, 2 processes": self.our_ranks(2),
            "verbatim, 2 stages, weights recorded": self.ours(2, "weights"),
            "verbatim, 2 processes, weights recorded": self.our_ranks(2, "weights"),
            "verbatim, 2 stages, all recorded": self.ours(2, "full"),
            "PyTorch eager, 1 thread": self.peer("eager.py", "--threads", 1),
            "PyTorch eager, 2 threads": self.peer("eager.py", "--threads", 2),
            "torch.distributed.pipelining, GPipe, 2 ranks":
                self.peer("pipelined.py", "--schedule", "gpipe"),
            "torch.distributed.pipelining, 1F1B, 2 ranks":
                self.peer("pipelined.py", "--schedule", "1f1b"),
        }

    def causal_trainers(self):
        """The same blocks under plain causal scheduling; the first is what the other gains on."""
        return {
            "verbatim, 1 stage, plain causal": self.ours(1, spec=self.causal),
            "verbatim, 2 stages, plain causal": self.ours(2, spec=self.causal),
        }


def plain_causal(spec):
    """Uniform draws, no micro-batches, every version read as it is written."""
    spec = json.loads(json.dumps(spec))
    supernet = spec["supernet"]
    for block in (supernet["stem"], *supernet["blocks"], supernet["head"]):
        block.pop("delay", None)
    spec["sampler"] = {"kind": "uniform"}
    spec["training"].pop("microbatches", None)
    return spec


def execute_program(command):
    command = [str(word) for word in command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"peers.py: {' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def execute(command):
    return json.loads(execute_program(command).splitlines()[-1])


def execute_ranks(ranks, command):
    """The processes of one run on this host, without a launcher: it would start them in sessions
    of their own, which may get other shares of a busy machine than the rest of this bench."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    def start(rank):
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks,
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=os.environ | {name: str(at) for name, at in place.items()})
    processes = [start(rank) for rank in range(ranks)]
    said = [process.communicate() for process in processes]
    if failed := [err for process, (_, err) in zip(processes, said) if process.returncode]:
        sys.exit(f"peers.py: {' '.join(command)} failed on {ranks} ranks:\n" + "".join(failed))
    results = [json.loads(out.splitlines()[-1]) for out, _ in said]
    together = {name: sum(result[name] for result in results)
                for name in ("processor_seconds", "start_bytes", "peak_bytes")}
    return {**results[0], **together}


def as_float(bits):
    import struct
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def compare_losses(bench, trainers, subnets):
    """For every peer, what its losses are to those of the record."""
    recorded = bench.recorded_losses(subnets)
    found = {}
    for name, run in trainers.items():
        losses = run(subnets, 1).get("losses")
        if losses is None:
            continue
        if losses == recorded:
            found[name] = f"{subnets} losses equal bit for bit"
            continue
        pairs = [(as_float(a), as_float(b)) for a, b in zip(recorded, losses)]
        worst = max(abs(a - b) / abs(a) for a, b in pairs)
        found[name] = f"{subnets} losses not the same bits, within {worst:.1e} of ours"
    return found


def measure(trainers, options):
    """By trainer, its result in every round."""
    results = {name: [] for name in trainers}
    for round_number in range(options.repeat):
        for name, run in trainers.items():
            print(f"round {round_number + 1} of {options.repeat}: {name}", file=sys.stderr)
            result = run(options.subnets, options.warmup)
            result.pop("losses", None)
            results[name].append(result)
    return results


def spread(values, form):
    median, low, high = statistics.median(values), min(values), max(values)
    return f"{form(median)} ({form(low)} to {form(high)})"


def mebibytes(value):
    return f"{value / 2**20:.0f}"


def row(name, rounds, base):
    """One line of the table; ratios are taken round by round."""
    rates = [r["subnets"] / r["seconds"] for r in rounds]
    ratios = [rate / (b["subnets"] / b["seconds"]) for rate, b in zip(rates, base)]
    processor = [1000 * r["processor_seconds"] / r["subnets"] for r in rounds]
    growth = statistics.median(r["peak_bytes"] - r["start_bytes"] for r in rounds)
    peak = statistics.median(r["peak_bytes"] for r in rounds)
    cells = [name, spread(rates, "{:.2f}".format), spread(ratios, "{:.3f}".format),
             spread(processor, "{:.0f}".format), mebibytes(peak), mebibytes(growth)]
    return "| " + " | ".join(cells) + " |"


def table(results, base_name):
    lines = [f"| trainer | subnets/s | over {base_name} | processor ms per subnet | peak MiB "
             "| of that, training |", "|---|---|---|---|---|---|"]
    lines += [row(name, rounds, results[base_name]) for name, rounds in results.items()]
    return "\n".join(lines)


def traffic(name, rounds):
    """What ranks sent each other, beside what they had to."""
    moved, least = (statistics.median(r[f"{which}_bytes_per_subnet"] for r in rounds)
                    for which in ("moved", "least"))
    return (f"{name}: {moved / 1e6:.3f} MB from rank to rank per subnet, {moved / least:.3f} times "
            "the least that the partition needs")


def main():
    options = parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, Path(folder))
        groups = [{name: run for name, run in group.items() if re.search(options.only, name)}
                  for group in (bench.trainers(), bench.causal_trainers())]
        groups = [group for group in groups if group]
        losses = compare_losses(bench, groups[0], min(12, options.subnets))
        for name, what in losses.items():
            print(f"{name}: {what}", flush=True)
        # One round visits the trainers of both groups.
        together = measure({name: run for group in groups for name, run in group.items()}, options)
        results = [{name: together[name] for name in group} for group in groups]
    for group in results:
        print("\n" + table(group, next(iter(group))), flush=True)
        for name, rounds in group.items():
            if "moved_bytes_per_subnet" in rounds[0]:
                print(traffic(name, rounds), flush=True)
    if options.output:
        document = {"spec": options.spec, "machine": platform.platform(), "losses": losses,
                    "subnets": options.subnets, "warmup": options.warmup, "trainers": together}
        Path(options.output).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
