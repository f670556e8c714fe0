"""The packed column `accesses` of a record (docs/format.md, "Packed columns"), taken apart and put
together again: an implementation of its own, so that it can disagree with the program's."""

import sqlite3
import struct

DIGESTS = ("weights", "optimizer_state", "gradients")
BASE, FIRST_DIGEST, WIDE = 1, 2, 16


def unpack_accesses(seq, packed):
    """A list of dictionaries, by ascending layer."""
    flags = packed[0]
    distance = "q" if flags & WIDE else "i"
    digests = [name for i, name in enumerate(DIGESTS) if flags & FIRST_DIGEST << i]
    item = struct.Struct(f"<3sHB{distance}{distance if flags & BASE else ''}{'16s' * len(digests)}")
    accesses = []
    for layer, stage, present, read, *rest in item.iter_unpack(packed[1:]):
        base = rest.pop(0) if flags & BASE else read
        access = {"layer": int.from_bytes(layer, "little"), "stage": stage, "read_seq": seq - read,
                  "base_seq": seq - base, **dict.fromkeys(DIGESTS)}
        for name, digest in zip(digests, rest):
            if present & 1 << DIGESTS.index(name):
                access[name] = digest
        accesses.append(access)
    return accesses


def pack_accesses(seq, accesses):
    distances = [seq - access[name] for access in accesses for name in ("read_seq", "base_seq")]
    columns = [name for name in DIGESTS if any(access[name] is not None for access in accesses)]
    has_base = any(access["read_seq"] != access["base_seq"] for access in accesses)
    is_wide = any(not -2**31 <= distance < 2**31 for distance in distances)
    flags = has_base * BASE + is_wide * WIDE + sum(
        FIRST_DIGEST << DIGESTS.index(name) for name in columns)
    packed = bytes([flags])
    for access in sorted(accesses, key=lambda access: access["layer"]):
        present = sum(1 << i for i, name in enumerate(DIGESTS) if access[name] is not None)
        versions = ("read_seq", "base_seq") if has_base else ("read_seq",)
        packed += access["layer"].to_bytes(3, "little")
        packed += struct.pack("<HB", access["stage"], present)
        packed += b"".join(struct.pack("<q" if is_wide else "<i", seq - access[name])
                           for name in versions)
        packed += b"".join(access[name] or bytes(16) for name in columns)
    return packed


def edit_accesses(record, seq, edit):
    """`edit` changes the list of subnet `seq`'s accesses; only their column is written."""
    database = sqlite3.connect(record)
    try:
        with database:
            (packed,) = database.execute("SELECT accesses FROM subnets WHERE seq = ?",
                                         (seq,)).fetchone()
            accesses = unpack_accesses(seq, packed)
            edit(accesses)
            database.execute("UPDATE subnets SET accesses = ? WHERE seq = ?",
                             (pack_accesses(seq, accesses), seq))
    finally:
        database.close()


def edit_access(record, seq, access_layer, **changes):
    """Changes one access: columns by name, `layer` too."""
    def edit(accesses):
        (access,) = [access for access in accesses if access["layer"] == access_layer]
        access.update(changes)
    edit_accesses(record, seq, edit)


def delete_access(record, seq, layer):
    def edit(accesses):
        accesses[:] = [access for access in accesses if access["layer"] != layer]
    edit_accesses(record, seq, edit)
