import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import log2
from typing import Any

import pytest

from core.errors import DataRefused
from core.ingest.ingest import REFUSAL_LIMIT, Ingestion, IngestReport, ingest_batch
from core.model.commits import BatchCommit
from core.model.events import Event
from core.model.rows import References, Row, appended_to
from core.model.transforms import Transform
from examples.home_security.transform import SensorReading
from tests.fakes.builders import FakeClock, batch, event, events, home, reading, stamps
from tests.fakes.engines import SqliteEngine
from tests.fakes.faulty_database import Fault, FaultyStore
from tests.fakes.kept import Engine, assert_equals_one_pass
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import MemoryStore, Store


def log_of(length: int, bad: Iterable[int]) -> list[Event]:
    places = set(bad)
    return [event(number, "huge a" if number in places else "reading a") for number in range(length)]


def ingest(store: Store, given: Iterable[Event], seed: int = 0, transform: Transform = PLAIN) -> IngestReport:
    return ingest_batch(batch(given), Ingestion(store, transform, stamps(seed)))


def refused(store: MemoryStore) -> list[int]:
    return [kept.sequence_number for kept in store.letters() if kept.error_class == "refused"]


def numbers(store: MemoryStore) -> list[int]:
    return [kept.sequence_number for kept in store.rows(SensorReading)]


def steady(store: Store) -> Store:
    return store.remembering(timedelta(hours=1), FakeClock().monotonic)


