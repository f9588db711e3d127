import json
import random
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import permutations
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from core.errors import DataRefused
from core.ingest.ingest import Ingestion, ingest_batch
from core.model.commits import DeadLetter
from core.model.events import Event
from core.model.property_values import decode_properties
from core.model.rows import ReferenceKey, References, Row
from core.model.transforms import Transform
from examples.flight_info.transform import FlightStatus
from examples.home_security.transform import Home, SensorReading
from tests.core.letters.test_store import resolved, retry
from tests.fakes import builders
from tests.fakes.builders import EPOCH, batch, claim, commit, event, home, letter, partition, reading, settled, stamps
from tests.fakes.kept import Engine
from tests.fakes.replaying import FLIGHTS, World, changes_of, flight, log_of, minute_of, now_as, order
from tests.fakes.store import Store


def put(store: Store, placed: Mapping[int, Sequence[Row]], place: str = "0", group: str = "hubledger") -> None:
    """Commit rows by sequence number, without a gap."""
    first, last = min(placed), max(placed)
    outcome = settled(placed, filtered=last - first + 1 - len(placed))
    store.commit_batch(commit(store.read_partition(partition(place, group=group)), first, last, outcome))


def keys(*home_ids: str) -> list[ReferenceKey]:
    return [ReferenceKey(Home, (home_id,)) for home_id in home_ids]


def standing(store: Store) -> Row | None:
    return store.read_references(keys("home-1")).get(ReferenceKey(Home, ("home-1",)))


def test_of_two_commits_of_one_commit_and_of_one_event_the_last_state_stands(store: Store, engine: Engine) -> None:
    put(store, {0: [home(armed=False)]})
    put(store, {1: [home(armed=True)]})
    (kept,) = engine.rows(Home)
    assert (kept.row, kept.sequence_number, kept.commit_number) == (home(armed=True), 1, 2)
    put(store, {number: [home(time_zone=f"zone-{number}")] for number in range(2, 10)})
    (kept,) = engine.rows(Home)
    assert (kept.row, kept.sequence_number) == (home(time_zone="zone-9"), 9)
    put(store, {10: [home(armed=True), home(armed=False)]})
    assert standing(store) == home(armed=False)


@pytest.mark.parametrize("older", [0, 4])
def test_an_older_number_of_the_same_partition_never_overwrites(store: Store, engine: Engine, older: int) -> None:
    put(store, {5: [home(armed=True)]})
    late = settled({older: [home(armed=False)]})
    store.commit_batch(commit(store.read_partition(partition()), 6, 6, late))
    (kept,) = engine.rows(Home)
    assert (kept.row, kept.sequence_number, kept.commit_number) == (home(armed=True), 5, 1)


def test_another_partition_overwrites_whatever_its_number(store: Store, engine: Engine) -> None:
    put(store, {5: [home(armed=True)]})
    put(store, {2: [home(armed=False)]}, "1")
    (kept,) = engine.rows(Home)
    assert (kept.row, kept.partition_id, kept.sequence_number) == (home(armed=False), "1", 2)
    put(store, {1: [home(armed=True)]}, group="other")  # as does another stream
    assert [kept.row for kept in engine.rows(Home)] == [home(armed=True)]


def test_thousands_of_references_that_stand_are_found_in_one_call_and_others_left_out(store: Store) -> None:
    ids = [f"home-{number}" for number in range(5_000)]
    put(store, {number: [home(id, armed=True)] for number, id in enumerate(ids)})
    wanted = keys(*ids, "home-0", "", *(f"absent-{number}" for number in range(5_000)))
    assert dict(store.read_references(key for key in wanted)) == {
        ReferenceKey.of(home(id)): home(id, armed=True) for id in ids
    }
    assert dict(store.read_references([])) == {}


WORDS = ("", "a'; DROP TABLE home; --", "[]", '["a"]', "null", "\\u0041", "e\u0301", "👩‍👩‍👧", "a\nb")
HOSTILE = [*WORDS, *"'\"1%é"]


@pytest.mark.parametrize("home_id", ["\ud800", "a\udfffb", "x" * 1_000_000], ids=["surrogate", "surrogate2", "1 MB"])
def test_a_key_that_cannot_stand_finds_nothing(store: Store, home_id: str) -> None:
    put(store, {0: [home("a")]})
    assert dict(store.read_references(keys(home_id, "a"))) == {ReferenceKey.of(home("a")): home("a")}
    assert dict(store.read_references(keys(home_id))) == {}


@pytest.mark.parametrize("home_id", [" ", "a ", "a  ", "b\t "], ids=ascii)
def test_a_key_that_ends_with_a_space_is_refused(store: Store, engine: Engine, home_id: str) -> None:
    with pytest.raises(DataRefused, match=r"the key home\.home_id ends with a space"):
        put(store, {0: [home("a")], 1: [home(home_id)]})
    assert engine.rows(Home) == []
    put(store, {0: [home("a")], 1: [home(" a"), home("b\t"), home("c", time_zone="a zone ")]})
    assert [kept.row.home_id for kept in engine.rows(Home) if isinstance(kept.row, Home)] == ["a", " a", "b\t", "c"]


