from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from core.aggregation.runs import HELD, Portion, StagedSlice
from core.aggregation.store import Aggregations
from core.aggregation.tick import PORTION, commit_run, next_portion
from core.errors import SchemaMismatch, StagingRefused, StoreUnavailable
from core.model.aggregates import SLICES
from examples.home_security.aggregates.home_activity import HomeActivity
from hubledger.cli.ddl.tables import added_text
from tests.fakes.aggregation_engines import HOME_ACTIVITY, AggregationEngine, SqliteAggregation, committed, slice_of
from tests.fakes.builders import EPOCH
from tests.fakes.rollups import rolled, with_levels
from tests.fakes.runs import FAR, HOMES, NOW, OF, Dying, close, last_run, opened_run, staged_result, stored, window

NUMBERS = sorted({slice_of(home) for home in HOMES})


EIGHT = HOMES[:8]
MINUTES = (0, 15, 60, 1_425, 1_440)
FIRST = [window(home, minute) for home in EIGHT for minute in MINUTES]
SECOND = [window(home, minute, ppm=ppm) for home in EIGHT for minute, ppm in ((15, None), (30, 900), (2_880, None))]
WINDOWS = [
    replace(window(home, minute), least_ppm_hundredths=200, most_ppm_hundredths=300)
    for home in HOMES
    for minute in (0, 15)
]


def run_of(store: Aggregations, database: AggregationEngine, windows: list[HomeActivity]) -> None:
    close(store, database, opened_run(store), *with_levels(windows))


def agree(store: Aggregations) -> bool:
    finest, homes = stored(store), sorted(HOMES)
    return all(stored(store, level, homes) == rolled(finest, level) for level in OF.rollups)


OF_HOME = "home_id = 'home-3' AND window_start = (SELECT {} (window_start) FROM {{p}}{{t}})"
FIRST_OF_HOME, LAST_OF_HOME = OF_HOME.format("MIN"), OF_HOME.format("MAX")
TAMPERED = {
    "a changed sum": "UPDATE {p}{t} SET readings = readings + 1 WHERE " + FIRST_OF_HOME,
    "sums that are moved between windows": (
        f"UPDATE {{p}}{{t}} SET readings = readings + CASE WHEN {FIRST_OF_HOME} THEN 1"
        f" WHEN {LAST_OF_HOME} THEN -1 ELSE 0 END WHERE home_id = 'home-3'"
    ),
    "a changed minimum": "UPDATE {p}{t} SET least_ppm_hundredths = NULL WHERE " + FIRST_OF_HOME,
    "a changed instant": "UPDATE {p}{t} SET last_observed_at = first_observed_at WHERE " + FIRST_OF_HOME,
    "a changed key": "UPDATE {p}{t} SET kind = 'motion' WHERE " + FIRST_OF_HOME,
    "a part that replaces": "UPDATE {p}{t} SET is_whole = 1 WHERE " + FIRST_OF_HOME,
    "a deleted row": "DELETE FROM {p}{t} WHERE " + FIRST_OF_HOME,
    "a row in a different slice": "UPDATE {p}{t} SET slice = 255 - slice WHERE " + FIRST_OF_HOME,
    "a row that is doubled in a different slice": (
        "INSERT INTO {p}{t} (staging_id, slice, home_id, window_start, kind, run_id, is_whole,"
        " readings, active, ppm_hundredths, least_ppm_hundredths, most_ppm_hundredths, first_observed_at,"
        " last_observed_at) SELECT g.staging_id, 255 - g.slice, g.home_id, g.window_start, g.kind,"
        " g.run_id, g.is_whole, g.readings, g.active, g.ppm_hundredths, g.least_ppm_hundredths,"
        " g.most_ppm_hundredths, g.first_observed_at, g.last_observed_at"
        " FROM {p}{t} AS g WHERE g.home_id = 'home-3'"
    ),
    "a deleted slice": "DELETE FROM {p}{t} WHERE home_id = 'home-3'",
    "deleted facts": "DELETE FROM {p}staged_slice WHERE level = '{l}' AND slice = {s}",
    "changed facts": "UPDATE {p}staged_slice SET windows = windows + 1 WHERE level = '{l}' AND slice = {s}",
    "a changed hash": "UPDATE {p}staged_slice SET rows_hash = 7 WHERE level = '{l}' AND slice = {s}",
}


