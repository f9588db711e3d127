"""The tables of every aggregate are those of its declaration, in the migrations of both dialects."""

import re
import sqlite3
from contextlib import closing
from dataclasses import make_dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated

import pytest

from core.errors import InvalidTransform
from core.model.aggregates import Aggregate, Count, Key, aggregate_of, aggregate_table
from core.model.rows import KEY_BYTES
from core.store.columns import instant_text
from core.store.window_statements import window_reader
from core.transforms.loading import find_aggregate, load_aggregates
from examples.home_security.transform import SensorReading
from hubledger.cli.ddl.tables import ENGINES, Engine, added_text, source_index_text, tables_text
from tests.fakes.rollups import rolled
from tests.fakes.rooms import all_migrations

KINDS = {"carbon_monoxide": 500, "motion": None}

TABLE = re.compile(r"CREATE TABLE hubledger\.(\w+) \(\n(.*?)\n\)[^;]*;", re.S)
ADDED = re.compile(r"ALTER TABLE hubledger\.(\w+)\s+ADD (?!CONSTRAINT)(\w+ .*?);", re.S)
Columns = dict[str, frozenset[str]]


def of_server(script: str) -> Columns:
    """Return the columns and constraints of each table; their order is not part of a declaration."""
    text = re.sub(r"--.*", "", script)
    found: dict[str, set[str]] = {}
    for name, body in TABLE.findall(text):
        found[name] = {" ".join(line.split()).rstrip(",") for line in body.split("\n") if line.strip()}
    for name, column in ADDED.findall(text):
        found.setdefault(name, set()).add(" ".join(column.split()))
    return {name: frozenset(lines) for name, lines in found.items()}


BYTES = {"bigint": 8, "int": 4, "smallint": 2, "bit": 1, "datetime2(7)": 8, "date": 3, "uniqueidentifier": 16}


def bytes_of(column: str) -> int:
    """Return the most bytes of a column in a key; of a text, two for each character unless it is of ASCII."""
    kind, length = re.match(r"([a-z0-9]+(?:\(7\))?)(?:\((\d+)\))?", column).groups("")  # type: ignore[union-attr]
    return int(length) * (2 if kind.startswith("n") else 1) if length else BYTES[kind]


def widths(script: str) -> dict[str, int]:
    """Return the bytes of the primary key of each table of SQL Server."""
    found: dict[str, int] = {}
    for name, lines in of_server(script).items():
        columns = {word.strip("[]"): rest for word, _, rest in (line.partition(" ") for line in lines)}
        keys = [key for line in lines for key in re.findall(r"PRIMARY KEY(?: CLUSTERED)? \((.*?)\)", line)]
        found |= {name: sum(bytes_of(columns[each.strip("[] ")]) for each in keys[0].split(","))} if keys else {}
    return found


def declared(length: int, *, ascii: bool = False) -> Aggregate:
    key = Annotated[str, Key(length, ascii)]
    hints = {"sensor_id": key, "window_start": datetime, "readings": Annotated[int, Count()]}
    made = aggregate_of(SensorReading, "wide", at="observed_at", window=timedelta(hours=1))
    return aggregate_table(made(make_dataclass("Wide", hints.items(), frozen=True, slots=True)))


@pytest.mark.parametrize(("length", "ascii"), [(404, False), (808, True)])
def test_the_longest_key_of_an_aggregate_fits_in_the_clustered_keys_of_both_of_its_tables(
    length: int, ascii: bool
) -> None:
    assert widths(tables_text(declared(length, ascii=ascii), "sqlserver")) == {"wide": 816, "wide_staged": 900}
    with pytest.raises(InvalidTransform, match=r"Wide: the key of its staged windows has up to 90[12] bytes"):
        declared(length + 1, ascii=ascii)


def test_no_primary_key_of_the_schema_has_more_bytes_than_a_clustered_key() -> None:
    found = widths("\n".join(one.text for one in all_migrations("sqlserver")))
    assert len(found) >= 35
    assert {name: size for name, size in found.items() if size > KEY_BYTES} == {}