def flights_of(engine: Engine) -> dict[int, tuple[int, str, int]]:
    kept = [(cast(FlightStatus, one.row), one) for one in engine.rows(FlightStatus)]
    return {row.flight_number: (minute_of(row), one.partition_id, one.sequence_number) for row, one in kept}


def ingest(store: Store, id: str, *bodies: str, first: int = 0) -> None:
    given = [event(first + at, body) for at, body in enumerate(bodies)]
    ingest_batch(batch(given, partition(id)), Ingestion(store, FLIGHTS, stamps(first)))


def test_the_greatest_value_stands_within_a_partition_a_commit_and_an_event(store: Store, engine: Engine) -> None:
    for number, minute in enumerate((3, 9, 4, 9, 8)):
        put(store, {number: [flight(1, minute)]})
    assert flights_of(engine) == {1: (9, "0", 3)}
    rows = {5: [flight(2, 7), flight(2, 5)], 6: [flight(2, 7, "later"), flight(2, 7, "last")], 7: [flight(2, 6)]}
    store.commit_batch(commit(store.read_partition(partition()), 5, 7, settled(rows)))
    _, kept = engine.rows(FlightStatus)
    assert (kept.row, kept.sequence_number) == (flight(2, 7, "last"), 6)
    put(store, {0: [flight(1, 9, "second"), flight(2, 7, "second")]}, group="other")
    put(store, {8: [flight(2, 7, "first")]})
    assert [cast(Any, one.row).status for one in engine.rows(FlightStatus)] == ["second", "second"]


@pytest.mark.parametrize("seed", range(4))
def test_every_order_of_commits_of_partitions_ends_in_the_same_row(store: Store, engine: Engine, seed: int) -> None:
    chance = random.Random(seed)
    minutes = {(id, at): chance.randrange(4) for id in ("0", "1", "10") for at in range(2)}
    orders = [
        one for one in permutations(minutes) if all(one.index((id, 0)) < one.index((id, 1)) for id in ("0", "1", "10"))
    ]  # of one partition the events are in order
    numbers = dict.fromkeys(("0", "1", "10"), 0)
    for key, one in enumerate(chance.sample(orders, 20)):
        for id, at in one:
            put(store, {numbers[id]: [flight(key, minutes[id, at], f"{id} {at}")]}, id)
            numbers[id] += 1
    place, minute = max(minutes.items(), key=lambda one: (one[1], one[0]))
    found = [(cast(FlightStatus, one.row).status, minute_of(one.row)) for one in engine.rows(FlightStatus)]
    assert found == [(f"{place[0]} {place[1]}", minute)] * 20


def test_partitions_that_commit_one_key_at_once_end_in_the_greatest_value(store: Store, engine: Engine) -> None:
    def work(id: int) -> None:
        for number in range(10):
            put(store, {number: [flight(key, 10 * number + (id + key) % 4) for key in range(5)]}, str(id))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert {key: minute for key, (minute, *_) in flights_of(engine).items()} == dict.fromkeys(range(5), 93)


@pytest.mark.parametrize("minute", [3, 5, 7])
def test_a_retry_writes_its_row_only_if_it_is_the_greatest(store: Store, engine: Engine, minute: int) -> None:
    builders.keep_letters(store, {2: "a"})
    put(store, {3: [flight(1, 5)]})
    store.claim_letters(claim())
    store.commit_retry(retry(store, [resolved(2)], settled({2: [flight(1, minute)]})))
    assert flights_of(engine)[1] == (max(minute, 5), "0", 2 if minute == 7 else 3)


def test_a_value_that_has_no_order_is_a_letter_and_stops_no_other_event(store: Store, engine: Engine) -> None:
    def wrong(given: Event, references: References) -> Iterable[Row]:
        at = [EPOCH, EPOCH.replace(tzinfo=None), 7, None, EPOCH][given.sequence_number]
        return [replace(flight(1, 0, str(given.sequence_number)), changed_at=cast(Any, at))]

    ingest_batch(batch(event(number) for number in range(5)), Ingestion(store, Transform("test/1", wrong), stamps()))
    assert [(one.sequence_number, one.error_class) for one in engine.letters()] == [(at, "refused") for at in (1, 2, 3)]
    assert all("FlightStatus.changed_at is declared datetime, and" in one.error for one in engine.letters())
    assert flights_of(engine) == {1: (0, "0", 4)}


# What partition 0 said, what partition 1 said, what events of partition 0 say now, the expected minute and its event,
# and the most states of which an older value may be written. Random ones are in tests/core/replay.
REPLAYS: dict[str, tuple[list[str], list[str], dict[int, str], tuple[int, str, int], int]] = {
    "its own event says less, a later one more": (["1 5", "1 9", "1 7"], [], {1: "1 6"}, (7, "0", 2), 1),
    "they change places": (["1 5", "1 9", "1 7"], [], {0: "1 12", 1: "1 3"}, (12, "0", 0), 0),
    "a different partition is equal": (["1 5", "1 9"], ["1 11"], {1: "1 11"}, (11, "1", 0), 0),
    "a letter now has rows": (["quiet 1", "quiet 1"], ["1 11"], {0: "1 12", 1: "1 10"}, (12, "0", 0), 0),
    "it does not write it again": (["1 5", "1 9", "1 7"], [], {1: "quiet 1"}, (9, "0", 1), 0),
    "two of one event": (["1 5", "1 9,1 8", "1 7"], [], {1: "1 3,1 6"}, (7, "0", 2), 1),
}


