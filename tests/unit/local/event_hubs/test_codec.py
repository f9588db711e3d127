"""The AMQP type system against the specification's encodings, and against itself."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.event_hubs.codec import (
    Array,
    DecodeError,
    Described,
    Int,
    Raw,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    decode,
    encode,
    skip,
)

symbols = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=300).map(Symbol)
longs = st.integers(-(2**63), 2**63 - 1)
scalars = (
    st.none()
    | st.booleans()
    | longs
    | st.integers(0, 255).map(UByte)
    | st.integers(0, 2**16 - 1).map(UShort)
    | st.integers(0, 2**32 - 1).map(UInt)
    | st.integers(0, 2**64 - 1).map(ULong)
    | st.integers(-(2**31), 2**31 - 1).map(Int)
    | longs.map(Timestamp)
    | st.floats(allow_nan=False)
    | st.text(max_size=300)
    | symbols
    | st.binary(max_size=300)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(symbols, inner, max_size=5)
        | st.builds(Described, st.integers(0, 300).map(ULong), inner)
        | st.lists(st.text(max_size=9), max_size=4).map(Array)
    ),
    max_leaves=20,
)


@given(values)
def test_what_is_written_is_read_back(value: Any) -> None:
    encoded = encode(value)
    assert decode(encoded) == (value, len(encoded))


@given(values, st.binary(max_size=20))
def test_skipping_a_value_ends_where_reading_it_ends(value: Any, rest: bytes) -> None:
    encoded = encode(value)
    assert skip(encoded + rest, 0) == len(encoded)


@given(values, st.data())
def test_a_value_cut_short_is_refused(value: Any, data: st.DataObject) -> None:
    encoded = encode(value)
    length = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(DecodeError):
        decode(encoded[:length])


@given(st.binary(max_size=60))
def test_random_bytes_are_read_or_refused_and_nothing_else(garbage: bytes) -> None:
    for read in (decode, skip):
        try:
            read(garbage, 0)
        except DecodeError:
            continue


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (None, "40"),
        (True, "41"),
        (False, "42"),
        (UByte(7), "5007"),
        (UShort(258), "600102"),
        (UInt(1), "7000000001"),
        (ULong(0x10), "5310"),
        (ULong(256), "800000000000000100"),
        (Int(-1), "71ffffffff"),
        (-2, "81fffffffffffffffe"),
        (Timestamp(1), "830000000000000001"),
        ("ä", "a102c3a4"),
        (Symbol("a"), "a30161"),
        (b"\x00", "a00100"),
        ([], "c00100"),
        ({Symbol("k"): True}, "c10502a3016b41"),
        (Described(ULong(0x24), []), "005324c00100"),
        (Array(["0", "1"]), "f00000000f00000002b1000000013000000001" + "31"),
    ],
)
def test_a_value_has_the_encoding_that_the_specification_gives(value: Any, encoded: str) -> None:
    assert encode(value).hex() == encoded


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        ("43", 0),
        ("44", 0),
        ("45", []),
        ("52ff", 255),
        ("54ff", -1),
        ("55fe", -2),
        ("5601", True),
        ("c00301" + "a000", [b""]),
        ("d00000000500000001" + "41", [True]),
        ("e00402500102", Array([1, 2])),  # type: ignore[list-item]
        ("98" + uuid.UUID(int=5).hex, Raw(bytes.fromhex("98" + uuid.UUID(int=5).hex))),
        ("7300000041", Raw(bytes.fromhex("7300000041"))),
    ],
)
def test_the_forms_that_only_peers_write_are_read(encoded: str, value: Any) -> None:
    assert decode(bytes.fromhex(encoded)) == (value, len(encoded) // 2)


@pytest.mark.parametrize(
    "encoded",
    [
        "",
        "00",
        "00" * 5000,  # a descriptor of a descriptor of a descriptor
        "c0ff01",
        "f00000000500ffffff40",  # an array of sixteen million nulls in no bytes
        "c10301" + "4141",  # a key without a value
        "c10602" + "c00100" + "41" + "41",  # a list as a key
        "a301ff",
        "a1" + "02c328",
        "b4" + "00000000",
        "10",
        "d0ffffffff00000001",
    ],
)
def test_broken_values_are_refused(encoded: str) -> None:
    with pytest.raises(DecodeError):
        decode(bytes.fromhex(encoded))


def test_a_list_nested_deeper_than_anybody_needs_is_refused() -> None:
    nested = b"\x45"
    for _ in range(5000):
        nested = b"\xd0" + (len(nested) + 4).to_bytes(4, "big") + b"\0\0\0\1" + nested
    with pytest.raises(DecodeError):
        decode(nested)


def test_a_value_of_no_amqp_type_is_not_written() -> None:
    with pytest.raises(TypeError, match="no AMQP encoding is defined for complex"):
        encode(1j)
