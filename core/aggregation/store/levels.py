"""The levels of an aggregate in SQL: those of a job, those of a staged result, and the steps that commit one."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from core.aggregation.kinds import overflow_text
from core.aggregation.runs import Part, Staged
from core.aggregation.silver import is_rows_job
from core.errors import SchemaMismatch
from core.store.columns import instant_of
from core.store.database import Database
from core.store.script import Step, of_rows
from core.transforms.aggregates import find_aggregate


def levels_text(job: str) -> str:
    """Return the names of the levels that this code declares for a job, as its row in `aggregation_cut` holds them."""
    return job if is_rows_job(job) else " ".join(one.name for one in find_aggregate(job).levels)


def level_mismatch(job: str) -> SchemaMismatch:
    """Return the error of a database that has different levels of a job than this code."""
    return SchemaMismatch(
        f"the database has levels of {job} that this code does not declare, or lacks some of {levels_text(job)}: deploy"
        " the app that belongs to the last migration, or add a migration (`bin/hubledger migrate-diff`)"
    )


def read_staged(database: Database, run_id: str) -> Staged | None:
    """Return the first complete result of a run; None when there is none."""
    found = database.ask("read_staged", run_id=run_id)
    if not found:
        return None
    staging_id, of_run, attempt, staged_at, levels, overflow = found[0]
    return Staged(staging_id, of_run, attempt, instant_of(staged_at), json.loads(levels), overflow)


def find_overflow(database: Database, job: str, staging_id: str) -> str | None:
    """Return the fault of a staged window that its stored one cannot take. None when every sum fits its column."""
    for level in find_aggregate(job).levels:
        for measure, begin in database.ask(of_rows("find_overflow", level.of), staging_id=staging_id):
            return overflow_text(level.name, measure, f"{begin[:19]}Z")
    return None


def verifying_step(level: type, part: Part, values: Mapping[str, Any], otherwise: Callable[[], Exception]) -> Step:
    """Return the step that compares the windows of a level in a portion with their facts."""
    return Step(of_rows("verify_slices", level), values, expect=part.slices, otherwise=otherwise)


def adding_steps(level: type, part: Part, values: Mapping[str, Any]) -> Iterator[Step]:
    """Return the steps that add the windows of a level in a portion."""
    if part.has_whole:
        yield Step(of_rows("replace_windows", level), values)
    yield Step(of_rows("add_windows", level), values)
