import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from core.errors import PoisonEvent
from core.model import property_values
from core.model.events import SequenceNumber, Span
from core.model.property_values import EXACT, MOST_NESTED, Described, Unread, decode_properties, encode_properties
from tests.fakes.builders import claim, commit, event, hold, letter, partition, settled
from tests.fakes.kept import Engine
from tests.fakes.store import Store

TEXTS = st.text(st.characters(exclude_categories=()), max_size=10)  # with NUL, with lone surrogates
TAGS = st.sampled_from(["$binary", "$map", "$flat", "$double", "$described", "$amqp", "$json", "$", "$other"])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.floats()
    | TEXTS
    | st.binary(max_size=10)
    | st.uuids()
    | st.decimals(allow_nan=False)
    | st.datetimes(timezones=st.just(UTC))
)
KEYS = TEXTS | TAGS
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.dictionaries(st.integers(2, 9) | st.binary(max_size=3) | TEXTS, inner, max_size=3)
        | st.builds(Described, TEXTS | st.integers(0, 2**64 - 1), inner)
    ),
    max_leaves=8,
)
PROPERTIES = st.dictionaries(KEYS, VALUES, max_size=4)
ACCESSES: list[Callable[[Any], object]] = [lambda found: found["a"], list, lambda found: found.get("a"), bool]
LARGE = {f"name-{number}": "x\x00\ud800👩" * 100 for number in range(1_000)}


def told_apart(value: Any) -> Any:
    """A value that differs from every other one in kind or content: NaN equals itself here, and 1 is not 1.0."""
    if isinstance(value, dict):
        return [(told_apart(name), told_apart(each)) for name, each in value.items()]
    if isinstance(value, list):
        return [told_apart(each) for each in value]
    if isinstance(value, Described):
        return Described, told_apart(value.descriptor), told_apart(value.value)
    return type(value), str(value) if isinstance(value, float | Decimal) else value


def nested(depth: int, inner: object) -> object:
    value = inner
    for level in range(depth):
        value = [[value], {"level": value}, Described("level", value)][level % 3]
        value = value if not isinstance(value, list) else [1, *value]
    return value


def inner_of(value: Any) -> Any:
    if isinstance(value, Described):
        return value.value
    return value[1] if isinstance(value, list) else value["level"]


