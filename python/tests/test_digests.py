"""Digests are those of docs/format.md whatever a tensor's device, strides and class."""

from __future__ import annotations

import struct

import pytest
import torch
import xxhash
from training import random_tensors

import verbatim
from verbatim import _native
from verbatim.digests import _STAGING_BYTES, Digester, _Staging, dtype_name, flatten

NUMBERS = {
    name: number
    for number, name in enumerate(
        "float32 float64 float16 bfloat16 int64 int32 uint8 bool int8 int16 uint16 uint32 uint64 "
        "complex32 complex64 complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz "
        "float8_e8m0fnu".split(),
        start=1,
    )
}


# Of shape (2, 3), elements the bytes 0, 1, 2, …: tests/recorder/dtype_digests.h has the same.
PINNED = {
    "float32": "02192f48d5437fb970b79376458574e8",
    "float64": "bc7802acf003d76ddab0e8bc85c86572",
    "float16": "a3f35a29ce40b76a6e739c04a9f1b126",
    "bfloat16": "fe339897c5afbe874749df315fa435a3",
    "int64": "c97280aa48884e532702238b9b1710be",
    "int32": "14b3ffdf8d342a714a4b777d419ab58c",
    "uint8": "58f99cb413ef5ac5c38906094d30e440",
    "bool": "1119a3c25bd250d9dca9cb08208311a9",
    "int8": "670b052dae6ad806b0f18f4bc57c6f2e",
    "int16": "c0810aa3bd1d3c45497e05971002d591",
    "uint16": "7180b6565b8b24c10cbde59ad7c22a2d",
    "uint32": "274b423d59949d273bc248a16ce90252",
    "uint64": "ab94d5eea0eb68eb5cd17daf54bcabf0",
    "complex32": "cfbc2ab3157ecf053ce6ed51647056f3",
    "complex64": "df918d8b9ba44ecd86d570ff5d6c0a87",
    "complex128": "c808c82ba648b3249fc47c02b2f08cdb",
    "float8_e4m3fn": "9d4191f9604d7ac49efd2cd174948ccd",
    "float8_e5m2": "a22d05bc4227d9db6cf34244a6965407",
    "float8_e4m3fnuz": "78c1768cbe5dab66c7a89041bfe56e1f",
    "float8_e5m2fnuz": "3c0e15f4462393267eb3642e47fc6a4f",
    "float8_e8m0fnu": "8eeb1b7c266bf239f660198381fd7927",
}


def by_the_page(tensor: torch.Tensor) -> bytes:
    """The page's definition, written out a second time."""
    data = bytes(tensor.contiguous().reshape(-1).view(torch.uint8).tolist())
    message = struct.pack("<II", NUMBERS[dtype_name(tensor.dtype)], tensor.dim())
    message += struct.pack(f"<{tensor.dim()}Q", *tensor.shape)
    for begin in range(0, len(data), 65536):
        message += xxhash.xxh3_128_digest(data[begin : begin + 65536])
    return xxhash.xxh3_128_digest(message)


def digest(tensor: torch.Tensor) -> bytes:
    return Digester(threads=2).tensors([("it", tensor)])[0]


def test_literals_of_the_format_page() -> None:
    matrix = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    scalar = torch.tensor(0.5)
    assert digest(matrix).hex() == "00b9fc53f768a0c78b6e0c1057622687"
    assert digest(scalar).hex() == "8c628ad6f47d57679201c1a0e3a9202a"
    assert digest(torch.empty(0, dtype=torch.int64)).hex() == "f6609a823f14cd9f882f8b8e7a36998b"
    ramp = (torch.arange(100000) % 251).to(torch.uint8)
    assert digest(ramp).hex() == "6084219344dc82abfb9d9f99a3b959d5"
    named = Digester().named([[("weight", matrix), ("bias", scalar)]])
    assert named[0].hex() == "17b23826e04c246f505078ed3498088c"


def test_every_element_type_is_pinned() -> None:
    assert list(PINNED) == list(NUMBERS)
    for name, pinned in PINNED.items():
        if hasattr(torch, name):
            dtype = getattr(torch, name)
            raw = torch.arange(6 * dtype.itemsize, dtype=torch.uint8)
            assert digest(raw.view(dtype).reshape(2, 3)).hex() == pinned, name


def test_every_element_type_has_the_number_of_the_page() -> None:
    assert _native.dtype_names() == list(NUMBERS)
    for name in NUMBERS:
        if hasattr(torch, name):
            raw = (torch.arange(96) % 2).to(torch.uint8)
            tensor = raw.view(getattr(torch, name)).reshape(2, -1)
            assert digest(tensor) == by_the_page(tensor), name


def test_large_tensors_are_cut_into_pieces_for_threads() -> None:
    tensors = [torch.randn(size) for size in (0, 1, 1_100_000, 16384, 3_000_001)]
    one = Digester(threads=1).tensors([("it", tensor) for tensor in tensors])
    many = Digester(threads=7).tensors([("it", tensor) for tensor in tensors])
    assert one == many
    assert one[3] == by_the_page(tensors[3])