@pytest.mark.parametrize("level", OF.levels, ids=lambda level: level.name)
@pytest.mark.parametrize("name", TAMPERED)
def test_a_result_that_is_not_what_its_job_staged_is_refused_and_another_result_takes_its_place(
    store: Aggregations, database: AggregationEngine, single: None, level: Any, name: str
) -> None:
    run = opened_run(store)
    staged = staged_result(store, database, run, with_levels(FIRST))
    names = {"t": level.staged, "l": level.name, "s": slice_of("home-3")}
    database.change(TAMPERED[name].format(p="{p}", **names))
    with pytest.raises(StagingRefused, match=f"staging {run.run_id}-s is refused"):
        committed(store, run, staged, NOW)
    assert [stored(store, each, ["home-3"]) for each in OF.levels] == [[], [], []]
    assert (last_run(store).status, store.read_standing(HOME_ACTIVITY).cut) == ("submitting", run.cut_from)
    assert agree(store)
    assert store.discard_staged(staged)
    assert not store.discard_staged(staged)
    assert store.read_staged(run.run_id) is None
    again = staged_result(store, database, run, with_levels(FIRST), "again")
    assert committed(store, last_run(store), again, NOW)
    assert (stored(store), agree(store)) == (FIRST, True)


def test_a_pause_holds_a_run_between_its_slices(store: Aggregations, database: AggregationEngine, single: None) -> None:
    run = opened_run(store)
    staged = staged_result(store, database, run, WINDOWS)
    asked = 0

    def paused_before_the_third() -> datetime:
        nonlocal asked
        asked += 1
        if asked == 3:
            database.change("UPDATE {p}aggregation_cut SET paused_at = '2026-01-01T00:00:00.000000'")
        return NOW

    assert commit_run(store, run, staged, paused_before_the_third, NOW + timedelta(1)) == HELD
    assert last_run(store).committed_slices == NUMBERS[1] + 1
    database.change("UPDATE {p}aggregation_cut SET paused_at = NULL")
    assert committed(store, last_run(store), staged, NOW)
    assert stored(store) == WINDOWS


@pytest.mark.parametrize(
    ("change", "undo"),
    [
        pytest.param("paused_at = '2026-01-01T00:00:00.000000'", "paused_at = NULL", id="a pause"),
        pytest.param("cut = '{{\"1/0\":7}}'", "cut = '{{}}'", id="a cut that has moved since the last slice"),
    ],
)
def test_the_cut_holds_the_run_open(store: Aggregations, database: AggregationEngine, change: str, undo: str) -> None:
    run = opened_run(store)
    staged = staged_result(store, database, run, WINDOWS)
    portion = next_portion(store.read_slices(staged), 0, PORTION)
    assert portion is not None
    assert store.commit_portion(run, staged, portion)
    database.change(f"UPDATE {{p}}aggregation_cut SET {change}")
    held = store.read_standing(HOME_ACTIVITY)
    assert not store.close_run(last_run(store), staged, NOW)
    assert store.read_standing(HOME_ACTIVITY) == held
    database.change(f"UPDATE {{p}}aggregation_cut SET {undo}")
    assert store.close_run(last_run(store), staged, NOW)


def test_a_key_with_an_end_of_a_line_or_marks_of_our_own_is_no_tampering_and_each_window_keeps_its_slice(
    store: Aggregations, database: AggregationEngine
) -> None:
    homes = ["a\nb", "a|b", "👩", "é", "a\n"]
    windows = [window(home) for home in homes]
    close(store, database, opened_run(store), *windows)
    assert stored(store, homes=homes) == windows
    kept = database.change("SELECT home_id, slice FROM {p}home_activity")
    assert {tuple(row) for row in kept} == {(home, slice_of(home)) for home in homes}


