"""The burn-down: how long the hub still holds the events of open letters and gaps, and which of them are only there."""

from collections.abc import Sequence
from datetime import datetime

from core.api.operation import Answered, Call, Nothing, operation
from core.ledger.retention.burn_down import HOUR, WITHIN, BurnDown
from core.ledger.retention.open_counts import LETTERS, Kind
from core.model.events import PartitionId
from handlers.app import app


class WithinAnswer(Answered):
    """The events that the hub will have forgotten `hours` from now."""

    hours: int
    count: int


class ShareAnswer(Answered):
    """Open letters or gaps: the hub no longer holds the events of `gone`. It forgets the first of the others at
    `first_lost_at`; null when there is none, or no forecast. A gap counts by its first event."""

    open: int
    gone: int
    first_lost_at: datetime | None
    within: list[WithinAnswer]


class PartitionBurnDown(Answered):
    """The open letters and gaps of a partition, and the hours until the hub forgets the first of their events."""

    partition_id: str
    letters: int
    letters_without_body: int
    gaps: int
    gone: int
    first_lost_at: datetime | None
    hours_left: float | None


class RetentionAnswer(Answered):
    """The burn-down, as it was read at `at`. `letters` are all open letters. The event of a letter without a body, and
    those of a gap, are lost when the hub forgets them. `bodies_kept` is true when each open letter has its body.
    Without `hub_retention_hours` there is no forecast. With a `hub_fault` the hub did not answer, so none is known to
    be gone. `older_than_days` says how old the rows of each table must be before a purge deletes them. With
    `purge_daily` a purge begins each day."""

    at: datetime
    hub_retention_hours: float | None
    hub_fault: str | None
    letters: ShareAnswer
    letters_without_body: ShareAnswer
    gaps: ShareAnswer
    bodies_kept: bool
    partitions: list[PartitionBurnDown]
    older_than_days: dict[str, int]
    purge_daily: bool


@operation(
    "How long the hub holds the events of open letters and gaps, and the age at which a purge deletes rows", "ledger"
)
def show_retention(call: Call[Nothing, Nothing, Nothing]) -> RetentionAnswer:
    """Return the burn-down and the days of the settings. The burn-down is read at most every half a minute."""
    found, purging = app().burn_down.get(), app().settings.purging
    without_body = _share(found, ("unkept",))
    return RetentionAnswer(
        at=found.at,
        hub_retention_hours=None if found.retention is None else found.retention / HOUR,
        hub_fault=found.hub_fault,
        letters=_share(found, LETTERS),
        letters_without_body=without_body,
        gaps=_share(found, ("gap",)),
        bodies_kept=without_body.open == 0,
        partitions=[_partition(found, id) for id in sorted(found.partition_ids, key=lambda id: (len(id), id))],
        older_than_days=dict(purging.days),
        purge_daily=purging.daily,
    )


def _share(found: BurnDown, kinds: Sequence[Kind]) -> ShareAnswer:
    share = found.share(kinds)
    return ShareAnswer(
        open=share.open,
        gone=share.gone,
        first_lost_at=share.first_lost_at,
        within=[
            WithinAnswer(hours=hours // HOUR, count=count) for hours, count in zip(WITHIN, share.within, strict=True)
        ],
    )


def _partition(found: BurnDown, id: PartitionId) -> PartitionBurnDown:
    every = found.share(partition_id=id)
    return PartitionBurnDown(
        partition_id=id,
        letters=found.share(LETTERS, id).open,
        letters_without_body=found.share(("unkept",), id).open,
        gaps=found.share(("gap",), id).open,
        gone=every.gone,
        first_lost_at=every.first_lost_at,
        hours_left=found.hours_left(every),
    )
