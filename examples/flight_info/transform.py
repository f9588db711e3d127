"""Flight changes by flight number: the latest status of each flight and day, and the history of changes."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from hubledger import Event, PoisonEvent, References, Row, Text, appended_to, body_decoder, state_of

VERSION = "flight_info/1"

Carrier = Annotated[str, Meta(pattern="^[A-Z0-9]{2,3}\\Z")]  # IATA or ICAO designator
FlightNumber = Annotated[int, Meta(ge=1, le=9999)]
Status = Literal["scheduled", "delayed", "boarding", "departed", "arrived", "cancelled", "diverted"]
Gate = Annotated[str, Meta(min_length=1, max_length=10)]
Instant = Annotated[datetime, Meta(tz=True)]
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Flight:
    carrier: Annotated[str, Text(3)]
    flight_number: int
    departure_date: date
    status: Annotated[str, Text(20, ascii=True)]
    departure_gate: Annotated[str | None, Text(10)]
    departs_at: datetime | None
    arrives_at: datetime | None
    changed_at: datetime


@state_of("flight_status", key=("carrier", "flight_number", "departure_date"), newest_by="changed_at")
@dataclass(frozen=True, slots=True)
class FlightStatus(_Flight):
    """A flight on a day, after its latest change, in whatever order the changes arrive."""


@appended_to("flight_change")
@dataclass(frozen=True, slots=True)
class FlightChange(_Flight):
    """One change of a flight, which stays for ever."""


class _Change(Struct, forbid_unknown_fields=True):
    carrier: Carrier
    flight_number: FlightNumber
    departure_date: date
    status: Status
    changed_at: Instant
    departure_gate: Gate | None = None
    departs_at: Instant | None = None
    arrives_at: Instant | None = None


_change_of = body_decoder(_Change)


def transform(event: Event, references: References) -> Iterable[Row]:
    """Return the new status of a flight and the change itself. Raises PoisonEvent for a malformed body."""
    change = _decode(event.body)
    fields = (
        change.carrier,
        change.flight_number,
        change.departure_date,
        change.status,
        change.departure_gate,
        _utc(change.departs_at),
        _utc(change.arrives_at),
        _in_range(change.changed_at),
    )
    return (FlightStatus(*fields), FlightChange(*fields))


def _decode(body: bytes) -> _Change:
    if not body:
        raise PoisonEvent("the body is empty")
    try:
        return _change_of(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PoisonEvent(f"the body is not a flight change: {error}") from error


def _utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else _in_range(moment)


def _in_range(moment: datetime) -> datetime:
    if not EARLIEST <= moment < LATEST:
        raise PoisonEvent(f"{moment.isoformat()} is not between {EARLIEST:%Y} and {LATEST:%Y}")
    return moment.astimezone(UTC)