@pytest.mark.parametrize("at", range(2 * len(NUMBERS) + 2))
def test_a_commit_that_dies_between_any_two_slices_is_continued_and_counts_once(
    store: Aggregations, database: AggregationEngine, single: None, at: int
) -> None:
    run = opened_run(store)
    staged = staged_result(store, database, run, with_levels(WINDOWS))
    dying: Any = Dying(store, at)
    with pytest.raises(StoreUnavailable):
        committed(dying, run, staged, NOW)
    found = stored(store)
    assert all(found.count(one) == found.count(other) for one, other in zip(WINDOWS[::2], WINDOWS[1::2], strict=True))
    assert len(found) == 2 * len([home for home in HOMES if slice_of(home) in NUMBERS[: (at + 1) // 2]])
    assert agree(store)
    left = last_run(store)
    if left.status != "committed":
        assert committed(store, left, staged, NOW)
    assert (stored(store), agree(store)) == (WINDOWS, True)
    closed = last_run(store)
    assert (closed.status, closed.committed_slices, closed.readings, closed.windows) == ("committed", SLICES, 48, 24)
    assert store.read_standing(HOME_ACTIVITY).cut == run.cut_to


def test_ticks_at_once_commit_each_slice_once(store: Aggregations, database: AggregationEngine, single: None) -> None:
    run = opened_run(store)
    staged = staged_result(store, database, run, WINDOWS)

    def tick(_: int) -> bool:
        while (now := last_run(store)).status != "committed":
            if committed(store, now, staged, NOW):
                return True
        return False

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(tick, range(4))).count(True) == 1
    assert stored(store) == WINDOWS


def test_slices_of_two_attempts_make_one_run(store: Aggregations, database: AggregationEngine, single: None) -> None:
    run = opened_run(store)
    staged = staged_result(store, database, run, WINDOWS)
    dying: Any = Dying(store, 5)
    with pytest.raises(StoreUnavailable):
        committed(dying, run, staged, NOW)
    assert not store.fail_run(last_run(store), "why", NOW), "the next run would count its slices again"
    assert store.discard_staged(staged)
    assert committed(store, last_run(store), staged_result(store, database, run, WINDOWS, "again"), NOW)
    assert stored(store) == WINDOWS


def test_small_slices_share_a_transaction_and_a_large_one_has_its_own() -> None:
    sizes = ((0, PORTION - 1_000), (7, 900), (9, 200), (11, PORTION + 1_000))
    slices = [StagedSlice(number, windows, 0, "a") for number, windows in sizes]
    slices.append(StagedSlice(200, 1, 1, "a"))
    assert [next_portion(slices, first, PORTION) for first in (0, 8, 10, 12)] == [
        Portion(0, 7, tuple(slices[:2])),
        Portion(8, 9, (slices[2],)),
        Portion(10, 11, (slices[3],)),
        Portion(12, SLICES - 1, (slices[4],)),
    ]
    assert next_portion(slices, SLICES, PORTION) is next_portion([], 0, PORTION) is None
    levels = [StagedSlice(number, 40, 0, level) for number in (3, 5) for level in ("a", "b")]  # of a slice together
    assert next_portion(levels, 0, 159) == Portion(0, 3, tuple(levels[:2]))
    assert next_portion(levels, 4, 159) == Portion(4, SLICES - 1, tuple(levels[2:]))


LACKING = [
    f"DELETE FROM {{p}}home_activity_hour_staged WHERE {slice_of('home-3')} = slice",
    f"DELETE FROM {{p}}staged_slice WHERE level = 'home_activity_hour' AND slice = {slice_of('home-3')}",
]
OTHER_LEVELS = """UPDATE {p}staged_result SET levels = '{{"home_activity": 40}}'"""
LATER_LEVELS = "UPDATE {p}aggregation_cut SET levels = 'home_activity home_activity_month'"


@pytest.mark.parametrize(
    ("statements", "told"),
    [
        pytest.param(LACKING, "the facts of some slices are missing", id="a slice lacks its rows and their facts"),
        pytest.param([OTHER_LEVELS], "it has the levels home_activity and not home_activity, home", id="an old job"),
        pytest.param([LATER_LEVELS], "deploy the app that belongs to the last migration", id="an old app"),
    ],
)
def test_a_result_without_the_levels_of_the_database_is_refused_whole(
    store: Aggregations, database: AggregationEngine, statements: list[str], told: str
) -> None:
    run = opened_run(store)
    staged_result(store, database, run, with_levels(FIRST))
    for statement in statements:
        database.change(statement)
    staged = store.read_staged(run.run_id)
    assert staged is not None
    with pytest.raises((StagingRefused, SchemaMismatch), match=told):
        committed(store, run, staged, FAR)
    assert (stored(store), last_run(store).committed_slices) == ([], 0)


@pytest.mark.parametrize("at", [1, 5, 9])
def test_a_level_that_is_added_between_two_slices_of_a_run_holds_the_windows_of_before_and_counts_each_slice_once(
    store: Aggregations, database: AggregationEngine, single: None, at: int
) -> None:
    run_of(store, database, FIRST)
    run = opened_run(store)
    staged = staged_result(store, database, run, with_levels(SECOND))
    dying: Any = Dying(store, at)
    with pytest.raises(StoreUnavailable):
        committed(dying, run, staged, FAR)
    before = [stored(store, level) for level in OF.levels]
    for level in OF.rollups:  # as a migration does
        database.change(f"DELETE FROM {{p}}{level.name}")
    text = added_text(OF, "sqlite" if isinstance(database, SqliteAggregation) else "sqlserver", ["hour", "day"])
    for statement in (one for one in text.split(";\n") if one.strip().startswith(("INSERT", "UPDATE"))):
        database.change(statement.strip().replace("hubledger.", "{p}"))
    assert [stored(store, level) for level in OF.levels] == before
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