def test_strides_and_views_do_not_matter() -> None:
    base = torch.randn(4, 6, 5)
    images = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    views = [
        base.transpose(0, 2),
        base[1:3, ::2],
        base[0, 0],
        base[:, 3:4].expand(4, 9, 5),
        base.flip(0),
        images,
        torch.view_as_complex(torch.randn(3, 2)).conj(),
        torch.view_as_complex(torch.randn(3, 2)).conj().imag,
    ]
    for view in views:
        assert digest(view) == by_the_page(view.resolve_conj().resolve_neg())
        assert digest(view) == digest(view.clone(memory_format=torch.contiguous_format))


@pytest.mark.parametrize("seed", range(20))
def test_random_tensors(seed: int) -> None:
    tensors = list(random_tensors(seed, 20))
    found = Digester(threads=3).tensors([("it", tensor) for tensor in tensors])
    assert found == [by_the_page(tensor) for tensor in tensors], f"seed {seed}"


def test_staging_changes_no_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """As tensors of a CUDA device are brought to the host, here with those of the CPU."""
    tensors = [*random_tensors(3, 50), torch.randn(5000), torch.randn(70000), torch.randn(30)]
    tensors += [torch.zeros(3, dtype=getattr(torch, n)) for n in NUMBERS if hasattr(torch, n)]
    expected = Digester().tensors([("it", tensor) for tensor in tensors])
    monkeypatch.setattr(_Staging, "_is_staged", lambda self, tensor: tensor.numel() > 0)
    for capacity in (64, 4096, 100_000, _STAGING_BYTES):
        monkeypatch.setattr("verbatim.digests._STAGING_BYTES", capacity)
        assert Digester().tensors([("it", tensor) for tensor in tensors]) == expected, capacity


def test_sparse_tensors_have_the_digest_of_their_parts() -> None:
    dense = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    sparse = dense.to_sparse()
    shape = ("shape", torch.tensor([2, 2]))
    parts = [shape, ("indices", sparse.indices()), ("values", sparse.values())]
    assert digest(sparse) == Digester().named([parts])[0]
    uncoalesced = torch.sparse_coo_tensor([[0, 1, 1], [1, 0, 0]], [2.0, 1.0, 2.0], (2, 2))
    assert digest(uncoalesced) == digest(sparse)
    larger = torch.sparse_coo_tensor(sparse.indices(), sparse.values(), (2, 3))
    assert digest(larger) != digest(sparse)
    assert digest(dense.to_sparse_csr()) != digest(sparse)


def test_what_has_no_values_is_refused_by_name() -> None:
    with pytest.raises(verbatim.UsageError, match="it is on the meta device"):
        digest(torch.empty(3, device="meta"))
    with pytest.raises(verbatim.UsageError, match="it has no shape yet: its module is lazy"):
        digest(torch.nn.LazyLinear(3).weight)
    with pytest.raises(verbatim.UsageError, match="it has element type qint8"):
        digest(torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8))
    freed = torch.ones(4)
    freed.untyped_storage().resize_(0)
    with pytest.raises(verbatim.UsageError, match="it has no memory of its own"):
        digest(freed)


def test_native_refuses_what_fits_no_tensor() -> None:
    for described in [(0, 4, "float32", (1,)), (64, 3, "float32", (1,)), (64, 4, "float33", (1,)),
                      (64, 4, "float32", (-1,))]:
        with pytest.raises(verbatim.UsageError):
            _native.digest_tensors([described], 1)
    with pytest.raises(verbatim.UsageError, match="16 bytes, not 2"):
        _native.named_digest([("a", b"ab")])


def test_nested_values_are_named_by_the_way_to_them() -> None:
    numpy = pytest.importorskip("numpy")
    value = {
        "ids": [1, 2, 3],
        "mixed": [1, 2.5, None, True],
        "text": "ä",
        "array": numpy.arange(4, dtype=">i2").reshape(2, 2),
        "deep": ({"x": torch.ones(2)}, b"\x01"),
        "large": 2**70,
        "none": None,
        "empty": [],
    }
    named = dict(flatten(value, "batch"))
    assert list(named) == [
        "batch.ids", "batch.mixed.0", "batch.mixed.1", "batch.mixed.3", "batch.text", "batch.array",
        "batch.deep.0.x", "batch.deep.1", "batch.large",
    ]
    assert named["batch.ids"].dtype == torch.int64
    assert named["batch.mixed.1"].dtype == torch.float64
    assert bytes(named["batch.text"].tolist()) == "ä".encode()
    assert named["batch.array"].tolist() == [[0, 1], [2, 3]]
    with pytest.raises(verbatim.UsageError, match=r"batch\.a\.1 is a builtins\.set"):
        list(flatten({"a": [torch.ones(1), {1}]}, "batch"))
