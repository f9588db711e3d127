"""The stops of partitions, as every answer shows them."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from core.api.operation import Answered
from core.errors import StopReason
from core.model.commits import PartitionStop
from core.model.events import PartitionId

QUOTES_NOTHING = frozenset({"incarnation", "held", "trigger"})  # the details of the other reasons have words of errors


class StopAnswer(Answered):
    """A stop of a partition, on purpose or by the database: its reason, its time, and the attempts that met it.
    `detail` is null where it may quote an event; `GET /api/revealed/stops` shows it."""

    partition_id: str
    reason: StopReason
    detail: str | None
    stopped_at: datetime
    attempts: int


def stop_answers(id: PartitionId, stops: Iterable[PartitionStop]) -> list[StopAnswer]:
    """Return the stops of a partition without the details that may quote an event."""
    return [
        one if one.reason in QUOTES_NOTHING else msgspec.structs.replace(one, detail=None)
        for one in revealed_stops(id, stops)
    ]


def revealed_stops(id: PartitionId, stops: Iterable[PartitionStop]) -> list[StopAnswer]:
    """Return the stops of a partition with every detail."""
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
