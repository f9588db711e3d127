"""The stops of partitions, as every answer shows them."""

from collections.abc import Iterable
from datetime import datetime

from core.errors import StopReason
from core.model.commits import PartitionStop
from core.model.events import PartitionId
from handlers.web.operation import Answered


class StopAnswer(Answered):
    """A partition that is stopped, on purpose or by the database: why, since when, and how often the stop was met."""

    partition_id: str
    reason: StopReason
    detail: str
    stopped_at: datetime
    attempts: int


def stop_answers(id: PartitionId, stops: Iterable[PartitionStop]) -> list[StopAnswer]:
    """Return the stops of a partition as they are shown."""
    return [
        StopAnswer(
            partition_id=id,
            reason=stop.reason,
            detail=stop.detail,
            stopped_at=stop.stopped_at,
            attempts=stop.attempts,
        )
        for stop in stops
    ]
