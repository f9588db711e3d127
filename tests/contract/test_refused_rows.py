"""Promises of every store when a row is refused: its event becomes a letter with the database's words, no other."""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pytest

from core.ingest.ingest import Ingestion, ingest_batch
from core.model.events import Event
from core.model.rows import References, Row, appended_to
from core.model.transforms import Transform
from examples.home_security.transform import Home, SensorReading
from tests.fakes.builders import batch, event, home, reading, stamps
from tests.fakes.engines import SqliteEngine
from tests.fakes.kept import Engine
from tests.fakes.one_pass import assert_equals_one_pass
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import Store


@pytest.mark.parametrize("bad", [{0}, {99}, {50}, {3, 4, 70}, set(range(0, 100, 9))], ids=str)
def test_refused_events_are_letters_and_the_others_are_committed(store: Store, engine: Engine, bad: set[int]) -> None:
    bodies = ["huge a" if number in bad else "double a" for number in range(100)]
    log = [event(number, body) for number, body in enumerate(bodies)]
    ingest_batch(batch(log), Ingestion(store, PLAIN, stamps()))
    assert_equals_one_pass(engine, {"0": log})
    assert {kept.sequence_number for kept in engine.letters()} == bad
    assert all(kept.error for kept in engine.letters())


def test_a_refused_state_leaves_the_one_that_stands(store: Store, engine: Engine) -> None:
    log = [event(0, "home a 0"), event(1, "nowhere a"), event(2, "look a"), event(3, "home b 1")]
    ingest_batch(batch(log), Ingestion(store, PLAIN, stamps()))
    assert_equals_one_pass(engine, {"0": log})


@pytest.mark.parametrize("bad", [{0}, {19}, {3, 4, 11}], ids=str)
def test_events_with_a_key_that_ends_with_a_space_are_letters_and_no_others(
    store: Store, engine: Engine, bad: set[int]
) -> None:
    """The keys "7" and "7 " are two in Python, and would be one on SQL Server."""

    def rows_of(given: Event, references: References) -> list[Row]:
        number = given.sequence_number
        return [home(f"{number % 10}{' ' if number in bad else ''}", time_zone=f"zone {number}")]

    ingest_batch(batch(event(number) for number in range(20)), Ingestion(store, Transform("test/1", rows_of), stamps()))
    assert {(one.sequence_number, one.error_class) for one in engine.letters()} == {(each, "refused") for each in bad}
    assert all("ends with a space" in one.error for one in engine.letters())
    newest = {number % 10: number for number in range(20) if number not in bad}
    assert {one.sequence_number for one in engine.rows(Home)} == set(newest.values())


@pytest.mark.parametrize(
    "text", ["9999-12-31T23:59:59.999999-05:00", "0001-01-01T00:00:00+05:00"], ids=["the last", "the first"]
)
def test_a_time_outside_of_the_years_of_utc_is_a_letter_with_the_reason(
    store: Store, engine: Engine, text: str
) -> None:
    def rows_of(given: Event, references: References) -> list[Row]:
        return [reading(at=datetime.fromisoformat(text)) if given.sequence_number == 7 else reading()]

    ingest_batch(batch(event(number) for number in range(20)), Ingestion(store, Transform("test/1", rows_of), stamps()))
    (refused,) = engine.letters()
    assert (refused.sequence_number, refused.error_class) == (7, "refused")
    assert f"{text} is not in the years 1 to 9999 of UTC" in refused.error


TYPED: list[dict[str, Any]] = [
    {"ppm": 2.0},
    {"ppm": "2"},
    {"kind": 7},
    {"state": False},
    {"observed_at": datetime(2026, 1, 1)},  # noqa: DTZ001
]


@pytest.mark.parametrize("given", TYPED, ids=str)
def test_a_value_of_a_different_type_makes_a_letter_that_names_the_field_and_its_line(
    store: Store, engine: Engine, given: dict[str, Any]
) -> None:
    def rows_of(one: Event, references: References) -> list[Row]:
        return [replace(reading(), **given) if one.sequence_number == 7 else reading()]

    ingest_batch(batch(event(number) for number in range(20)), Ingestion(store, Transform("test/1", rows_of), stamps()))
    (refused,) = engine.letters()
    assert (refused.sequence_number, refused.error_class) == (7, "refused")
    assert re.search(
        rf"home_security/transform\.py:\d+: SensorReading\.{next(iter(given))} is declared \w+, and", refused.error
    )
    assert len(engine.rows(SensorReading)) == 19


SOUND = replace(reading(), sensor_id="sensor ")
PADDED = {"home_id": replace(SOUND, home_id="home-1 "), "kind": replace(SOUND, kind="gas ")}


@pytest.mark.parametrize("column", PADDED)
def test_an_appended_row_whose_key_of_an_aggregate_ends_with_a_space_is_a_letter(
    store: Store, engine: Engine, column: str
) -> None:
    """The server would take the windows of both keys for one; a text that is no key keeps its spaces."""

    def rows_of(given: Event, references: References) -> list[Row]:
        return [PADDED[column] if given.sequence_number == 7 else SOUND]

    ingest_batch(batch(event(number) for number in range(20)), Ingestion(store, Transform("test/1", rows_of), stamps()))
    (refused,) = engine.letters()
    assert (refused.sequence_number, refused.error_class) == (7, "refused")
    assert f"the key sensor_reading.{column} ends with a space" in refused.error
    kept = [one.row for one in engine.rows(SensorReading)]
    assert [one.sensor_id for one in kept if isinstance(one, SensorReading)] == ["sensor "] * 19


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
@pytest.mark.parametrize("place", [3, 20, 39])
def test_a_row_of_a_new_class_that_the_embedded_database_refuses(sqlite: SqliteEngine, case: str, place: int) -> None:
    sqlite.sql(TABLE)
    bad, words = REFUSED[case]

    def rows_of(given: Event, _: References) -> list[Row]:
        return [bad if given.sequence_number == place else Measurement(5, f"site-{given.sequence_number}")]

    store = sqlite.open()
    ingest_batch(batch(event(number) for number in range(40)), Ingestion(store, Transform("test/1", rows_of), stamps()))
    (kept,) = sqlite.letters()
    assert (kept.sequence_number, kept.error_class, kept.status) == (place, "refused", "waiting")
    assert words in kept.error
    rows = [number for (number,) in sqlite.sql("SELECT sequence_number FROM measurement ORDER BY 1")]
    assert rows == [number for number in range(40) if number != place]
    assert [books.balanced for books in store.read_ledgers()] == [True]
    assert sqlite.rows(SensorReading) == []
    store.close()