def levels(found: Any) -> int:
    """The depth of JSON."""
    deepest, layer = 0, [found]
    while layer:
        deepest += 1
        layer = [
            one
            for each in layer
            for one in (each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
        ]
    return deepest


@given(PROPERTIES)
@example({"$binary": "AA=="})
@example({"one": {"$map": [["a", 1]]}})
@example({"a": float("nan"), "b": float("inf"), "c": float("-inf"), "d": -0.0, "e": 1.0, "f": 1})
@example({"a": EXACT, "b": EXACT + 1, "c": -EXACT - 1, "d": 2**64 - 1})
@example({"$amqp": "AA=="})
@example(LARGE)
def test_properties_come_back_equal(properties: dict[str, object]) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    def exactly(digits: str) -> int:
        assert abs(int(digits)) <= EXACT
        return int(digits)

    text = encode_properties(properties)
    assert told_apart(decode_properties(text)) == told_apart(properties)
    assert text.isascii()
    found = json.loads(text, parse_constant=refuse, parse_int=exactly)
    assert isinstance(found, dict)
    json.dumps(found, ensure_ascii=False).encode()  # no lone surrogate


@pytest.mark.parametrize("depth", [1, MOST_NESTED - 2, MOST_NESTED, MOST_NESTED + 3, 5_000])
def test_nesting_of_any_depth_comes_back_and_is_written_in_few_levels(depth: int) -> None:
    properties = {"deep": nested(depth, float("nan"))}
    text = encode_properties(properties)
    assert levels(json.loads(text)) <= 2 * MOST_NESTED + 8
    found: Any = decode_properties(text)["deep"]
    for level in reversed(range(depth)):
        assert type(found) is (list, dict, Described)[level % 3]
        found = inner_of(found)
    assert str(found) == "nan"


@given(st.datetimes(timezones=st.integers(-720, 720).map(lambda minutes: timezone(timedelta(minutes=minutes)))))
@example(datetime.fromisoformat("2026-01-01T00:00:00.123456+05:30"))
def test_a_time_comes_back_as_the_same_instant_in_utc(moment: datetime) -> None:
    try:
        moment.astimezone(UTC)
    except OverflowError:
        return
    assert property_values.from_json(property_values.to_json(moment)) == moment


def test_properties_of_older_letters_are_read_as_they_were_written_and_a_broken_tag_stays_an_object() -> None:
    for text in ('{"a": NaN, "b": -Infinity, "c": 9007199254740993}', '{"$other": 1}', "{}"):
        assert told_apart(decode_properties(text)) == told_apart(json.loads(text))
    shown = property_values.shown_properties('{"a": NaN, "b": 9007199254740993}')
    assert shown == ({"a": {"$double": "NaN"}, "b": {"$integer": "9007199254740993"}}, {})
    broken = [
        {"$binary": "-"},
        {"$decimal": "x"},
        {"$flat": []},
        {"$flat": [["list", 2]]},
        {"$map": 5},
        {"$uuid": None},
    ]
    for tag in broken:
        assert decode_properties(json.dumps({"a": tag, "b": 1})) == {"a": tag, "b": 1}


NO_OBJECTS = ["", "x", "null", "1", "[1]", '"a"', "[" * 100_000, '{"a":' * 5_000 + "1" + "}" * 5_000, '{"a": 1} {}']


def test_properties_that_nobody_could_read_are_kept_and_refuse_every_access() -> None:
    for unread in (Unread("amqp", "AA=="), Unread("json", '{"a": [')):
        found = decode_properties(encode_properties(unread))
        assert found == unread
        assert property_values.shown_properties(encode_properties(unread))[0] == {f"${unread.form}": unread.content}
        for access in ACCESSES:
            with pytest.raises(PoisonEvent):
                access(found)
    for text in NO_OBJECTS:  # which somebody made of properties
        assert decode_properties(text) == Unread("json", text)
        assert property_values.shown_properties(text)[0] == {"$json": text}


def test_a_body_is_json_in_utf_8() -> None:
    assert (
        property_values.encode_body([1, "ß", b"\x00", {"a": None}]) == '[1,"ß",{"$binary":"AA=="},{"a":null}]'.encode()
    )


P = partition()
DEEP: list[Any] = []
for _ in range(1_000):
    DEEP = [DEEP]
GIVEN: dict[str, Mapping[str, object]] = {
    "numbers": {"long": 2**63 - 1, "least": -(2**63), "ulong": 2**64 - 1, "double": 0.1, "whole": 1.0, "zero": -0.0},
    "not finite": {"nan": float("nan"), "up": float("inf"), "down": float("-inf")},
    "decimals": {"exact": Decimal("1.10"), "large": Decimal("9" * 34), "nan": Decimal("NaN")},
    "bytes": {"empty": b"", "all": bytes(range(256))},
    "others": {"id": UUID(int=7), "at": datetime(2026, 1, 1, 0, 0, 0, 123_000, UTC), "none": None, "yes": True},
    "nested": {"map": {"a": [1, b"\x00", {1: "one"}]}, "described": Described("symbol", [Described(7, b"x")])},
    "like tags": {"$binary": "AA=="},
    "texts": {"NUL\x00": "\x00", "lone \ud800": "\udfff", "👩‍👩‍👧": "'; --\"\\"},
    "a thousand levels": {"deep": DEEP},
    "1 MB": {f"name-{number}": "x" * 1_000 for number in range(1_000)},
    "none that could be read": Unread("amqp", "AA=="),
}


def shown(properties: Mapping[str, object]) -> object:
    """A value that equals only values of its type. NaN equals NaN."""
    if isinstance(properties, Unread):
        return properties
    return depth(properties["deep"]) if "deep" in properties else repr(properties)


def depth(value: Any) -> int:
    found = 0
    while value:
        ((value,), found) = (value, found + 1)
    return found


@pytest.mark.parametrize("case", GIVEN)
def test_a_retry_gets_the_properties_of_the_letter(store: Store, engine: Engine, case: str) -> None:
    given = structs.replace(event(0), properties=GIVEN[case])
    store.commit_batch(commit(store.read_partition(P), 0, 0, settled({}, letters=[letter(given)])))
    store.claim_letters(claim("claim-1"))
    (found,) = store.begin_chunk(hold(store, [0], "claim-1"), "run-1")
    assert shown(found.event.properties) == shown(GIVEN[case])
    store.commit_batch(commit(store.read_partition(P), 1, 1))
    state = store.read_partition(P)
    engine.stage(state, [structs.replace(event(1), properties=GIVEN[case])])
    (staged,) = store.read_kept_events(state, Span(SequenceNumber(1), SequenceNumber(1)), 9)
    assert shown(staged.properties) == shown(GIVEN[case])
