import json
import random
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install -r jobs/requirements.txt")

from core.model.aggregates import aggregate_table
from examples.flight_info.aggregates.flight_punctuality import FlightPunctuality
from examples.home_security.aggregates.home_activity import HomeActivity
from jobs import as_of
from jobs.as_of import Words, counted_where, counting, portions, removed, removed_where, rows_of_windows
from jobs.ranges import CommitSpan, MergedRange, Slice, slices_of
from tests.fakes.rooms import migrate_examples
from tests.offenders import holds_for

OF, WORDS = aggregate_table(HomeActivity), Words()
NOON = datetime(2026, 2, 10, 12, tzinfo=UTC)
PARTITIONS = ("0", "1")


def text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True)
class Fact:
    """A row of the history: its place, its values, the commit that wrote it, and the one that removed it."""

    partition_id: str
    number: int
    home_id: str
    ppm: int | None
    at: datetime
    written: int
    gone: int | None = None


@dataclass
class History:
    """Random batches and replays of two partitions, in a database and as facts."""

    chance: random.Random
    connection: sqlite3.Connection
    facts: list[Fact] = field(default_factory=list)
    ledger: list[MergedRange] = field(default_factory=list)
    commits: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTITIONS, 0))
    last: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTITIONS, -1))

    def go_on(self) -> None:
        of = self.chance.choice(PARTITIONS)
        self.commits[of] += 1
        if self.last[of] < 0 or self.chance.random() < 0.5:
            first, kind = self.last[of] + 1, "batch"
            self.last[of] += self.chance.randrange(1, 6)
            span = range(first, self.last[of] + 1)
        else:
            first, kind = self.chance.randrange(self.last[of] + 1), "replay"
            span = range(first, min(self.last[of], first + self.chance.randrange(4)) + 1)
            self._remove(of, span)
        written = [self._write(of, number) for number in span if self.chance.random() < 0.8]
        self.ledger.append(MergedRange(1, of, self.commits[of], kind, span[0], span[-1], len(written)))

    def _write(self, of: str, number: int) -> Fact:
        home, late = f"home-{self.chance.randrange(2)}", timedelta(minutes=self.chance.choice([0, 0, 14, 15, -1]))
        ppm = self.chance.choice([None, 0, 5, 9])
        one = Fact(of, number, home, ppm, NOON + late, self.commits[of])
        values = (of, number, one.written, home, ppm, text(one.at))
        self.connection.execute("INSERT INTO sensor_reading VALUES (1, ?, ?, 0, ?, ?, 's', 'gas', NULL, ?, ?)", values)
        self.facts.append(one)
        return one

    def _remove(self, of: str, span: range) -> None:
        for place, one in enumerate(self.facts):
            if one.partition_id == of and one.number in span and one.gone is None:
                self.facts[place] = Fact(of, one.number, one.home_id, one.ppm, one.at, one.written, self.commits[of])
                row = {"home_id": one.home_id, "kind": "gas", "state": None, "ppm": one.ppm}
                moved = json.dumps({**row, "observed_at": text(one.at)})
                insert = "INSERT INTO retracted_row VALUES (1, ?, ?, 'sensor_reading', ?, 0, ?, ?)"
                self.connection.execute(insert, (of, self.commits[of], one.number, one.written, moved))
                place_of = "partition_id = ? AND sequence_number = ?"
                self.connection.execute(f"DELETE FROM sensor_reading WHERE {place_of}", (of, one.number))

    def spans(self, begin: dict[str, int], end: dict[str, int]) -> list[CommitSpan]:
        return [CommitSpan(1, of, begin[of], end[of]) for of in PARTITIONS if end[of] > begin[of]]

    def standing(self, cut: dict[str, int]) -> list[Fact]:
        written = [one for one in self.facts if one.written <= cut[one.partition_id]]
        return [one for one in written if one.gone is None or one.gone > cut[one.partition_id]]

    def added(self, spans: list[CommitSpan]) -> Counter[Any]:
        ledger = [
            one
            for one in self.ledger
            for span in spans
            if one.partition_id == span.partition_id and span.after < one.commit_number <= span.up_to
            if span.after or one.kind == "batch"
        ]
        where = [counted_where(one) for one in slices_of(spans, ledger, rows_each=3)]
        return self._read(f"SELECT home_id, ppm, observed_at FROM ({counting(OF, WORDS)}) WHERE ", where)

    def removed(self, spans: list[CommitSpan]) -> Counter[Any]:
        where = [removed_where(one) for one in spans]
        return self._read(f"SELECT home_id, ppm, observed_at FROM ({removed(OF, WORDS)}) WHERE ", where)

    def of_window(self, home_id: str, begin: datetime, cut: dict[str, int]) -> Counter[Any]:
        wanted = {"home_id": home_id, "kind": "gas", "window_start": begin}
        query = rows_of_windows(OF, [wanted], self.spans(dict.fromkeys(PARTITIONS, 0), cut), WORDS)
        return self._read(f"SELECT home_id, ppm, observed_at FROM ({query})", [""])

    def _read(self, query: str, wheres: list[str]) -> Counter[Any]:
        return Counter(row for where in wheres for row in self.connection.execute(query + where))


