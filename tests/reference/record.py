"""Reads a record (docs/format.md) and compares it with what the reference computes."""

import json
import sqlite3

from fields import SpecError

APPLICATION_ID = 0x5642544D
SCHEMA_VERSION = 4


class Difference(Exception):
    """The first place where record and reference differ."""


def _open(path):
    with open(path, "rb"):  # a missing file is an error here, not an empty record
        pass
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise SpecError(f"{path}: not a record")
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA_VERSION:
        raise SpecError(f"{path}: schema version {version}, this reads {SCHEMA_VERSION}")
    return database


def read_spec(path):
    """(the record's effective spec as a JSON document, the folder its paths are relative to)"""
    row = _open(path).execute("SELECT spec_json, spec_folder FROM run").fetchone()
    return json.loads(row["spec_json"]), row["spec_folder"]


def _hex(value):
    return value.hex() if isinstance(value, bytes) else value


def expect(place, recorded, computed):
    if recorded != computed:
        raise Difference(f"{place}: the record has {recorded}, the reference {computed}")


# Every query on a record. The tables and views are those of docs/format.md section 2.
QUERIES = {
    "data": "SELECT dataset_digest FROM run",
    "layers": "SELECT layer, name, position, initial_digest AS initial FROM layers ORDER BY layer",
    "subnets": "SELECT seq, choices, samples, batch_digest AS batch, loss_bits AS loss "
               "FROM subnets ORDER BY seq",
    "accesses": "SELECT layer, read_seq, base_seq, weights, "
                "optimizer_state AS optimizer, gradients FROM accesses "
                "WHERE seq = ? ORDER BY layer",
    "activations": "SELECT position, microbatch, digest FROM activations WHERE seq = ? "
                   "ORDER BY microbatch, position",
    "evaluations": "SELECT evaluation AS number, choices, correct, total AS samples "
                   "FROM evaluations ORDER BY evaluation",
}


def _numbers(value):
    """A list of numbers, kept as JSON text or as little-endian u32."""
    if isinstance(value, str):
        return json.loads(value)
    return [int.from_bytes(value[i : i + 4], "little") for i in range(0, len(value), 4)]


def _compare_layers(reference, database):
    expect("data set digest", _hex(database.execute(QUERIES["data"]).fetchone()[0]),
           reference.data_digest())
    initial = reference.weights_digests()
    computed = [(layer.id, layer.name, layer.position, initial[layer.id])
                for layers in reference.positions for layer in layers]
    rows = [(row["layer"], row["name"], row["position"], _hex(row["initial"]))
            for row in database.execute(QUERIES["layers"])]
    for recorded, expected in zip(rows, computed):
        expect(f"layer {expected[1]} (id, name, position, initial weights)", recorded, expected)
    expect("number of layers", len(rows), len(computed))


def _compare_accesses(subnet, rows, level):
    for row, access in zip(rows, subnet.accesses):
        place = f"subnet {subnet.seq}, layer {access.name}"
        expect(f"{place}, layer id", row["layer"], access.layer)
        for column in ("read_seq", "base_seq"):
            expect(f"{place}, {column}", row[column], getattr(access, column))
        columns = {"losses": [], "weights": ["weights", "optimizer"],
                   "full": ["gradients", "weights", "optimizer"]}[level]
        for column in columns:
            expect(f"{place}, {column}", _hex(row[column]), getattr(access, column))
    expect(f"subnet {subnet.seq}, number of accesses", len(rows), len(subnet.accesses))


def _compare_activations(subnet, rows):
    for row, activation in zip(rows, subnet.activations):
        place = f"subnet {subnet.seq}, activation (position, micro-batch, digest)"
        expect(place, (row["position"], row["microbatch"], _hex(row["digest"])),
               (activation.position, activation.microbatch, activation.digest))
    expect(f"subnet {subnet.seq}, number of activations", len(rows), len(subnet.activations))


def _compare_subnet(reference, database, row):
    """Trains the subnet and compares it in causal order: inputs, forward, loss, update."""
    seq, level = row["seq"], reference.spec["record"]["level"]
    subnet = reference.train(seq)
    place = f"subnet {seq}"
    expect(f"{place}, choices", _numbers(row["choices"]), subnet.choices)
    expect(f"{place}, samples", _numbers(row["samples"]), subnet.samples)
    expect(f"{place}, batch digest", _hex(row["batch"]), subnet.batch)
    if level == "full":
        _compare_activations(subnet, database.execute(QUERIES["activations"], [seq]).fetchall())
    expect(f"{place}, loss bits", f"{row['loss'] & 0xFFFFFFFF:08x}", subnet.loss)
    _compare_accesses(subnet, database.execute(QUERIES["accesses"], [seq]).fetchall(), level)
    return len(subnet.accesses)


def _compare_evaluations(reference, database):
    for row in database.execute(QUERIES["evaluations"]):
        computed = reference.evaluate(row["number"])
        place = f"evaluated subnet {row['number']}"
        expect(f"{place}, choices", _numbers(row["choices"]), computed.choices)
        expect(f"{place} (correct, samples)", (row["correct"], row["samples"]),
               (computed.correct, computed.samples))


def compare(reference, path):
    """Prints the first difference, or that there is none; returns the exit code."""
    database = _open(path)
    try:
        _compare_layers(reference, database)
        accesses, subnets = 0, 0
        for seq, row in enumerate(database.execute(QUERIES["subnets"])):
            expect(f"subnet at place {seq}, seq", row["seq"], seq)
            accesses += _compare_subnet(reference, database, row)
            subnets += 1
        expect("number of subnets", subnets, reference.spec["training"]["subnets"])
        _compare_evaluations(reference, database)
    except Difference as difference:
        print(difference)
        return 1
    print(f"{subnets} subnets, {accesses} accesses: equal")
    return 0
