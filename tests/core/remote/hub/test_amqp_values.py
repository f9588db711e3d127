from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.property_values import MOST_NESTED, Described
from core.remote.hub.amqp_values import NotReadable, Single, end_of, read_value
from local.event_hubs.codec import Float, encode

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ARRAY_OF_DESCRIBED = "e0 0f 02 00 a3 01 74 b0 00000001 61 00000000"
VALUES = {
    "null": ("40", None),
    "true": ("41", True),
    "false": ("56 00", False),
    "ubyte": ("50 ff", 255),
    "ushort": ("60 ffff", 2**16 - 1),
    "uint": ("70 ffffffff", 2**32 - 1),
    "uint of no bytes": ("43", 0),
    "ulong": ("80 ffffffffffffffff", 2**64 - 1),
    "byte": ("51 80", -128),
    "short": ("61 8000", -(2**15)),
    "int": ("71 80000000", -(2**31)),
    "int of one byte": ("54 ff", -1),
    "long": ("81 8000000000000000", -(2**63)),
    "long above 2^53": ("81 0020000000000001", 2**53 + 1),
    "float": ("72 3dcccccd", 0.10000000149011612),
    "double": ("82 3fb999999999999a", 0.1),
    "decimal32": ("74 3180006e", Decimal("1.10")),
    "largest decimal32": ("74 77f8967f", Decimal("9999999E90")),
    "decimal64": ("84 b1c0000000000001", Decimal(-1)),
    "decimal128": ("94 3040 0000000000000000 00000000000a", Decimal(10)),
    "34 digits": ("94 3041 ed09bead87c0378d8e63ffffffff", Decimal("9" * 34)),
    "decimal of .NET's writer": ("94 0c3c 0000000000000000 00000000 04ce", Decimal("12.30")),
    "negative decimal of .NET's writer": ("94 8c08 0000000000000000 00000000 0001", Decimal("-1E-28")),
    "decimal that is smaller than those": ("94 0c06 0000000000000000 00000000 0001", Decimal("1E-4637")),
    "infinity": ("84 7800000000000000", Decimal("Infinity")),
    "minus infinity": ("74 f8000000", Decimal("-Infinity")),
    "char": ("73 0001f469", "👩"),
    "timestamp": ("83 0000019b76daa87b", datetime(2026, 1, 1, 0, 0, 0, 123_000, UTC)),
    "timestamp before 1970": ("83 ffffffffffffffff", EPOCH - timedelta(milliseconds=1)),
    "timestamp after the last year": ("83 7fffffffffffffff", 2**63 - 1),
    "uuid": ("98 000102030405060708090a0b0c0d0e0f", UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")),
    "binary": ("a0 03 00ff61", b"\x00\xffa"),
    "binary of four bytes of length": ("b0 00000001 00", b"\x00"),
    "string": ("a1 02 c39f", "ß"),
    "string that is not UTF-8": ("a1 01 ff", b"\xff"),
    "symbol": ("a3 01 61", "a"),
    "symbol that is not ASCII": ("a3 02 c39f", b"\xc3\x9f"),
    "empty list": ("45", []),
    "list": ("c0 04 02 54 01 40", [1, None]),
    "map with equal keys": ("c1 0b 04 a1 01 61 54 01 a1 01 61 54 02", {"a": 2}),
    "map": ("c1 06 02 a1 01 61 54 01", {"a": 1}),
    "array": ("e0 04 02 54 01 02", [1, 2]),
    "array of described values": (ARRAY_OF_DESCRIBED, [Described("t", b"a"), Described("t", b"")]),
    "empty array": ("e0 02 00 54", []),
    "described": ("00 a3 01 74 00 53 07 40", Described("t", Described(7, None))),
}


@pytest.mark.parametrize("case", VALUES)
def test_a_value_is_read_whole(case: str) -> None:
    written, expected = VALUES[case]
    raw = bytes.fromhex(written)
    found, end = read_value(b"\x00" + raw + b"\x40", 1)
    assert (found, end, end_of(raw, 0)) == (expected, len(raw) + 1, len(raw))
    assert isinstance(found, type(expected))
    assert str(found) == str(expected)  # tells 1.10 from 1.1


def test_numbers_that_are_not_finite_are_read_and_a_float_of_four_bytes_is_marked() -> None:
    written = ("72 7fc00000", "72 ff800000", "82 7ff8000000000000", "82 7ff0000000000000", "94 7c" + "00" * 15)
    assert [str(read_value(bytes.fromhex(each))[0]) for each in written] == ["nan", "-inf", "nan", "inf", "NaN"]
    assert isinstance(read_value(encode(Float(0.5)))[0], Single)


@given(st.binary(max_size=60), st.sampled_from([*range(0x40, 0x60), 0, 0xC0, 0xC1, 0xD1, 0xE0, 0xF0, 0x73, 0x94]))
def test_bytes_of_any_kind_are_read_or_refused(raw: bytes, code: int) -> None:
    with suppress(NotReadable):
        read_value(bytes((code,)) + raw)


def nested(levels: int) -> bytes:
    raw = b"\x40"
    for _ in range(levels):
        raw = b"\xd0" + (len(raw) + 4).to_bytes(4) + b"\x00\x00\x00\x01" + raw
    return raw


def test_nesting_is_read_down_to_a_limit_and_skipped_at_any_depth() -> None:
    assert read_value(nested(MOST_NESTED))[1] == len(nested(MOST_NESTED))
    for raw in (nested(MOST_NESTED + 1), nested(5_000), b"\x00" * 5_000 + b"\x40" * 5_001):
        assert end_of(raw, 0) == len(raw)
        with pytest.raises(NotReadable):
            read_value(raw)


def test_a_map_with_keys_that_are_equal_in_python_and_broken_values_are_refused() -> None:
    for written in ("c1 05 04 41 40 54 01", "f0 00000006 ffffffff 40", "c1 04 01 a1 01 61", "c0", "99"):
        with pytest.raises(NotReadable):
            read_value(bytes.fromhex(written))
