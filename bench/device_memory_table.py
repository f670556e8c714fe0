#!/usr/bin/env python3
"""Writes the table of docs/device-memory.md: caches of layers on the spaces c0 to c3.

usage: bench/device_memory_table.py [--verbatim PROGRAM] [--subnets N]

Simulates each space with room for 1.5, 3 and 10 mean parts of a subnet on every stage (or for the
dearest part, where that is more), under each cache. Prints Markdown. Python 3.8 or later, standard
library only.
"""

import argparse
import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETTING = ["--stages", "8", "--in-flight", "8", "--microbatches", "8",
           "--unit-time", "2e-8"]
BANDWIDTH = ["--host-bandwidth", "25"]
CACHES = ["lookahead", "on-demand", "lru"]


def simulate(options, space, *more):
    spec = ROOT / "examples" / "spaces" / f"{space}.json"
    command = [options.verbatim, "simulate", str(spec), *SETTING, "--subnets", str(options.subnets),
               "--format", "json", "--quiet", *more]
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return json.loads(result.stdout)["runs"]


def row(space, parts, budget, runs, unbounded):
    cells = [f"`{space}`", f"{parts:g}", f"{budget / 2**20:,.0f}"]
    for run in runs:
        memory = run["device_memory"]
        cells.append("{:.1f} / {:.1f} ({:.1f}) / {:.2f}".format(
            100 * memory["hit_rate"], 100 * memory["stall"] / run["makespan"],
            100 * memory["stall_for_room"] / run["makespan"],
            unbounded["makespan"] / run["makespan"]))
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--verbatim", default=str(ROOT / "build" / "release" / "cli" / "verbatim"))
    parser.add_argument("--subnets", type=int, default=1000)
    options = parser.parse_args()
    print("| space | parts | MiB | " + " | ".join(f"`{cache}`" for cache in CACHES) + " |")
    print("|---|---|---|" + "---|" * len(CACHES))
    for space in ("c0", "c1", "c2", "c3"):
        unbounded, = simulate(options, space)
        for parts in (1.5, 3, 10):
            budget = max(int(parts * unbounded["part_bytes"]), unbounded["device_memory_least"])
            runs = simulate(options, space, "--device-memory", str(budget), *BANDWIDTH, "--sweep",
                            "cache=" + ",".join(CACHES))
            print(row(space, parts, budget, runs, unbounded), flush=True)


if __name__ == "__main__":
    main()
