"""Every store finds a sum beyond 64 bits before it adds a window, and stops its job with the run."""

from dataclasses import replace

import pytest

from core.aggregation.orders import Pipelines
from core.aggregation.runs import Failure, Order, overflow_text
from examples.home_security.aggregates.home_activity import HomeActivity
from tests.fakes.aggregation_engines import HOME_ACTIVITY, AggregatingStore, AggregationEngine, committed, finish, stage
from tests.fakes.rollups import with_levels
from tests.fakes.runs import LATER, NOW, close, last_run, opened_run, staged_result, stored, window

GREATEST, LEAST = 2**63 - 1, -(2**63)
FAULT = overflow_text(HOME_ACTIVITY, "ppm_hundredths", "2026-01-01T00:00:00Z")
OF_MINUTE = "2026-01-01T00:15:00Z"


def measured(home_id: str, ppm: int | None, minute: int = 0) -> HomeActivity:
    return replace(window(home_id, minute), ppm_hundredths=ppm)


def fault_of(store: AggregatingStore, database: AggregationEngine, *windows: HomeActivity) -> str | None:
    """Open a run of these windows, and return the fault of its result."""
    run = opened_run(store)
    return store.find_overflow(run, staged_result(store, database, run, windows))


@pytest.mark.parametrize(
    ("standing", "staged", "fits"),
    [
        (GREATEST - 5, 5, True),
        (GREATEST - 5, 6, False),
        (GREATEST, GREATEST, False),
        (LEAST + 5, -5, True),
        (LEAST + 5, -6, False),
        (LEAST, LEAST, False),
        (GREATEST, LEAST, True),
        (LEAST, GREATEST, True),
        (None, GREATEST, True),
        (GREATEST, None, True),
    ],
)
def test_a_sum_of_64_bits_is_added_and_one_beyond_is_found_before_any_window(
    store: AggregatingStore, database: AggregationEngine, standing: int | None, staged: int | None, fits: bool
) -> None:
    close(store, database, opened_run(store), measured("home-1", standing), measured("home-2", 1))
    windows = [measured("home-2", 1), measured("home-3", GREATEST), measured("home-1", staged)]
    if not fits:
        assert fault_of(store, database, *windows) == FAULT
        assert stored(store) == [measured("home-1", standing), measured("home-2", 1)]
        return
    run = opened_run(store)
    result = staged_result(store, database, run, windows)
    assert store.find_overflow(run, result) is None
    assert committed(store, run, result, LATER)
    (added,) = stored(store, homes=["home-1"])
    whole = None if standing is None and staged is None else (standing or 0) + (staged or 0)
    assert added.ppm_hundredths == whole


def test_a_window_of_a_coarser_level_is_found_too(store: AggregatingStore, database: AggregationEngine) -> None:
    windows = with_levels([measured("home-1", GREATEST), measured("home-1", -9, minute=15)])
    close(store, database, opened_run(store), *windows)
    later = with_levels([measured("home-1", 10, minute=30)])
    found = fault_of(store, database, *later)
    assert found == overflow_text("home_activity_hour", "ppm_hundredths", "2026-01-01T00:00:00Z")


def test_a_count_beyond_64_bits_is_found(store: AggregatingStore, database: AggregationEngine) -> None:
    close(store, database, opened_run(store), replace(window(minute=15), readings=GREATEST))
    assert fault_of(store, database, window(minute=15)) == overflow_text(HOME_ACTIVITY, "readings", OF_MINUTE)


def test_a_window_that_replaces_the_stored_one_adds_nothing(
    store: AggregatingStore, database: AggregationEngine
) -> None:
    close(store, database, opened_run(store), measured("home-1", GREATEST))
    run = opened_run(store)
    stage(database, "s", run.run_id, [measured("home-1", GREATEST)], whole=True)
    finish(database, "s", run.run_id, LATER)
    staged = store.read_staged(run.run_id)
    assert staged is not None
    assert store.find_overflow(run, staged) is None


def test_a_job_that_found_an_overflow_itself_names_it(store: AggregatingStore, database: AggregationEngine) -> None:
    run = opened_run(store)
    staged = staged_result(store, database, run, [])
    assert staged.overflow is None
    database.change(f"UPDATE {{p}}staged_result SET overflow = '{FAULT}'")
    again = store.read_staged(run.run_id)
    assert again is not None
    assert store.find_overflow(run, again) == FAULT


def test_a_stop_closes_the_run_and_pauses_its_job_in_one_transaction_once(
    store: AggregatingStore, database: AggregationEngine
) -> None:
    run = opened_run(store)
    staged = staged_result(store, database, run, [window()])
    failure = Failure(run.run_id, run.submits, run.attempt, NOW, "what", reason=FAULT)
    assert store.stop_run(run, staged, FAULT, failure)
    assert not store.stop_run(run, staged, FAULT, failure)
    standing = store.read_standing(HOME_ACTIVITY)
    assert standing.pause is not None
    assert (standing.pause.who, standing.pause.reason, standing.pause.at) == ("the app", FAULT, NOW)
    assert (last_run(store).status, last_run(store).failure, standing.open_run) == ("failed", FAULT, None)
    pipelines = Pipelines(store.database)
    assert pipelines.read_failures(run.run_id) == (failure,)
    pipelines.resume(Order(HOME_ACTIVITY, "resume", "somebody", "the measure is gone", LATER))
    assert opened_run(store).number == run.number + 1


def test_a_job_that_somebody_paused_first_keeps_its_run(store: AggregatingStore, database: AggregationEngine) -> None:
    run = opened_run(store)
    staged = staged_result(store, database, run, [window()])
    Pipelines(store.database).pause(Order(HOME_ACTIVITY, "pause", "somebody", "a look", NOW))
    assert not store.stop_run(run, staged, FAULT, Failure(run.run_id, 1, 1, NOW, "what"))
    assert store.read_standing(HOME_ACTIVITY).open_run == run


def test_a_run_with_committed_slices_stays_open_without_the_result(
    store: AggregatingStore, database: AggregationEngine
) -> None:
    """The next run would count its slices again."""
    run = opened_run(store)
    staged = staged_result(store, database, run, [window()])
    database.change("UPDATE {p}aggregation_run SET committed_slices = 7")
    begun = last_run(store)
    assert store.find_overflow(begun, staged) is None
    assert store.stop_run(begun, staged, FAULT, Failure(run.run_id, 1, 1, NOW, "what"))
    standing = store.read_standing(HOME_ACTIVITY)
    assert (standing.open_run, standing.pause is not None) == (begun, True)
    assert store.read_staged(run.run_id) is None
