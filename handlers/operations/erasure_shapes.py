"""The shapes of requests about erasures, and of their answers."""

from typing import Annotated

import msgspec

from core.erasure.erasure import MOST_SUBJECTS
from core.model.shapes import Answered, Reason
from core.tasks.task import TaskAnswer
from handlers.operations.task_shapes import TaskShape

Subject = Annotated[
    str, msgspec.Meta(min_length=1, max_length=200, description="A partition key, or a value of a room's subject.")
]
Subjects = Annotated[list[Subject], msgspec.Meta(min_length=1, max_length=MOST_SUBJECTS)]


class ErasureShape(TaskShape, tag="erasure"):
    """A request to forget subjects, without the blanks around them. Only a request with `dry_run` = false erases
    anything; it fails before it erases more than `most_rows` rows. The subjects are stored until the task is over."""

    subjects: Subjects
    reason: Reason
    dry_run: bool = True
    most_rows: Annotated[int, msgspec.Meta(ge=0, le=2**53)] | None = None


class ErasedPartitionAnswer(Answered):
    """A partition: the next number that is looked at, and the last one up to which the subjects stay forgotten."""

    partition_id: str
    next: str
    last: str


class ErasureAnswer(TaskAnswer, tag_field="kind", tag="erasure"):
    """An erasure so far, or what a dry run found: the number of subjects, rows by table, letters, staged events, rows
    that replays had taken away, and events in the results of dry runs. `notes` say what is left, and until when."""

    subjects: int
    most_rows: int | None
    rows: int
    letters: int
    staged: int
    retracted: int
    diffs: int
    tables: dict[str, int]
    partitions: list[ErasedPartitionAnswer]
    notes: list[str]
