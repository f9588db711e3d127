"""A task and its parts: the request, how far it is, and what each part has found.

A task works through its parts piece by piece. Each piece is one transaction that also advances its part, by compare and
set: so a piece is done once, however many workers drive the task, and a task that is not `running` does not proceed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

import msgspec

from core.model.events import Span, Stream
from core.model.shapes import Answered, Reason, Shape, reader_of
from core.tasks.statuses import TaskStatus

LONGEST_REST = timedelta(seconds=2)  # between two pieces: a second of the cap, and one between the clocks of two hosts
Report = TypeVar("Report")


@dataclass(frozen=True, slots=True)
class PartRequest:
    """A part of a new task: its name, its range of numbers if it has one, where it begins, and its request as JSON."""

    name: str
    position: int = 0
    span: Span | None = None
    asked: str = "null"
    report: str = "{}"


@dataclass(frozen=True, slots=True)
class TaskOrder:
    """The facts of every new task: its id and stream, and who orders it, why and when. The client makes the id, and the
    digest tells its request from others. The app's own tasks have none."""

    task_id: UUID
    stream_id: int
    by: str
    why: str
    at: datetime
    digest: str = ""


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """A task before it begins. `asked` is the request as JSON. Two tasks of a kind with the same `key` are never open
    together. If the kind `holds_numbers`, two open tasks never have a number of a part in common. Dry runs do not
    count. `most_open` is the limit of open tasks of the kind. `transform_version` names the kind's transform."""

    order: TaskOrder
    kind: str
    key: str
    asked: str
    parts: tuple[PartRequest, ...]
    total: int | None = None
    per_second: int | None = None
    is_dry_run: bool = False
    holds_numbers: bool = False
    most_open: int = 1
    transform_version: str | None = None


@dataclass(frozen=True, slots=True)
class TaskPart:
    """A part of a task: `step` counts its pieces, the next one begins at `position`, and `report` is what it has found
    or done so far, as JSON."""

    name: str
    span: Span | None
    position: int
    step: int
    asked: str
    report: str
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """A task without its parts. `fault` is the fault that holds it up or ended it. `history` has one JSON object per
    line. Only drivers with its `transform_version` do its pieces."""

    task_id: UUID
    kind: str
    stream: Stream
    stream_id: int
    status: TaskStatus
    is_dry_run: bool
    asked: str
    request_digest: str
    total: int
    pieces: int
    per_second: int | None
    next_piece_at: datetime
    requested_by: str
    reason: str
    requested_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    updated_at: datetime
    fault: str | None
    history: str
    transform_version: str | None


@dataclass(frozen=True, slots=True)
class Task(TaskFacts):
    """A task as it is now."""

    parts: tuple[TaskPart, ...]

    @property
    def open_part(self) -> TaskPart | None:
        """The first part that is not closed, or None."""
        return next((one for one in self.parts if one.closed_at is None), None)

    def part(self, name: str) -> TaskPart | None:
        """Return a part, or None."""
        return next((one for one in self.parts if one.name == name), None)


@dataclass(frozen=True, slots=True)
class Advance:
    """The progress of a part after a piece. Before the piece, the part had made `step` pieces.

    The next piece begins at `position`. `report` has the figures of the whole part so far. `counts` are the values of
    a statement that adds them to the report.
    """

    part: str
    step: int
    position: int
    report: str
    is_last: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)


def report_text(report: object) -> str:
    """Return a value as the JSON that a part or a request stores."""
    return msgspec.json.encode(report).decode()


def report_of(text: str, kind: type[Report]) -> Report:
    """Return the value of a stored JSON."""
    read: Report = reader_of(kind).decode(text)  # type: ignore[arg-type]
    return read


class TaskShape(Shape, tag_field="kind"):
    """A request for a task."""

    reason: Reason = ""


class MoveAnswer(Answered):
    """A change of a task's status: its author, time and reason."""

    at: datetime
    move: str
    by: str
    why: str


class TaskAnswer(Answered):
    """A task: `done` of `total` numbers, letters or parts. `fault` is the fault that holds it up now, or that ended it.
    An open task fails at `deadline_at`, if it has one. `history` is the last of these fields: the pages and the command
    line show those after it as the kind's own."""

    task_id: str
    status: TaskStatus
    dry_run: bool
    done: int
    total: int
    per_second: int | None
    requested_by: str
    reason: str
    requested_at: datetime
    deadline_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    updated_at: datetime
    fault: str | None
    history: list[MoveAnswer]
