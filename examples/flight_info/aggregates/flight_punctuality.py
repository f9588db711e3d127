"""The punctuality of a carrier, by the day of departure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from examples.flight_info.transform import FlightChange
from hubledger import Count, CountOf, Key, Least, Most, aggregate_of


@aggregate_of(FlightChange, "flight_punctuality", at="departure_date", window=timedelta(days=1))
@dataclass(frozen=True, slots=True)
class FlightPunctuality:
    """The changes of a carrier's flights on one day. The statuses count changes, not flights."""

    carrier: Annotated[str, Key(3)]
    window_start: datetime
    changes: Annotated[int, Count()]
    delayed: Annotated[int, CountOf("status", "delayed")]
    cancelled: Annotated[int, CountOf("status", "cancelled")]
    diverted: Annotated[int, CountOf("status", "diverted")]
    departed: Annotated[int, CountOf("status", "departed")]
    arrived: Annotated[int, CountOf("status", "arrived")]
    first_changed_at: Annotated[datetime, Least("changed_at")]
    last_changed_at: Annotated[datetime, Most("changed_at")]
