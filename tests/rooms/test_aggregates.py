"""The aggregates of a room: the store has the windows that plain Python computes from the samples, at every level."""

from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import pytest

from core.aggregation.runs import planned_run
from core.model.aggregates import Aggregate
from core.transforms.loading import Room, load_aggregates
from tests.fakes.aggregation_engines import AggregatingStore, AggregationEngine, aggregation_of, committed
from tests.fakes.kept import PersistentEngine
from tests.fakes.rollups import rolled, windows_of, with_levels
from tests.fakes.runs import LATER, NOW, staged_result
from tests.rooms.found import outcomes_of, transform_of
from tests.rooms.world import ingested

EVER = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


@pytest.fixture
def database(engine: PersistentEngine) -> AggregationEngine:
    return aggregation_of(engine)


def test_every_level_has_the_windows_of_the_samples(room: Room, database: AggregationEngine) -> None:
    store = database.open()
    assert isinstance(store, AggregatingStore)
    ingested(room, store)
    for one in load_aggregates(transform_of(room).row_classes):
        rows = [row for found in outcomes_of(room) for row in found.rows if type(row) is one.source]
        windows = windows_of(rows, one)
        assert windows, f"no sample becomes a row of {one.source.__name__}, so {one.name} has no window"
        run = planned_run(one.name, store.read_standing(one.name), "local", NOW)
        assert run is not None
        assert store.open_run(run)
        assert committed(store, run, staged_result(store, database, run, with_levels(windows)), LATER)
        for level in one.levels:
            assert stored(store, level, windows) == rolled(windows, level), level.name
    store.close()


def stored(store: AggregatingStore, level: Aggregate, windows: list[Any]) -> list[Any]:
    """Return the windows of a level, in the order of its key."""
    values = sorted({getattr(one, level.key[0]) for one in windows})
    of: type[Any] = level.of
    found = [one for value in values for one in store.read_windows(of, value, *EVER)]
    found.sort(key=attrgetter(*level.key))
    return found
