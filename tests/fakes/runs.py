"""Runs of home_activity for the tests of stores: their windows and results, and a process that dies."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from core.aggregation.runs import AggregationRun, Portion, Staged, StagedSlice, planned_run
from core.aggregation.store import Aggregations
from core.errors import StoreUnavailable
from core.model.aggregates import Aggregate, aggregate_table
from examples.home_security.aggregates.home_activity import HomeActivity
from tests.fakes.aggregation_engines import HOME_ACTIVITY, AggregationEngine, committed, finish, ingest, stage
from tests.fakes.builders import EPOCH, reading

NOW = EPOCH + timedelta(days=1, microseconds=123_457)
LATER = NOW + timedelta(minutes=5)
FAR = EPOCH + timedelta(days=900)
OF = aggregate_table(HomeActivity)
HOMES = [f"home-{number}" for number in range(12)]


def window(home_id: str = "home-1", minute: int = 0, readings: int = 2, ppm: int | None = 500) -> HomeActivity:
    at = EPOCH + timedelta(minutes=minute)
    last = at + timedelta(minutes=3, microseconds=7)
    return HomeActivity(home_id, at, "carbon_monoxide", readings, 1, ppm, ppm, ppm, at, last)


def planned(store: Aggregations) -> AggregationRun:
    run = planned_run(HOME_ACTIVITY, store.read_standing(HOME_ACTIVITY), "local", NOW)
    assert run is not None
    return run


def opened_run(store: Aggregations) -> AggregationRun:
    ingest(store, [reading()])
    run = planned(store)
    assert store.open_run(run)
    return run


def last_run(store: Aggregations) -> AggregationRun:
    run = store.read_standing(HOME_ACTIVITY).last_run
    assert run is not None
    return run


def staged_result(
    store: Aggregations, database: AggregationEngine, run: AggregationRun, windows: Sequence[Any], name: str = "s"
) -> Staged:
    """Stage a complete result of a run as its job does. Return the first result of the run."""
    stage(database, f"{run.run_id}-{name}", run.run_id, windows)
    finish(database, f"{run.run_id}-{name}", run.run_id, LATER)
    staged = store.read_staged(run.run_id)
    assert staged is not None
    return staged


def close(store: Aggregations, database: AggregationEngine, run: AggregationRun, *windows: Any) -> None:
    assert committed(store, run, staged_result(store, database, run, windows), LATER)


def stored(store: Aggregations, level: Aggregate = OF, homes: Sequence[str] = HOMES) -> list[Any]:
    of: type[Any] = level.of
    return [one for home in homes for one in store.read_windows(of, home, EPOCH, FAR)]


class Dying:
    """A store whose process dies around a transaction: before it with an even number, and after it with an odd one."""

    def __init__(self, store: Aggregations, at: int) -> None:
        self._store = store
        self._left = at

    def read_slices(self, staged: Staged) -> tuple[StagedSlice, ...]:
        return self._store.read_slices(staged)

    def commit_portion(self, run: AggregationRun, staged: Staged, portion: Portion) -> bool:
        return self._around(lambda: self._store.commit_portion(run, staged, portion))

    def close_run(self, run: AggregationRun, staged: Staged, closed_at: datetime) -> bool:
        return self._around(lambda: self._store.close_run(run, staged, closed_at))

    def _around(self, write: Callable[[], bool]) -> bool:
        self._die()
        done = write()
        self._die()
        return done

    def _die(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise StoreUnavailable("killed")
