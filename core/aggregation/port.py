"""What every engine keeps of aggregation runs, and the aggregate; `tests/contract` holds them to it."""

from datetime import datetime
from typing import Protocol

from core.aggregation.activity import HomeActivity
from core.aggregation.runs import AggregationRun, Staged, Standing


class AggregationStore(Protocol):
    """What an engine keeps of aggregation runs, and the aggregate. Any method may raise StoreUnavailable.

    What returns a bool is a compare and set: False, and nothing was written, when another was first.
    """

    def read_standing(self, job: str) -> Standing:
        """Where a job stands, and how far the checkpoints are: all of them from one statement."""
        ...

    def open_run(self, run: AggregationRun) -> bool:
        """Make a run, with the intent to submit it, if the cut stands where it begins and no run is open."""
        ...

    def renew_intent(self, run: AggregationRun, attempt: int, intent_at: datetime) -> bool:
        """Decide on another submit of an open run, of the same attempt or of the next."""
        ...

    def note_submitted(self, run: AggregationRun, engine_job_id: str, submitted_at: datetime) -> bool:
        """The engine has this attempt, under an id of its own."""
        ...

    def fail_run(self, run: AggregationRun, failure: str, closed_at: datetime) -> bool:
        """Close an open run without a result; the cut stays."""
        ...

    def read_staged(self, run_id: str) -> Staged | None:
        """A result of this run that is staged whole, or None."""
        ...

    def commit_run(self, run: AggregationRun, staged: Staged, closed_at: datetime) -> bool:
        """Move the cut, add the staged windows, close the run, and take away what was staged, in one transaction."""
        ...

    def read_runs(self, job: str, before: int, limit: int) -> tuple[AggregationRun, ...]:
        """Runs with a number below `before`, the newest first."""
        ...

    def read_committed_runs(self, job: str, after: int) -> tuple[AggregationRun, ...]:
        """Committed runs with a number above `after`, the oldest first."""
        ...

    def read_activity(self, home_id: str, since: datetime, until: datetime) -> tuple[HomeActivity, ...]:
        """A home's windows that begin in [since, until), by window and kind."""
        ...

    def find_homes(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        """Ids of registered homes that begin with `prefix` and come after `after` ("": from the first), in order."""
        ...

    def close(self) -> None:
        """Let go of every connection."""
        ...
