"""The stops of partitions, as every answer shows them."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime

import msgspec

from core.api.operation import Answered
from core.errors import HubledgerError, StopReason
from core.ledger.watch import find_standing
from core.model.commits import PartitionStop
from core.model.events import PartitionId
from handlers.app import app
from handlers.remembered import Lifetime, Remembered
from handlers.watch import watching

QUOTES_NOTHING = frozenset({"incarnation", "held", "trigger"})  # the details of the other reasons have words of errors


class StopAnswer(Answered):
    """A stop of a partition, on purpose or by the database: its reason, its time, and the attempts that met it.
    `detail` is null where it may quote an event; `GET /api/revealed/stops` shows it."""

    partition_id: str
    reason: StopReason
    detail: str | None
    stopped_at: datetime
    attempts: int


class StandingAnswer(Answered):
    """A partition that stands: events of it wait, and no batch of it was committed for five minutes, whatever the
    reason. `fault` is the name of the last error of its batches in this instance, null where this one met none."""

    partition_id: str
    since: datetime
    fault: str | None


def standing_answers() -> list[StandingAnswer]:
    """Return the partitions that stand. None where the hub or the database cannot tell."""
    with suppress(HubledgerError):
        found, faults = STANDING.get(), app().batch_log.faults
        return [
            StandingAnswer(partition_id=id, since=found[id], fault=faults.get(id))
            for id in sorted(found, key=lambda id: (len(id), id))
        ]
    return []


def _find_standing() -> Mapping[PartitionId, datetime]:
    own = app()
    return find_standing(watching(own), own.clock.now())


STANDING = Remembered(_find_standing, Lifetime(fresh=5.0, limit=5.0))


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
