"""The bodies of events, as homes send them: JSON, written out by hand because it is a third of the feed's own work."""

from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

from local.feed.rule import Reading

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Zone(NamedTuple):
    """A time zone without summer time, so that its name fixes its offset."""

    name: str
    offset: timezone


ZONES = (
    Zone("Etc/UTC", UTC),
    Zone("Africa/Lagos", timezone(timedelta(hours=1))),
    Zone("America/Phoenix", timezone(timedelta(hours=-7))),
    Zone("Asia/Kolkata", timezone(timedelta(hours=5, minutes=30))),
    Zone("Asia/Tokyo", timezone(timedelta(hours=9))),
)


def instant_text(microseconds: int, zone: Zone) -> str:
    """An instant on the clocks of a zone: ISO 8601 with its offset."""
    return (_EPOCH + timedelta(microseconds=microseconds)).astimezone(zone.offset).isoformat()


def reading_body(home_id: str, reading: Reading, zone: Zone) -> str:
    """The body of a reading or a heartbeat."""
    sensor_id, kind, state, ppm, observed_us = reading
    value = f'"state":"{state}",' if state is not None else f'"ppm":{ppm},' if ppm is not None else ""
    at = instant_text(observed_us, zone)
    return f'{{"home_id":"{home_id}","sensor_id":"{sensor_id}","kind":"{kind}",{value}"observed_at":"{at}"}}'


def registration_body(home_id: str, zone: Zone, armed: bool, observed_us: int | None) -> str:
    """The body of a registration; its time may be left out."""
    at = "" if observed_us is None else f',"observed_at":"{instant_text(observed_us, zone)}"'
    flag = "true" if armed else "false"
    return f'{{"home_id":"{home_id}","kind":"registration","time_zone":"{zone.name}","armed":{flag}{at}}}'