def counted(facts: list[Fact]) -> Counter[Any]:
    return Counter((one.home_id, one.ppm, text(one.at)) for one in facts)


@cache
def migrated() -> str:
    """Return the statements that make an empty store."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        migrate_examples(path)
        with closing(sqlite3.connect(path)) as connection:
            return "\n".join(connection.iterdump())


@contextmanager
def store() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as opened:
        opened.executescript(migrated())
        yield opened


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with store() as opened:
        yield opened


@pytest.mark.slow
@holds_for(range(60))
def test_a_run_adds_and_removes_the_same_rows_and_a_window_has_those_of_its_cut_at_any_later_moment(seed: int) -> None:
    with store() as connection:
        check_runs(History(random.Random(seed), connection))


def check_runs(made: History) -> None:
    cuts = [dict(made.commits)]
    for _ in range(4):
        for _ in range(made.chance.randrange(1, 6)):
            made.go_on()
        cuts.append(dict(made.commits))
        for begin, end in pairwise(cuts):
            of = {span.partition_id: span for span in made.spans(begin, end)}
            standing = made.standing(end)
            added = [one for one in standing if one.partition_id in of and one.written > begin[one.partition_id]]
            taken = [
                one
                for one in made.facts
                if one.written <= begin[one.partition_id] and one.gone is not None
                if begin[one.partition_id] < one.gone <= end[one.partition_id]
            ]
            assert made.added(list(of.values())) == counted(added)
            assert made.removed(list(of.values())) == counted(taken)
            for home_id, quarter in product(("home-0", "home-1"), (-1, 0, 1)):
                since = NOON + quarter * timedelta(minutes=15)
                until = since + timedelta(minutes=15)
                wanted = [one for one in standing if one.home_id == home_id and since <= one.at < until]
                assert made.of_window(home_id, since, end) == counted(wanted)


def plan_of(connection: sqlite3.Connection, query: str) -> list[str]:
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")]


def test_every_read_of_a_run_seeks(connection: sqlite3.Connection) -> None:
    window = {"home_id": "home-1", "kind": "gas", "window_start": NOON}
    place = "(stream_id=? AND partition_id=? AND "
    added = f"SELECT home_id FROM ({counting(OF, WORDS)}) WHERE {counted_where(Slice(1, '0', 4, 9, 3, 9, cut=9))}"
    taken = f"SELECT home_id FROM ({removed(OF, WORDS)}) WHERE {removed_where(CommitSpan(1, '0', 3, 9))}"
    found = plan_of(connection, added)
    assert f"SEARCH s USING PRIMARY KEY {place}sequence_number>? AND sequence_number<?)" in found
    assert f"SEARCH r USING INDEX ix_retracted_row_number {place}sequence_number>? AND sequence_number<?)" in found
    assert plan_of(connection, taken) == [f"SEARCH r USING PRIMARY KEY {place}commit_number>? AND commit_number<?)"]
    found = plan_of(connection, rows_of_windows(OF, [window], [CommitSpan(1, "0", 0, 9)], WORDS))
    assert f"SEARCH s USING INDEX ix_home_activity_source {place}observed_at>? AND observed_at<?)" in found
    assert "SEARCH k USING AUTOMATIC COVERING INDEX (hubledger_since=? AND kind=? AND home_id=?)" in found
    assert f"SEARCH r USING PRIMARY KEY {place}commit_number>?)" in found
    found = plan_of(connection, as_of.standing_windows(OF, [window], WORDS))
    assert "SEARCH a USING PRIMARY KEY (home_id=? AND window_start=? AND kind=?)" in found


def test_the_rows_of_a_day_are_found_by_their_date(connection: sqlite3.Connection) -> None:
    of = aggregate_table(FlightPunctuality)
    for number, day in enumerate(("2026-02-09", "2026-02-10", "2026-02-11")):
        values = (number, day, f"{day}T12:00:00.000000Z")
        connection.execute(
            "INSERT INTO flight_change VALUES (1, '0', ?, 0, 1, 'LH', 1, ?, 'delayed', NULL, NULL, NULL, ?)", values
        )
    window = {"carrier": "LH", "window_start": NOON - timedelta(hours=12)}
    found = connection.execute(rows_of_windows(of, [window], [CommitSpan(1, "0", 0, 9)], WORDS)).fetchall()
    assert [row[1] for row in found] == ["2026-02-10"]


def test_windows_are_sought_in_portions_of_few_times() -> None:
    windows = [{"home_id": f"home-{at}", "window_start": NOON + timedelta(hours=at % 3)} for at in range(2_500)]
    found = list(portions(windows))
    assert [len(one) for one in found] == [1_000, 1_000, 500]
    assert [len({each["window_start"] for each in one}) for one in found] == [2, 2, 1]