@pytest.mark.parametrize("piece", [1, 2, 500])
@pytest.mark.parametrize("case", REPLAYS)
def test_a_replay_takes_back_what_its_event_wrote(store: Store, engine: Engine, case: str, piece: int) -> None:
    before, others, now, expected, lowered = REPLAYS[case]
    world = World(store, {"0": log_of(*before), **({"1": log_of(*others)} if others else {})}, FLIGHTS, piece=piece)
    world.transform = now_as(now)
    dry, real = world.replay(order(["0"], dry_run=True)), world.replay(order(["0"]))
    assert flights_of(engine)[1] == expected
    for name in ("events", "written", "rows_retracted", "states_left", "states_lowered"):
        assert getattr(dry.counts, name) == getattr(real.counts, name), name
    assert real.counts.states_left == (case == "it does not write it again") + real.counts.states_lowered
    assert real.counts.states_lowered <= lowered
    again = world.replay(order(["0"], dry_run=True))
    assert (again.counts.events_changed, again.counts.states_lowered) == (0, 0)


@pytest.mark.parametrize("piece", [1, 500])
def test_a_lowered_state_is_counted(store: Store, engine: Engine, piece: int) -> None:
    """Rows that lost are not stored: an event of an earlier piece, or of a different partition, may have one."""
    world = World(store, {"0": log_of("1 5", "1 9"), "1": log_of("1 7")}, FLIGHTS, piece=piece)
    world.transform = now_as({1: "1 3"})
    only = order(["0"])
    dry = world.replay(replace(only, is_dry_run=True))
    first = world.replay(only)
    assert (dry.counts.states_left, first.counts.states_left) == (1, 1)
    assert flights_of(engine)[1] == ((3, "0", 1) if piece == 1 else (5, "0", 0))
    assert [world.replay().counts.states_left for _ in range(2)] == [0, 0]
    assert flights_of(engine)[1] == (7, "1", 0)


@pytest.mark.parametrize("piece", [1, 2, 500])
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_replayed_event_sees_the_greatest_value_of_the_events_before_it(
    store: Store, engine: Engine, piece: int, dry_run: bool
) -> None:
    bodies = ["1 5", "look 1", "1 3", "look 1", "1 9", "look 1", "1 8", "look 1"]
    world = World(store, {"0": log_of(*bodies)}, FLIGHTS, piece=piece)
    before = [one.row for one in engine.rows(SensorReading)]
    assert [cast(SensorReading, row).ppm for row in before] == [5, 5, 9, 9]
    again = world.replay(order(["0"], dry_run=dry_run))
    assert (again.counts.rows_changed, [one.row for one in engine.rows(SensorReading)]) == (0, before)
    world.transform = now_as({0: "1 6", 4: "1 4"})
    job = world.replay(order(["0"], dry_run=dry_run))
    found = [row for one in engine.rows(SensorReading) if (row := cast(SensorReading, one.row))]
    ppm = [change["row"]["ppm"] for change in changes_of(world, job) if change["table"] == "sensor_reading"]
    assert (ppm if dry_run else [row.ppm for row in found]) == [6, 6, 6, 8]


def test_a_batch_that_commits_between_two_pieces_keeps_its_newer_row(store: Store, engine: Engine) -> None:
    world = World(store, {"0": log_of("1 5", "1 9")}, FLIGHTS, piece=1)
    world.transform = now_as({1: "1 3"})
    job = world.ask(order(["0"]))
    ingest(store, "1", "1 20")
    world.work(job)
    assert flights_of(engine)[1] == (20, "1", 0)


EIGHT_BYTES = (-(2**63), 2**63 - 1)
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30, 23, 59, 59, 999_999), timezones=ZONES)  # noqa: DTZ001
TEXTS = st.text(st.characters(codec="utf-8"), max_size=32)  # of one to four bytes each
ASTRAL = st.text(st.characters(min_codepoint=0x1_0000), max_size=16)
MANY, SOME = min(50, settings().max_examples), 15  # examples: each is a commit


def following(store: Store) -> int:
    checkpoint = store.read_partition(partition()).checkpoint
    return 0 if checkpoint is None else checkpoint.sequence_number + 1


def keep_rows(store: Store, *rows: Row) -> int:
    number = following(store)
    put(store, {number: rows})
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
    """Six digits, which is all that a Python instant has. The seventh of a hub's is dropped where it is parsed."""
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


@given(st.binary(max_size=300), PROPERTIES | st.just({"$properties": 1, "$system": 2}), TEXTS, TEXTS)
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
