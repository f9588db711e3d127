"""Between aggregation runs and the columns of named SQL: parameters by name one way, rows the other."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from core.aggregation.activity import HomeActivity
from core.aggregation.runs import AggregationRun, Cut, Staged, Standing, cut_of
from core.store.records import instant_of, instant_text

MOST_FAILURE = 2_000  # characters that are kept of why a run failed
PREFIX_END = "\x7f"  # after every character that an id may have


def run_of(row: Sequence[Any]) -> AggregationRun:
    """One answer of `read_last_run`, `read_runs` or `read_committed_runs`."""
    (run_id, job, number, cut_from, cut_to, engine, attempt, submits, status, planned_at, intent_at, *later) = row
    engine_job_id, submitted_at, closed_at, failure, readings, windows, lake_path, is_snapshot = later
    return AggregationRun(
        run_id,
        job,
        number,
        Cut(cut_from),
        Cut(cut_to),
        engine,
        attempt,
        submits,
        status,
        instant_of(planned_at),
        instant_of(intent_at),
        engine_job_id,
        _instant(submitted_at),
        _instant(closed_at),
        failure,
        readings,
        windows,
        lake_path,
        bool(is_snapshot),
    )


def standing_of(
    cut: Sequence[Any], last_run: Sequence[Any] | None, commit_numbers: Sequence[Sequence[Any]]
) -> Standing:
    """The answers of `read_cut`, `read_last_run` and `read_commit_numbers` together."""
    reached = cut_of({(stream_id, partition_id): number for stream_id, partition_id, number in commit_numbers})
    return Standing(Cut(cut[0]), cut[1], None if last_run is None else run_of(last_run), reached)


def staged_of(row: Sequence[Any]) -> Staged:
    """One answer of `read_staged`."""
    staging_id, run_id, attempt, staged_at = row
    return Staged(staging_id, run_id, attempt, instant_of(staged_at))


def activity_of(row: Sequence[Any]) -> HomeActivity:
    """One answer of `read_activity`."""
    home_id, window_start, kind, readings, active, ppm, least, most, first_observed_at, last_observed_at = row
    first, last = instant_of(first_observed_at), instant_of(last_observed_at)
    return HomeActivity(home_id, instant_of(window_start), kind, readings, active, ppm, least, most, first, last)


def plan_values(run: AggregationRun) -> dict[str, Any]:
    """What `number_run` and `open_run` bind."""
    return {
        "run_id": run.run_id,
        "job": run.job,
        "run_number": run.number,
        "expected_number": run.number - 1,
        "cut_from": run.cut_from,
        "cut_to": run.cut_to,
        "engine": run.engine,
        "attempt": run.attempt,
        "submits": run.submits,
        "planned_at": instant_text(run.planned_at),
        "intent_at": instant_text(run.intent_at),
    }


def intent_values(run: AggregationRun, attempt: int, intent_at: datetime) -> dict[str, Any]:
    """What `renew_intent` binds."""
    return {
        "run_id": run.run_id,
        "attempt": attempt,
        "intent_at": instant_text(intent_at),
        "expected_attempt": run.attempt,
        "expected_intent_at": instant_text(run.intent_at),
    }


def submitted_values(run: AggregationRun, engine_job_id: str, submitted_at: datetime) -> dict[str, Any]:
    """What `note_submitted` binds."""
    return {
        "run_id": run.run_id,
        "attempt": run.attempt,
        "engine_job_id": engine_job_id,
        "submitted_at": instant_text(submitted_at),
    }


def failure_values(run: AggregationRun, failure: str, closed_at: datetime) -> dict[str, Any]:
    """What `fail_run` binds."""
    return {
        "run_id": run.run_id,
        "attempt": run.attempt,
        "failure": failure[:MOST_FAILURE],
        "closed_at": instant_text(closed_at),
    }


def commit_values(run: AggregationRun, staged: Staged, closed_at: datetime) -> dict[str, Any]:
    """What the statements of a run's commit bind."""
    return {
        "run_id": run.run_id,
        "job": run.job,
        "run_number": run.number,
        "cut_from": run.cut_from,
        "cut_to": run.cut_to,
        "staging_id": staged.staging_id,
        "closed_at": instant_text(closed_at),
    }


def homes_values(prefix: str, after: str, limit: int) -> dict[str, Any]:
    """What `find_homes` binds."""
    return {"prefix": prefix, "prefix_end": prefix + PREFIX_END, "after_id": after, "most": limit}


def span_values(home_id: str, since: datetime, until: datetime) -> dict[str, Any]:
    """What `read_activity` binds."""
    return {"home_id": home_id, "since_at": instant_text(since), "until_at": instant_text(until)}


def _instant(text: str | None) -> datetime | None:
    return None if text is None else instant_of(text)
