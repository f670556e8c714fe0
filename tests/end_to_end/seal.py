"""Writes leaves, tree nodes and seals anew, so that a changed record agrees with itself again: what a
run that computed other numbers would have left, and what a forger who knows the format would do. The
bytes are those of docs/format.md, "Trees" and "Seals"."""

import hashlib
import json
import sqlite3
import struct

from packed import DIGESTS, unpack_accesses

LOWEST_STORED_LEVEL = 4


def blake2b(content):
    return hashlib.blake2b(content, digest_size=32).digest()


def leaf_hash(content):
    return blake2b(b"\x00" + content)


def node_hash(left, right):
    return blake2b(b"\x01" + left + right)


def _u32(number):
    return struct.pack("<I", number)


def _i64(*numbers):
    return struct.pack(f"<{len(numbers)}q", *numbers)


def _text(text):
    content = text.encode()
    return _u32(len(content)) + content


def _numbers(values):
    return struct.pack(f"<I{len(values)}I", len(values), *values)


def _access(access):
    digests = [access[name] for name in DIGESTS]
    present = sum(1 << i for i, digest in enumerate(digests) if digest is not None)
    return struct.pack("<IqqB", access["layer"], access["read_seq"], access["base_seq"],
                       present) + b"".join(digest for digest in digests if digest is not None)


def _rows(database, sql, *parameters):
    return database.execute(sql, parameters).fetchall()


def content_of(database, seq):
    """Canonical bytes of one subnet's content."""
    choices, samples, batch_digest, loss_bits, packed = _rows(
        database, "SELECT choices, samples, batch_digest, loss_bits, accesses FROM subnets "
                  "WHERE seq = ?", seq)[0]
    accesses = unpack_accesses(seq, packed)
    activations = _rows(database, "SELECT microbatch, position, digest FROM activations "
                                  "WHERE seq = ? ORDER BY microbatch, position", seq)
    return b"".join((
        _i64(seq), _numbers(json.loads(choices)),
        _numbers(struct.unpack(f"<{len(samples) // 4}I", samples)), batch_digest,
        _u32(loss_bits), _u32(len(accesses)), *map(_access, accesses), _u32(len(activations)),
        *(struct.pack("<II", *row[:2]) + row[2] for row in activations)))


def layout_of(database, seq):
    """Canonical bytes of its stages and tasks."""
    (packed,) = _rows(database, "SELECT accesses FROM subnets WHERE seq = ?", seq)[0]
    stages = [access["stage"] for access in unpack_accesses(seq, packed)]
    tasks = _rows(database, "SELECT stage, microbatch, phase, begin_ns, begin_ns + duration_ns "
                            "FROM activity WHERE seq = ? ORDER BY 1, 2, 3, 4", seq)
    return b"".join((_i64(seq), _numbers(stages), _u32(len(tasks)),
                     *(struct.pack("<IIBqq", *task) for task in tasks)))


def start_seal(database):
    spec, planned, data = _rows(
        database, "SELECT spec_json, subnets_planned, dataset_digest FROM run")[0]
    layers = _rows(database, "SELECT layer, name, position, candidate, op, versioned, "
                             "initial_digest FROM layers ORDER BY layer")
    return blake2b(b"".join((
        _text("verbatim.seal.start.1"), _text(spec), _i64(planned), data, _u32(len(layers)),
        *(_u32(layer) + _text(name) + struct.pack("<II", position, candidate) + _text(op)
          + bytes([versioned]) + initial
          for layer, name, position, candidate, op, versioned, initial in layers))))


def circumstances_seal(database):
    *texts, stages, in_flight, partition, started = _rows(
        database, "SELECT tool_version, spec_folder, command_line, policy, record_level, device, "
                  "stages, in_flight, partition, started_utc FROM run")[0]
    environment = _rows(database, "SELECT key, value FROM environment ORDER BY key")
    resumptions = _rows(database, "SELECT resumption, tool_version, command_line, policy, device, "
                                  "stages, in_flight, partition, cut, started_utc, facts_json "
                                  "FROM resumptions ORDER BY resumption")
    encoded = [b"".join(_text(value) if isinstance(value, str) else _i64(value) for value in row)
               for row in resumptions]
    return blake2b(b"".join((
        _text("verbatim.seal.circumstances.1"), *map(_text, texts), _i64(stages, in_flight),
        _text(partition), _text(started), _u32(len(environment)),
        *(_text(key) + _text(value) for key, value in environment), _u32(len(encoded)),
        *encoded)))


def end_seal(database):
    status, detail, ended = _rows(
        database, "SELECT status, status_detail, coalesce(ended_utc, '') FROM run")[0]
    evaluations = _rows(database, "SELECT evaluation, choices, correct, total FROM evaluations "
                                  "ORDER BY evaluation")
    return blake2b(b"".join((
        _text("verbatim.seal.end.1"), _text(status), _text(detail), _text(ended),
        _u32(len(evaluations)),
        *(_i64(index) + _numbers(json.loads(choices)) + _i64(correct, total)
          for index, choices, correct, total in evaluations))))


def checkpoint_seal(cut, created, manifest):
    return blake2b(_text("verbatim.seal.checkpoint.1") + _i64(cut) + _text(created)
                   + _u32(len(manifest) // 40) + manifest)


def _seal_subnets(database):
    leaves = {}
    for (seq,) in _rows(database, "SELECT seq FROM subnets"):
        leaves[seq] = (leaf_hash(content_of(database, seq)), leaf_hash(layout_of(database, seq)))
        database.execute("UPDATE subnets SET content_leaf = ?, layout_leaf = ? WHERE seq = ?",
                         (*leaves[seq], seq))
    return leaves


def _seal_trees(database, leaves):
    database.execute("DELETE FROM tree")
    nodes, level = [], 0
    while len(nodes) in leaves:
        nodes.append(leaves[len(nodes)])
    while len(nodes) > 1:
        nodes = [tuple(map(node_hash, left, right)) for left, right in zip(nodes[::2], nodes[1::2])]
        level += 1
        if level >= LOWEST_STORED_LEVEL:
            database.executemany("INSERT INTO tree VALUES (?, ?, ?)",
                                 ((level << 48 | index, *node) for index, node in enumerate(nodes)))


def seal(record):
    """All of it."""
    database = sqlite3.connect(record)
    try:
        with database:
            _seal_trees(database, _seal_subnets(database))
            for part, value in (("start", start_seal(database)), ("end", end_seal(database)),
                                ("circumstances", circumstances_seal(database))):
                database.execute("INSERT OR REPLACE INTO seals VALUES (?, ?)", (part, value))
            for row in _rows(database, "SELECT cut, created_utc, manifest FROM checkpoints"):
                database.execute("UPDATE checkpoints SET seal = ? WHERE cut = ?",
                                 (checkpoint_seal(*row), row[0]))
    finally:
        database.close()
