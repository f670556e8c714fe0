#!/usr/bin/env python3
"""An independent sequential trainer: computes what docs/spec.md says a run must leave.

    reference.py SPEC [--subnets N] [--data DIR] --json OUT
    reference.py [SPEC] --record RUN.db [--data DIR]

The first form writes every loss and digest as JSON. The second compares them with a record and
exits 1 at the first difference; without SPEC the record's own spec is used. Other errors exit 2.
"""

import argparse
import dataclasses
import json
import os
import sqlite3
import sys

import spec as specs
from dataset import DataError
from fields import SpecError


def parse_arguments():
    parser = argparse.ArgumentParser(
        description="Trains a spec sequentially, independently of verbatim, and compares.",
        epilog="example: reference.py specs/conv.json --json conv.out.json")
    parser.add_argument("spec", nargs="?", metavar="SPEC", help="the spec, a JSON file")
    parser.add_argument("--subnets", type=int, help="instead of the spec's training.subnets")
    parser.add_argument("--data", metavar="DIR", help="instead of the spec's data.folder")
    parser.add_argument("--full", action="store_true", help="with gradients and activations")
    parser.add_argument("--json", metavar="OUT", help="write all results to OUT")
    parser.add_argument("--record", metavar="RUN.db", help="compare with this record")
    arguments = parser.parse_args()
    if not arguments.json and not arguments.record:
        parser.error("give --json OUT or --record RUN.db")
    if not arguments.spec and not arguments.record:
        parser.error("give a SPEC, or a record that holds one")
    return arguments


def read_spec(path, subnets):
    with open(path, encoding="utf-8") as file:
        return specs.parse(json.load(file), subnets), os.path.dirname(os.path.abspath(path))


def compute(reference):
    """All results as one JSON document."""
    initial = reference.weights_digests()
    layers = [{"layer": layer.id, "name": layer.name, "position": layer.position,
               "versioned": layer.versioned, "weights": initial[layer.id]}
              for layers in reference.positions for layer in layers]
    spec = reference.spec
    subnets = [reference.train(seq) for seq in range(spec["training"]["subnets"])]
    evaluated = [reference.evaluate(i) for i in range(spec["evaluation"]["subnets"])]
    return {
        "data": reference.data_digest(),
        "layers": layers,
        "subnets": [dataclasses.asdict(subnet) for subnet in subnets],
        "evaluation": [dataclasses.asdict(subnet) for subnet in evaluated],
        "final": reference.weights_digests(),
    }


def main():
    arguments = parse_arguments()
    try:
        if arguments.spec:
            spec, folder = read_spec(arguments.spec, arguments.subnets)
        else:
            import record
            document, folder = record.read_spec(arguments.record)
            spec = specs.parse(document, arguments.subnets)
        specs.set_numerics(spec["numerics"])
        from training import Reference  # loads torch, under the numeric profile just set
        reference = Reference(spec, folder, arguments.data, arguments.full or None)
        if arguments.json:
            with open(arguments.json, "w", encoding="utf-8") as file:
                json.dump(compute(reference), file, indent=1)
                file.write("\n")
            return 0
        import record
        return record.compare(reference, arguments.record)
    except (SpecError, DataError, OSError, ValueError, sqlite3.Error) as error:
        print(f"reference.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