def edges(length: int) -> list[int]:
    """The ends, the middle and the powers of two, where halving by one too many or too few would show."""
    powers = [2**power + by for power in range(length.bit_length()) for by in (-1, 0, 1)]
    return sorted({place for place in [0, length // 2, length - 2, length - 1, *powers] if 0 <= place < length})


@pytest.mark.parametrize(
    "length", [*(1, 2, 3, 4, 5, 7, 8, 9), *(pytest.param(each, marks=pytest.mark.slow) for each in (64, 100, 257, 600))]
)
def test_a_refused_event_becomes_a_letter_within_few_calls_and_all_others_are_committed(length: int) -> None:
    for place in edges(length):
        store, log = MemoryStore(), log_of(length, [place])
        watched = FaultyStore(store)
        assert ingest(steady(watched), log).redelivered == 0
        assert_equals_one_pass(store, {"0": log})
        assert refused(store) == [place]
        assert watched.calls.count("commit_batch") - 2 <= 2 * log2(length), (length, place)  # its refusal, its letter
        assert watched.calls.count("read_partition") == 2  # before and after its anchor


def test_a_letter_keeps_the_words_of_the_database() -> None:
    store = MemoryStore()
    ingest(store, log_of(50, [17]))
    (kept,) = store.letters()
    assert (kept.error_class, kept.status, kept.error_type) == ("refused", "waiting", "core.errors.RowsRefused")
    assert "too large" in kept.error
    assert kept.body == b"huge a"


def test_events_are_tried_alone_at_once_where_most_are_refused_and_a_batch_of_none_costs_one_commit() -> None:
    watched = FaultyStore(MemoryStore())
    ingest(steady(watched), log_of(150, range(150)))
    assert watched.calls.count("commit_batch") < 2 * 150 + 2 * 10
    good = FaultyStore(MemoryStore())
    ingest(good, log_of(500, []))
    assert good.calls == ["read_partition", "anchor_partition", "read_partition", "commit_batch"]


@pytest.mark.slow
def test_refusals_are_bounded_in_one_invocation_and_the_next_one_goes_on() -> None:
    store, log = MemoryStore(), log_of(500, range(500))
    watched = FaultyStore(store)
    done = [0]
    with pytest.raises(DataRefused):
        ingest(watched, log)
    assert watched.calls.count("commit_batch") <= 2 * REFUSAL_LIMIT + 1
    while done[-1] < 500:
        done.append(len(refused(store)))
        try:
            ingest(store, log, seed=len(done))
        except DataRefused:
            assert len(refused(store)) > done[-1] + 100
    assert_equals_one_pass(store, {"0": log})
    assert len(done) <= 5


@pytest.mark.parametrize("fault", [Fault.UNANSWERED, Fault.LOST, Fault.RIVAL])
@pytest.mark.parametrize("turn", range(12))
def test_a_fault_at_any_turn_of_the_halving_changes_nothing(fault: Fault, turn: int) -> None:
    store, log = MemoryStore(), log_of(60, [0, 31, 59])

    def rival(inner: Store, commit: BatchCommit) -> None:
        ingest(inner, log[: commit.last.sequence_number + 1], seed=99)

    ingest(steady(FaultyStore(store, on_commit=[*[None] * turn, fault], rival=rival)), log)
    assert_equals_one_pass(store, {"0": log})
    assert refused(store) == [0, 31, 59]


class Refusing(MemoryStore):
    refusals = 0
    takes_letters = True

    def commit_batch(self, commit: BatchCommit) -> int:
        if self.refusals or (commit.settled.letters and not self.takes_letters):
            self.refusals -= 1
            raise DataRefused("no room for it")
        return super().commit_batch(commit)


def test_a_letter_that_is_refused_goes_to_the_host_and_what_came_before_it_stands() -> None:
    store = Refusing()
    store.takes_letters = False
    with pytest.raises(DataRefused, match="no room for it"):
        ingest(store, log_of(16, [9]))
    assert (numbers(store), store.letters()) == (list(range(9)), [])


@pytest.mark.parametrize(("refusals", "letters"), [(6, []), (7, [0]), (13, [0])])
def test_a_refusal_of_all_that_ends_amid_the_search_leaves_a_letter_of_one_good_event_at_most(
    refusals: int, letters: list[int]
) -> None:
    store = Refusing()
    store.refusals = refusals
    ingest(store, log_of(64, []))
    assert (refused(store), [kept.status for kept in store.letters()]) == (letters, ["waiting"] * len(letters))
    assert numbers(store) == list(range(len(letters), 64))


def test_a_refusal_of_all_that_goes_on_goes_to_the_host_without_a_letter() -> None:
    store = Refusing()
    store.refusals = 14
    with pytest.raises(DataRefused, match="no room for it"):
        ingest(store, log_of(64, []))
    assert (store.letters(), store.ledger()) == ([], [])


@pytest.mark.parametrize("bad", [{0}, {99}, {3, 4, 70}, set(range(0, 100, 9))], ids=str)
def test_refused_events_are_letters_and_the_others_are_committed(store: Store, engine: Engine, bad: set[int]) -> None:
    log = [event(number, "huge a" if number in bad else "double a") for number in range(100)]
    log += [event(100, "home a 0"), event(101, "nowhere a"), event(102, "look a"), event(103, "home b 1")]
    ingest(store, log)
    assert_equals_one_pass(engine, {"0": log})
    assert {kept.sequence_number for kept in engine.letters()} == {*bad, 101}, "a refused state leaves the one before"
    assert all(kept.error for kept in engine.letters())


SOUND = replace(reading(), sensor_id="sensor ")  # a text that is no key keeps its spaces
FIRST, LAST = "0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59.999999-05:00"
DECLARED, ZONELESS = r"home_security/transform\.py:\d+: SensorReading\.{} is declared \w+, and", datetime(1, 1, 1)  # noqa: DTZ001
TYPED: Any = (("ppm", 2.0), ("ppm", "2"), ("kind", 7), ("state", False), ("observed_at", ZONELESS))
AT_SEVEN: dict[str, tuple[Row, str]] = {
    "the key of a state": (home("7 "), "ends with a space"),
    "a key of an aggregate": (replace(SOUND, home_id="home-1 "), "the key sensor_reading.home_id ends with a space"),
    "a second key of it": (replace(SOUND, kind="gas "), "the key sensor_reading.kind ends with a space"),
    "a time after the last year": (reading(at=datetime.fromisoformat(LAST)), f"{LAST} is not in the years 1 to 9999"),
    "a time before the first year": (reading(at=datetime.fromisoformat(FIRST)), f"{FIRST} is not in the years 1 to"),
    **{
        f"a {type(value).__name__} as {name}": (replace(reading(), **{name: value}), DECLARED.format(name))
        for name, value in TYPED
    },
}


@pytest.mark.parametrize("case", AT_SEVEN)
def test_a_value_that_no_column_takes_makes_a_letter_that_names_the_field_and_the_reason(
    store: Store, engine: Engine, case: str
) -> None:
    """Keys that differ in a space at the end are two in Python, and would be one on SQL Server."""
    bad, words = AT_SEVEN[case]
    ingest(store, events(0, 19), transform=Transform("t", lambda one, _: [bad if one.sequence_number == 7 else SOUND]))
    (letter,) = engine.letters()
    assert (letter.sequence_number, letter.error_class) == (7, "refused")
    assert words in letter.error or re.search(words, letter.error)
    assert [kept.row for kept in engine.rows(SensorReading)] == [SOUND] * 19


@appended_to("measurement")
@dataclass(frozen=True, slots=True)
class Measurement:
    """A row of a table that knows what it takes."""

    volts: object
    site: str


TABLE = """
CREATE TABLE measurement (
    stream_id INTEGER NOT NULL, partition_id TEXT NOT NULL, sequence_number INTEGER NOT NULL,
    ordinal INTEGER NOT NULL, commit_number INTEGER NOT NULL,
    volts INTEGER NOT NULL, site TEXT NOT NULL,
    CONSTRAINT ck_measurement_volts CHECK (volts < 1000),
    CONSTRAINT uq_measurement_site UNIQUE (site),
    CONSTRAINT fk_measurement_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id)
) STRICT
"""
REFUSED = {
    "a check": (Measurement(1000, "new"), "CHECK constraint failed: ck_measurement_volts"),
    "a type": (Measurement("many", "new"), "cannot store TEXT value in INTEGER column measurement.volts"),
    "nothing": (Measurement(None, "new"), "NOT NULL constraint failed: measurement.volts"),
    "a value that is taken": (Measurement(5, "site-2"), "UNIQUE constraint failed: measurement.site"),
    "a number of 65 bits": (Measurement(2**63, "new"), "too large"),
    "a type of no database": (Measurement({}, "new"), "type 'dict' is not supported"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_row_of_a_new_class_that_the_embedded_database_refuses(sqlite: SqliteEngine, case: str) -> None:
    sqlite.sql(TABLE)
    bad, words = REFUSED[case]

    def rows_of(given: Event, _: References) -> list[Row]:
        return [bad if given.sequence_number == 20 else Measurement(5, f"site-{given.sequence_number}")]

    store = sqlite.open()
    ingest(store, events(0, 39), transform=Transform("test/1", rows_of))
    (kept,) = sqlite.letters()
    assert (kept.sequence_number, kept.error_class, kept.status) == (20, "refused", "waiting")
    assert words in kept.error
    rows = [number for (number,) in sqlite.sql("SELECT sequence_number FROM measurement ORDER BY 1")]
    assert rows == [number for number in range(40) if number != 20]
    assert [books.balanced for books in store.read_ledgers()] == [True]
    store.close()