def test_the_index_of_a_source_seeks_a_time_of_a_partition_and_holds_the_key() -> None:
    (one,) = (one for one in load_aggregates() if one.name == "home_activity")
    columns = "(stream_id, partition_id, observed_at, home_id, kind)"
    assert source_index_text(one, "sqlite") == f"CREATE INDEX ix_home_activity_source\n    ON sensor_reading {columns};"


ADDED_FIRST = {"sqlite": "UPDATE aggregation_cut", "sqlserver": "UPDATE hubledger.aggregation_cut"}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_migration_that_adds_levels_locks_commits_before_it_reads_and_fills_from_the_finer_level(
    engine: Engine,
) -> None:
    one = find_aggregate("home_activity")
    both, day = added_text(one, engine, ["hour", "day"]), added_text(one, engine, ["day"])
    assert both.startswith(ADDED_FIRST[engine])
    assert "SET levels = 'home_activity home_activity_hour home_activity_day'" in day
    assert re.findall(r"INTO (?:hubledger\.)?(\w+)", both) == ["home_activity_hour", "home_activity_day"]
    assert re.findall(r"FROM (?:hubledger\.)?(\w+) AS a", both) == ["home_activity", "home_activity_hour"]
    assert re.findall(r"CREATE TABLE (?:hubledger\.)?(\w+) ", day) == ["home_activity_day", "home_activity_day_staged"]
    with pytest.raises(InvalidTransform, match="home_activity has no rollup named month"):
        added_text(one, engine, ["month"])


@pytest.mark.parametrize("engine", ENGINES)
def test_only_a_level_with_a_retention_has_an_index_by_its_windows(engine: Engine) -> None:
    one = find_aggregate("flight_punctuality")
    assert "INDEX" not in tables_text(one, engine)
    kept = tables_text(replace(one, keep=timedelta(days=92)), engine)
    made = r"CREATE INDEX ix_flight_punctuality_window_start ON [\w.]+ \(window_start\)( WITH \(ONLINE = ON\))?;"
    assert re.search(made, kept)


def test_the_levels_that_a_migration_fills_are_those_of_plain_python() -> None:
    of = find_aggregate("home_activity")
    starts = ("1969-12-31T23:45", "2026-02-10T00:00", "2026-02-10T00:45", "2026-02-10T01:00", "2026-02-10T23:45")
    begins = [datetime.fromisoformat(f"{text}:00.000000+00:00") for text in starts]
    windows = [of.of("home-1", at, kind, 2, 1, ppm, ppm, ppm, at, at) for at in begins for kind, ppm in KINDS.items()]
    columns = ", ".join(of.columns)
    with closing(sqlite3.connect(":memory:")) as connection:
        for each in all_migrations("sqlite"):
            connection.executescript(each.text)
        for level in of.rollups:
            connection.executescript(f"DROP TABLE {level.name}; DROP TABLE {level.staged};")
        connection.execute("INSERT INTO aggregation_cut (job, cut, run_number) VALUES ('home_activity', '{}', 3)")
        for one in windows:
            values = [getattr(one, name) for name in of.columns]
            row = [instant_text(value) if isinstance(value, datetime) else value for value in values]
            marks = ", ".join("?" * len(row))
            connection.execute(
                f"INSERT INTO home_activity ({columns}, run_number, slice) VALUES ({marks}, 7, 200)", row
            )
        connection.executescript(added_text(of, "sqlite", ["hour", "day"]))
        for level in of.rollups:
            found = connection.execute(f"SELECT {columns} FROM {level.name} ORDER BY {', '.join(level.key)}").fetchall()
            assert list(map(window_reader(level.of), found)) == rolled(windows, level)
            assert connection.execute(f"SELECT DISTINCT run_number, slice FROM {level.name}").fetchall() == [(7, 200)]
        assert connection.execute("SELECT levels FROM aggregation_cut").fetchall() == [
            ("home_activity home_activity_hour home_activity_day",)
        ]
