from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.event_hubs import codec
from local.event_hubs.codec import Array, Int, Raw, Symbol, Timestamp, UByte, ULong, UShort, decode, encode, skip
from local.event_hubs.sections import items

WRITTEN: dict[str, Any] = {  # the encodings that the specification gives
    "5007": UByte(7),
    "600102": UShort(258),
    "800000000000000100": ULong(256),
    "71ffffffff": Int(-1),
    "81fffffffffffffffe": -2,
    "830000000000000001": Timestamp(1),
    "c10502a3016b41": {Symbol("k"): True},
    "005324c00100": codec.Described(ULong(0x24), []),
    "f00000000f00000002b100000001300000000131": Array(["0", "1"]),
}
READ: dict[str, Any] = {  # the forms that only peers write
    "45": [],
    "52ff": 255,
    "54ff": -1,
    "5601": True,
    "c00301a000": [b""],
    "d0000000050000000141": [True],
    "e00402500102": Array([1, 2]),  # type: ignore[list-item]
    "98" + "00" * 15 + "05": Raw(bytes.fromhex("98" + "00" * 15 + "05")),  # a uuid
    "7300000041": Raw(bytes.fromhex("7300000041")),  # a char
}
symbols = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=300).map(Symbol)
longs = st.integers(-(2**63), 2**63 - 1)
scalars = st.one_of(
    st.none() | st.booleans() | longs | longs.map(Timestamp) | st.integers(-(2**31), 2**31 - 1).map(Int),
    *(
        st.integers(0, 2**bits - 1).map(kind)
        for kind, bits in ((UByte, 8), (UShort, 16), (codec.UInt, 32), (ULong, 64))
    ),
    st.floats(allow_nan=False) | st.text(max_size=300) | symbols | st.binary(max_size=300),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(symbols, inner, max_size=5)
        | st.builds(codec.Described, st.integers(0, 300).map(ULong), inner)
        | st.lists(st.text(max_size=9), max_size=4).map(Array)
    ),
    max_leaves=20,
)


@pytest.mark.slow
@given(values, st.binary(max_size=20), st.data())
def test_a_value_is_read_and_skipped_as_it_was_written(value: Any, rest: bytes, data: st.DataObject) -> None:
    encoded = encode(value)
    assert decode(encoded) == (value, len(encoded))
    assert skip(encoded + rest, 0) == len(encoded)
    with pytest.raises(codec.DecodeError):
        decode(encoded[: data.draw(st.integers(0, len(encoded) - 1))])


@given(st.binary(max_size=60))
def test_random_bytes_are_read_or_refused_and_nothing_else(garbage: bytes) -> None:
    for read in (decode, skip, items):
        try:
            read(garbage, 0)
        except codec.DecodeError:
            continue


def test_a_value_has_the_encoding_of_the_specification_and_the_forms_that_only_peers_write_are_read() -> None:
    assert [encode(value).hex() for value in WRITTEN.values()] == list(WRITTEN)
    with pytest.raises(TypeError, match="no AMQP encoding is defined for complex"):
        encode(1j)
    found = {encoded: decode(bytes.fromhex(encoded)) for encoded in READ}
    assert found == {encoded: (value, len(encoded) // 2) for encoded, value in READ.items()}
