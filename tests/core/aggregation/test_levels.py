"""Every store commits the levels of an aggregate together, and refuses the commit of an app with different levels."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, cast

import pytest

import core.aggregation.tick
from core.aggregation.store import Aggregations
from core.aggregation.tick import commit_run
from core.errors import SchemaMismatch, StagingRefused, StoreUnavailable
from core.model.aggregates import SLICES
from examples.home_security.aggregates.home_activity import HomeActivity
from hubledger.cli.ddl.tables import added_text
from tests.fakes.aggregation_engines import (
    AggregatingStore,
    AggregationEngine,
    SqliteAggregation,
    aggregation_of,
    committed,
    slice_of,
)
from tests.fakes.builders import EPOCH
from tests.fakes.kept import PersistentEngine
from tests.fakes.rollups import rolled, with_levels
from tests.fakes.runs import FAR, HOMES, OF, Dying, close, last_run, opened_run, staged_result, stored, window

EIGHT = HOMES[:8]
NUMBERS = sorted({slice_of(home) for home in EIGHT})
MINUTES = (0, 15, 60, 1_425, 1_440)
FIRST = [window(home, minute) for home in EIGHT for minute in MINUTES]
SECOND = [window(home, minute, ppm=ppm) for home in EIGHT for minute, ppm in ((15, None), (30, 900), (2_880, None))]


@pytest.fixture
def database(persistent: PersistentEngine, monkeypatch: pytest.MonkeyPatch) -> AggregationEngine:
    """Each slice is a separate transaction."""
    monkeypatch.setattr(core.aggregation.tick, "PORTION", 1)
    return aggregation_of(persistent)


@pytest.fixture
def store(database: AggregationEngine) -> Iterator[AggregatingStore]:
    opened = cast(AggregatingStore, database.open())
    yield opened
    opened.close()


def run_of(store: Aggregations, database: AggregationEngine, windows: list[HomeActivity]) -> None:
    close(store, database, opened_run(store), *with_levels(windows))


def agree(store: Aggregations) -> bool:
    """Return True when each level is the sum of the finest one."""
    finest = stored(store)
    return all(stored(store, level) == rolled(finest, level) for level in OF.rollups)


def test_a_run_adds_to_the_windows_of_every_level(store: Aggregations, database: AggregationEngine) -> None:
    run_of(store, database, FIRST)
    run_of(store, database, SECOND)
    assert agree(store)
    first, *_ = stored(store, OF.rollups[-1])
    assert (first.window_start, first.readings, first.ppm_hundredths) == (EPOCH, 12, 2_900)
    assert [len(stored(store, level)) for level in OF.levels] == [7 * 8, 5 * 8, 3 * 8]
    closed = last_run(store)
    assert (closed.readings, closed.windows, closed.committed_slices) == (2 * 24, 24, SLICES)


@pytest.mark.parametrize("at", range(0, 2 * len(NUMBERS) + 2, 3))
def test_a_reader_sees_all_levels_of_a_home_change_at_once_wherever_a_commit_dies(
    store: Aggregations, database: AggregationEngine, at: int
) -> None:
    run_of(store, database, FIRST)
    run = opened_run(store)
    staged = staged_result(store, database, run, with_levels(SECOND))
    dying: Any = Dying(store, at)
    with pytest.raises(StoreUnavailable):
        committed(dying, run, staged, FAR)
    assert agree(store)
    if last_run(store).status != "committed":
        assert committed(store, last_run(store), staged, FAR)
    assert agree(store)
    assert len(stored(store)) == 7 * 8


TAMPERED = {
    "a changed count": "UPDATE {p}{t} SET readings = readings + 1 WHERE home_id = 'home-3'",
    "a changed instant": "UPDATE {p}{t} SET last_observed_at = first_observed_at WHERE home_id = 'home-3'",
    "a part that replaces": "UPDATE {p}{t} SET is_whole = 1 WHERE home_id = 'home-3'",
    "a deleted row": "DELETE FROM {p}{t} WHERE home_id = 'home-3'",
    "a changed window": "UPDATE {p}{t} SET kind = 'motion' WHERE home_id = 'home-3'",
    "deleted facts": "DELETE FROM {p}staged_slice WHERE level = '{l}' AND slice = {s}",
    "changed facts": "UPDATE {p}staged_slice SET windows = windows + 1 WHERE level = '{l}' AND slice = {s}",
    "facts of a different level": "UPDATE {p}staged_slice SET rows_hash = 7 WHERE level = '{l}' AND slice = {s}",
}


@pytest.mark.parametrize("level", OF.levels, ids=lambda level: level.name)
@pytest.mark.parametrize("name", TAMPERED)
def test_a_wrong_row_in_the_staging_of_any_level_is_refused_and_no_level_is_written(
    store: Aggregations, database: AggregationEngine, level: Any, name: str
) -> None:
    run = opened_run(store)
    staged = staged_result(store, database, run, with_levels(FIRST))
    names = {"t": level.staged, "l": level.name, "s": slice_of("home-3")}
    database.change(TAMPERED[name].format(p="{p}", **names))
    with pytest.raises(StagingRefused, match="is refused"):
        committed(store, run, staged, FAR)
    assert [stored(store, each, ["home-3"]) for each in OF.levels] == [[], [], []]
    assert agree(store)
    assert store.discard_staged(staged)
    again = staged_result(store, database, run, with_levels(FIRST), "again")
    assert committed(store, last_run(store), again, FAR)
    assert (stored(store), agree(store)) == (FIRST, True)


@pytest.mark.parametrize("level", OF.levels, ids=lambda level: level.name)
def test_a_slice_of_a_level_that_lacks_its_rows_and_their_facts_is_missed(
    store: Aggregations, database: AggregationEngine, level: Any
) -> None:
    run = opened_run(store)
    staged = staged_result(store, database, run, with_levels(FIRST))
    database.change(f"DELETE FROM {{p}}{level.staged} WHERE home_id = 'home-3'")
    database.change(f"DELETE FROM {{p}}staged_slice WHERE level = '{level.name}' AND slice = {slice_of('home-3')}")
    with pytest.raises(StagingRefused, match="the facts of some slices are missing"):
        committed(store, run, staged, FAR)
    assert stored(store) == []


def test_a_result_of_a_job_that_knew_other_levels_is_refused(store: Aggregations, database: AggregationEngine) -> None:
    run = opened_run(store)
    staged = staged_result(store, database, run, with_levels(FIRST))
    database.change("""UPDATE {p}staged_result SET levels = '{{"home_activity": 40}}'""")
    staged = store.read_staged(run.run_id) or staged
    with pytest.raises(
        StagingRefused, match="it has the levels home_activity and not home_activity, home_activity_day"
    ):
        committed(store, run, staged, FAR)
    assert stored(store) == []


def test_code_that_does_not_know_the_levels_of_the_database_commits_nothing(
    store: Aggregations, database: AggregationEngine
) -> None:
    run = opened_run(store)
    staged = staged_result(store, database, run, with_levels(FIRST))
    database.change("UPDATE {p}aggregation_cut SET levels = 'home_activity home_activity_month'")
    with pytest.raises(SchemaMismatch, match="deploy the app that belongs to the last migration"):
        commit_run(store, run, staged, lambda: FAR, FAR + timedelta(minutes=1))
    assert (stored(store), last_run(store).committed_slices) == ([], 0)


def migrate_again(database: AggregationEngine) -> None:
    """Empty the rollups, and fill them as a migration does."""
    for level in OF.rollups:
        database.change(f"DELETE FROM {{p}}{level.name}")
    text = added_text(OF, "sqlite" if isinstance(database, SqliteAggregation) else "sqlserver", ["hour", "day"])
    for statement in (one for one in text.split(";\n") if one.strip().startswith(("INSERT", "UPDATE"))):
        database.change(statement.strip().replace("hubledger.", "{p}"))


def test_a_level_that_is_added_later_holds_the_windows_of_before(
    store: Aggregations, database: AggregationEngine
) -> None:
    run_of(store, database, FIRST)
    run_of(store, database, SECOND)
    before = [stored(store, level) for level in OF.levels]
    migrate_again(database)
    assert [stored(store, level) for level in OF.levels] == before
    run_of(store, database, SECOND)
    assert agree(store)


@pytest.mark.parametrize("at", [1, 5, 9])
def test_a_level_that_is_added_between_two_slices_of_a_run_counts_each_slice_once(
    store: Aggregations, database: AggregationEngine, at: int
) -> None:
    run_of(store, database, FIRST)
    run = opened_run(store)
    staged = staged_result(store, database, run, with_levels(SECOND))
    dying: Any = Dying(store, at)
    with pytest.raises(StoreUnavailable):
        committed(dying, run, staged, FAR)
    migrate_again(database)
    assert agree(store)
    assert committed(store, last_run(store), staged, FAR)
    assert agree(store)
    assert len(stored(store)) == 7 * 8


def test_old_windows_of_a_level_are_removed_in_small_parts(store: Aggregations, database: AggregationEngine) -> None:
    run_of(store, database, FIRST)
    before = EPOCH + timedelta(days=1)
    assert [store.remove_windows(OF.of, before, 30) for _ in range(3)] == [30, 2, 0]
    assert stored(store) == [one for one in FIRST if one.window_start >= before]
    assert len(stored(store, OF.rollups[-1])) == 2 * 8
    assert store.remove_windows(OF.rollups[-1].of, before, 30) == 8
