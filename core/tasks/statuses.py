"""Tasks: what a person requests and what takes more than one transaction, with their statuses and the moves."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

TaskStatus = Literal["planned", "running", "paused", "done", "cancelled", "failed"]
TaskVerb = Literal["begin", "pause", "resume", "cancel", "fail"]
OPEN: tuple[TaskStatus, ...] = ("planned", "running", "paused")


@dataclass(frozen=True, slots=True)
class AllowedMove:
    """One row of the table of moves: from any of the sources to the target."""

    sources: tuple[TaskStatus, ...]
    target: TaskStatus


TASK_MOVES: Mapping[TaskVerb, AllowedMove] = {
    "begin": AllowedMove(("planned",), "running"),
    "pause": AllowedMove(("planned", "running"), "paused"),
    "resume": AllowedMove(("paused",), "running"),
    "cancel": AllowedMove(OPEN, "cancelled"),
    "fail": AllowedMove(OPEN, "failed"),
}  # the last piece of the last part makes a running task `done`


@dataclass(frozen=True, slots=True)
class TaskMove:
    """A change of the status of a task, with its author and reason."""

    task_id: UUID
    move: TaskVerb
    by: str
    why: str
    moved_at: datetime
    fault: str | None = None
    transform_version: str | None = None  # with which the task goes on; None: as before
