"""Jobs that a person requests and may stop: their statuses, and the moves between them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

JobStatus = Literal["planned", "running", "paused", "done", "cancelled", "failed"]
JobVerb = Literal["begin", "pause", "resume", "cancel", "fail"]


@dataclass(frozen=True, slots=True)
class AllowedMove:
    """One row of the table of moves: from any of the sources to the target."""

    sources: tuple[JobStatus, ...]
    target: JobStatus


JOB_MOVES: Mapping[JobVerb, AllowedMove] = {
    "begin": AllowedMove(("planned",), "running"),
    "pause": AllowedMove(("planned", "running"), "paused"),
    "resume": AllowedMove(("paused",), "running"),
    "cancel": AllowedMove(("planned", "running", "paused"), "cancelled"),
    "fail": AllowedMove(("planned", "running", "paused"), "failed"),
}  # the last piece of the last partition makes a running job `done`


@dataclass(frozen=True, slots=True)
class JobMove:
    """A change of the status of a job, with its author and reason."""

    job_id: UUID
    move: JobVerb
    by: str
    why: str
    moved_at: datetime
    fault: str | None = None
