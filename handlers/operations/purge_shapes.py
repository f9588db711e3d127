"""The shapes of requests about purges, and of their answers."""

from datetime import datetime
from typing import Annotated

import msgspec

from core.model.policies import DEFAULT_DAYS, MOST_DAYS
from core.model.shapes import Answered, Reason
from core.tasks.task import TaskAnswer
from handlers.operations.task_shapes import TaskShape

Days = Annotated[int, msgspec.Meta(ge=0, le=MOST_DAYS)]
_NAMED = msgspec.Meta(extra_json_schema={"propertyNames": {"enum": list(DEFAULT_DAYS)}})


class PurgeShape(TaskShape, tag="purge"):
    """A request for a purge. A table that `older_than_days` leaves out has the days of the settings. Only a request
    with `dry_run` = false deletes anything."""

    reason: Reason
    older_than_days: Annotated[dict[str, Days], _NAMED] | None = None
    dry_run: bool = True


class PurgedTableAnswer(Answered):
    """The rows of a table that a purge deleted, or that a dry run counted, and an estimate of their bytes. Letters
    count with their attempts. `notes` say what keeps old rows."""

    table: str
    rows: int
    bytes: int
    oldest: datetime | None
    newest: datetime | None
    notes: list[str]


class PurgeAnswer(TaskAnswer, tag_field="kind", tag="purge"):
    """A purge so far: `done` of `total` parts, one for each table, or for each table of a partition."""

    older_than_days: dict[str, int]
    rows: int
    tables: list[PurgedTableAnswer]
