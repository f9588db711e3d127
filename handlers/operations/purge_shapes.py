"""The shapes of requests about purges, and of their answers."""

from datetime import datetime
from typing import Annotated

import msgspec

from core.api.operation import Answered, Cursor, Reason, Shape
from core.ledger.retention.purge import PurgeStatus
from core.model.retention import DEFAULT_DAYS, MOST_DAYS
from handlers.operations.replay_shapes import PAGE, JobText, Limit

Days = Annotated[int, msgspec.Meta(ge=0, le=MOST_DAYS)]
_NAMED = msgspec.Meta(extra_json_schema={"propertyNames": {"enum": list(DEFAULT_DAYS)}})


class PurgeShape(Shape):
    """A request for a purge. A table that `older_than_days` leaves out has the days of the settings. Only a request
    with `dry_run` = false deletes anything."""

    reason: Reason
    older_than_days: Annotated[dict[str, Days], _NAMED] | None = None
    dry_run: bool = True


class PurgePath(Shape):
    """A purge."""

    purge_id: JobText


class CancelPurgeShape(Shape):
    """The reason to cancel a purge."""

    reason: Reason


class PurgesQuery(Shape):
    """A page of purges, the newest first."""

    limit: Limit = PAGE
    cursor: Cursor | None = None


class PurgedTableAnswer(Answered):
    """The rows of a table that a purge deleted, or that a dry run counted, and an estimate of their bytes. Letters
    count with their attempts. `notes` say what keeps old rows."""

    table: str
    rows: int
    bytes: int
    oldest: datetime | None
    newest: datetime | None
    notes: list[str]


class PurgeAnswer(Answered):
    """A purge so far. `left` counts the tables that it has not finished, once for each partition (null: not begun).
    `fault` is the last fault of an open purge, or the reason why it ended."""

    purge_id: str
    status: PurgeStatus
    dry_run: bool
    older_than_days: dict[str, int]
    rows: int
    tables: list[PurgedTableAnswer]
    left: int | None
    requested_by: str
    reason: str
    requested_at: datetime
    updated_at: datetime | None
    ended_at: datetime | None
    fault: str | None


class PurgesAnswer(Answered):
    """A page of purges."""

    purges: list[PurgeAnswer]
    next: str | None
