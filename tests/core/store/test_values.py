"""Whatever values a commit carries: every engine gives them back equal, or refuses the commit whole."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from core.errors import DataRefused
from core.model.commits import DeadLetter
from core.model.property_values import decode_properties
from core.model.rows import ReferenceKey, Row
from examples.home_security.transform import Home, SensorReading
from tests.fakes.builders import commit, event, home, letter, partition, reading, settled
from tests.fakes.kept import Engine
from tests.fakes.store import Store

EIGHT_BYTES = (-(2**63), 2**63 - 1)
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30, 23, 59, 59, 999_999), timezones=ZONES)  # noqa: DTZ001
TEXTS = st.text(st.characters(codec="utf-8"), max_size=32)  # of one to four bytes each
ASTRAL = st.text(st.characters(min_codepoint=0x1_0000), max_size=16)
MANY, SOME = min(50, settings().max_examples), 15  # examples: each is a commit


def following(store: Store) -> int:
    """The number of the next event."""
    checkpoint = store.read_partition(partition()).checkpoint
    return 0 if checkpoint is None else checkpoint.sequence_number + 1


def keep_rows(store: Store, *rows: Row) -> int:
    number = following(store)
    store.commit_batch(commit(store.read_partition(partition()), number, number, settled({number: rows})))
    return number


def keep_letter(store: Store, given: DeadLetter) -> int:
    number = following(store)
    numbered = replace(given, event=structs.replace(given.event, sequence_number=event(number).sequence_number))
    outcome = settled({}, letters=[numbered])
    store.commit_batch(commit(store.read_partition(partition()), number, number, outcome))
    return number


@given(st.integers(*EIGHT_BYTES), MOMENTS)
@example(EIGHT_BYTES[0], datetime(1, 1, 1, tzinfo=UTC))
@example(EIGHT_BYTES[1], datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC))
@settings(max_examples=MANY)
def test_every_number_of_eight_bytes_and_every_instant_to_its_last_digit_is_read_back_equal(
    store: Store, engine: Engine, ppm: int, at: datetime
) -> None:
    """Six digits, which is all that a Python instant has; the seventh of a hub's is dropped where it is parsed."""
    row = reading(ppm=ppm, at=at)
    number = keep_rows(store, row)
    assert [one.row for one in engine.rows(SensorReading) if one.sequence_number == number] == [row]


@given(st.one_of(st.integers(max_value=EIGHT_BYTES[0] - 1), st.integers(min_value=EIGHT_BYTES[1] + 1)))
@example(EIGHT_BYTES[0] - 1)
@example(EIGHT_BYTES[1] + 1)
@example(2**64)
@settings(max_examples=SOME)
def test_a_number_beyond_eight_bytes_is_refused_whole(store: Store, engine: Engine, ppm: int) -> None:
    before = following(store)
    with pytest.raises(DataRefused):
        keep_rows(store, reading(), reading(ppm=ppm))
    assert following(store) == before
    assert [one for one in engine.rows(SensorReading) if one.sequence_number >= before] == []


@given(st.one_of(TEXTS, ASTRAL))
@example('"\\\x01\x1f\n')
@example("👩‍👩‍👧")
@example("\ud7ff\ue000\uf8ff")
@example("\x7f\x80\u2028\ufeff")
@example("a\x00\ufdd0\ufffe\uffff")
@settings(max_examples=MANY)
def test_every_text_of_a_state_is_read_back_equal_or_refused_whole(store: Store, engine: Engine, text: str) -> None:
    before = following(store)
    try:
        keep_rows(store, home("home-1", text))
    except DataRefused:
        assert engine.dialect.limits_texts
        assert len(text.encode("utf-16-le")) > 2 * 40
        assert following(store) == before
        return
    assert [one.row for one in engine.rows(Home)] == [home("home-1", text)]
    key = ReferenceKey(Home, ("home-1",))
    assert dict(store.read_references([key])) == {key: home("home-1", text)}


@given(st.lists(st.one_of(TEXTS, ASTRAL), min_size=1, max_size=8, unique=True))
@settings(max_examples=SOME)
def test_states_are_found_by_keys_of_any_text(store: Store, home_ids: list[str]) -> None:
    standing = []
    for home_id in home_ids:
        if home_id != home_id.rstrip(" ") or "\x00" in home_id:
            continue  # T-SQL compares as if there were no spaces at the end, SQLite's JSON ends at U+0000
        try:
            keep_rows(store, home(home_id, "zone"))
        except DataRefused:
            continue
        standing.append(home_id)
    found = store.read_references([ReferenceKey(Home, (home_id,)) for home_id in [*standing, "nobody has this"]])
    assert {key.key[0] for key in found} == set(standing)


PROPERTIES = st.dictionaries(
    st.text(max_size=10),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=5,
    ),
    max_size=5,
)


@given(st.binary(max_size=300), PROPERTIES, TEXTS, TEXTS)
@example(b"", {}, "", "")
@example(bytes(range(256)) * 3_600, {}, "", "")  # 900 kB, the most that an event may have is 1 MB
@example("👩‍👩‍👧\x00".encode() * 50_000, {}, "", "")
@settings(max_examples=MANY)
def test_every_body_property_key_and_reason_of_a_letter_is_read_back(
    store: Store, engine: Engine, body: bytes, properties: dict[str, object], key: str, error: str
) -> None:
    given = letter(structs.replace(event(0, body, key=key), properties=properties), error=error)
    number = keep_letter(store, given)
    (kept,) = [one for one in engine.letters() if one.sequence_number == number]
    assert decode_properties(json.dumps(kept.properties)) == properties
    assert (kept.body, kept.partition_key, kept.error) == (body, key, error)
