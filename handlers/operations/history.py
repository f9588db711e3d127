"""The lag and the rate of the stream by minute, as the watch has stored them."""

from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from core.api.operation import Answered, Call, Nothing, Shape, operation
from core.ledger.minutes import KEPT, rates
from handlers.app import app

MOST_MINUTES = KEPT // timedelta(minutes=1)


class HistoryQuery(Shape):
    """The minutes up to now; those of a day are stored."""

    minutes: Annotated[int, msgspec.Meta(ge=1, le=MOST_MINUTES)] = 180


class MinuteAnswer(Answered):
    """One watch: `lag` counts the events after the checkpoints, `accounted` the numbers with an outcome, and `rate` the
    numbers accounted for per second since the watch before it. Minutes without a watch are missing."""

    at: datetime
    lag: int
    accounted: int
    rate: float | None


class HistoryAnswer(Answered):
    """The minutes, the newest last."""

    minutes: list[MinuteAnswer]


@operation("Lag and rate by minute, of at most one day", "ledger")
def status_history(call: Call[Nothing, HistoryQuery, Nothing]) -> HistoryAnswer:
    """Return the minutes that the watch has stored."""
    found = app().ledger.read_minutes(call.at - timedelta(minutes=call.query.minutes))
    return HistoryAnswer(
        minutes=[
            MinuteAnswer(at=one.at, lag=one.lag, accounted=one.accounted, rate=rate)
            for one, rate in zip(found, rates(found), strict=True)
        ]
    )
