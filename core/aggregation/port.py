"""The store that aggregation needs: runs, and the aggregate itself."""

from datetime import datetime
from typing import Protocol, TypeVar

from core.aggregation.commit import Portion
from core.aggregation.kinds import RunOrder
from core.aggregation.runs import AggregationRun, Cut, Failure, Reach, Staged, StagedSlice, Standing

Window = TypeVar("Window")


class AggregationStore(Protocol):
    """Stores runs and the aggregate; `tests/contract` checks every engine. Any method may raise StoreUnavailable.

    A method that returns a bool is a compare and set: it returns False and writes nothing when another process was
    first.
    """

    def read_standing(self, job: str) -> Standing:
        """Return the progress of a job, and the cut that the checkpoints of one moment allow."""

    def read_reach(self, cut: Cut, most_rows: int) -> Reach | None:
        """Return the end of a run that begins at a cut, after about `most_rows` rows; None without new commits.

        The commits of all partitions are taken side by side, and one commit at least.
        """

    def open_run(self, run: AggregationRun, order: RunOrder | None = None) -> bool:
        """Write a run and the intent to submit it, if the run begins at the job's cut, no run is open, nobody has
        paused the job, and the order of the run still waits."""

    def drop_order(self, job: str, order: RunOrder, why: str, at: datetime) -> bool:
        """End an order that never has a run, and write the reason into the history of its job."""

    def renew_intent(
        self, run: AggregationRun, attempt: int, intent_at: datetime, failure: Failure | None = None
    ) -> bool:
        """Write the intent to submit an open run again, as the same attempt or the next, and why it is submitted."""

    def note_submitted(self, run: AggregationRun, engine_job_id: str, submitted_at: datetime) -> bool:
        """Write the id that the engine gave to this attempt."""

    def note_failure(self, failure: Failure) -> None:
        """Write why a submit gave no result, if nothing is written of it yet."""

    def fail_run(self, run: AggregationRun, failure: str, closed_at: datetime, last: Failure | None = None) -> bool:
        """Close an open run without a result, and write why its last submit gave none; the cut does not move."""

    def read_staged(self, run_id: str) -> Staged | None:
        """Return a complete staged result of this run, or None."""

    def read_slices(self, staged: Staged) -> tuple[StagedSlice, ...]:
        """Return the slices of a staged result as its job described them: by number, and one for each level."""

    def commit_portion(self, run: AggregationRun, staged: Staged, portion: Portion) -> bool:
        """Compare the staged windows of some slices with the facts of their job, and add them, in one transaction.

        Raises StagingRefused when they differ, and SchemaMismatch when the database has different levels of the job.
        """

    def mark_lake(self, run: AggregationRun) -> bool:
        """Mark an open run, whose whole result is in the lake, as committed there: it can no longer be given up."""

    def close_run(self, run: AggregationRun, staged: Staged, closed_at: datetime) -> bool:
        """Move the cut and close the run, whose slices are all committed, in one transaction."""

    def discard_staged(self, staged: Staged) -> bool:
        """Take a staged result away, so that it is never committed."""

    def clear_staging(self) -> None:
        """Delete what closed runs have staged, in small transactions: no commit waits for it."""

    def remove_windows(self, level: type, before: datetime, most: int) -> int:
        """Delete windows of a level that begin before an instant, in one transaction; return their number.

        A number below `most` means that none is left.
        """

    def read_runs(self, job: str, before: int, limit: int) -> tuple[AggregationRun, ...]:
        """Return runs with a number below `before`, the newest first."""

    def read_committed_runs(self, job: str, after: int) -> tuple[AggregationRun, ...]:
        """Return committed runs with a number above `after`, the oldest first."""

    def read_windows(
        self, aggregate: type[Window], key: str | int, since: datetime, until: datetime
    ) -> tuple[Window, ...]:
        """Return the windows of a value of the first column of the key that begin in [since, until), in order."""

    def close(self) -> None:
        """Close every connection."""
