"""core/aggregation/tick.py over the embedded store: old windows go between two runs, and nothing else does."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from core.aggregation.runs import RunLimits
from core.aggregation.tick import Aggregation, AggregationReport, aggregate, remove_old_windows, report_facts
from core.model.commits import ROWS_AT_ONCE
from core.store.columns import instant_text
from tests.fakes.aggregation_engines import AggregatingStore, ingest
from tests.fakes.builders import EPOCH, FakeClock, reading
from tests.fakes.engines import SqliteEngine
from tests.fakes.kept_activity import KEEP, KEPT_ACTIVITY, OF, KeptActivity, create_tables
from tests.fakes.ticks import FakeEngine

DAY, QUARTER = timedelta(days=1), timedelta(minutes=15)
MIDNIGHT = FakeClock().now().replace(hour=0, minute=0, second=0, microsecond=0)
FAR = EPOCH + 900 * DAY


@dataclass
class World:
    """A store with the tables of an aggregate that is kept for a week, and a clock."""

    sqlite: SqliteEngine
    clock: FakeClock = field(default_factory=FakeClock)

    def __post_init__(self) -> None:
        self.store = AggregatingStore(self.sqlite.database())
        create_tables(self.sqlite)
        self.own = Aggregation(self.store, FakeEngine(), None, self.clock.now, RunLimits())

    def put(self, *starts: datetime, level: str = OF.name) -> None:
        for number, at in enumerate(starts):
            row = (f"home-{number % 7}", instant_text(at), 1, instant_text(at), 1, 0)
            self.sqlite.sql(f"INSERT INTO {level} VALUES (?, ?, ?, ?, ?, ?)", *row)

    def starts(self, level: type[KeptActivity] = KeptActivity) -> list[datetime]:
        homes = [f"home-{number}" for number in range(7)]
        found = (self.store.read_windows(level, home, MIDNIGHT - 900 * DAY, FAR) for home in homes)
        return sorted(one.window_start for windows in found for one in windows)

    def tick(self) -> AggregationReport:
        return aggregate(self.own, KEPT_ACTIVITY)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(SqliteEngine(tmp_path / "store.db"))
    yield made
    made.store.close()


def test_a_tick_removes_the_windows_of_a_level_after_their_time_and_logs_their_number(world: World) -> None:
    horizon = MIDNIGHT - KEEP
    world.put(horizon - 30 * DAY, horizon - QUARTER, horizon, horizon + QUARTER, MIDNIGHT)
    world.put(horizon - 30 * DAY, horizon, level=OF.rollups[0].name)
    report = world.tick()
    assert world.starts() == [horizon, horizon + QUARTER, MIDNIGHT]
    assert world.starts(OF.rollups[0].of) == [horizon - 30 * DAY, horizon]
    assert report_facts(KEPT_ACTIVITY, report)["removed"] == {"kept_activity": 2}
    assert "removed" not in report_facts(KEPT_ACTIVITY, world.tick())
    world.clock.advance(DAY.total_seconds())
    assert world.tick().removed == {"kept_activity": 2}


def test_nothing_is_removed_while_a_run_is_open_because_it_may_add_to_old_windows(world: World) -> None:
    ingest(world.store, [reading()])
    assert world.tick().did == ("submitted",)
    world.put(MIDNIGHT - 30 * DAY)
    assert world.tick().removed == {}
    assert world.starts() == [MIDNIGHT - 30 * DAY]


def test_many_old_windows_are_removed_in_small_transactions_as_far_as_the_time_of_a_tick_goes(world: World) -> None:
    old = MIDNIGHT - 900 * DAY
    world.put(*(old + number * QUARTER for number in range(ROWS_AT_ONCE + 1)))
    now = world.clock.now()
    times = iter([now, now, *[now + timedelta(hours=1)] * 9])
    assert remove_old_windows(world.store, KEPT_ACTIVITY, lambda: next(times)) == {"kept_activity": ROWS_AT_ONCE}
    assert len(world.starts()) == 1
    assert remove_old_windows(world.store, KEPT_ACTIVITY, world.clock.now) == {"kept_activity": 1}
