"""A home-security company: sensor readings, alerts, and the register of homes with the state of their alarms."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, get_args

import msgspec
from msgspec import Meta, Struct

from hubledger import Event, PoisonEvent, ReferenceKey, References, Row, Text, appended_to, body_decoder, state_of

VERSION = "home_security/1"
ALARMING_PPM = 70  # carbon monoxide, parts per million

Identifier = Annotated[str, Meta(min_length=1, max_length=32, pattern="^[!-~]+\\Z")]
SensorIdentifier = Annotated[str, Meta(min_length=1, max_length=64, pattern="^[!-~]+\\Z")]
TimeZoneName = Annotated[str, Meta(min_length=1, max_length=40, pattern="^[A-Za-z0-9_+/-]+\\Z")]
Instant = Annotated[datetime, Meta(tz=True)]
Ppm = Annotated[int, Meta(ge=0, le=1_000_000)]
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


@state_of("home", key=("home_id",), subject="home_id")
@dataclass(frozen=True, slots=True)
class Home:
    """A registered home, after its latest registration."""

    home_id: Annotated[str, Text(32)]
    time_zone: Annotated[str, Text(40)]
    armed: bool


@appended_to("sensor_reading", subject="home_id")
@dataclass(frozen=True, slots=True)
class SensorReading:
    """A reading of one sensor: the `state` of a switch (active, idle), or the `ppm` of carbon monoxide."""

    home_id: Annotated[str, Text(32)]
    sensor_id: Annotated[str, Text(64)]
    kind: Annotated[str, Text(20, ascii=True)]
    state: Annotated[str | None, Text(10, ascii=True)]
    ppm: int | None
    observed_at: datetime


@appended_to("home_alert", subject="home_id")
@dataclass(frozen=True, slots=True)
class HomeAlert:
    """A reading that needs attention."""

    home_id: Annotated[str, Text(32)]
    sensor_id: Annotated[str, Text(64)]
    kind: Annotated[str, Text(20, ascii=True)]
    ppm: int | None
    observed_at: datetime


class _Registration(Struct, tag_field="kind", tag="registration", forbid_unknown_fields=True):
    home_id: Identifier
    time_zone: TimeZoneName
    armed: bool
    observed_at: Instant | None = None


class _Heartbeat(Struct, tag_field="kind", tag="heartbeat", forbid_unknown_fields=True):
    home_id: Identifier
    sensor_id: SensorIdentifier
    observed_at: Instant


class _CarbonMonoxide(Struct, tag_field="kind", tag="carbon_monoxide", forbid_unknown_fields=True):
    home_id: Identifier
    sensor_id: SensorIdentifier
    ppm: Ppm
    observed_at: Instant


class _Switch(Struct, tag_field="kind", forbid_unknown_fields=True):
    home_id: Identifier
    sensor_id: SensorIdentifier
    state: Annotated[str, Meta(pattern="^(active|idle)\\Z")]
    observed_at: Instant


class _Motion(_Switch, tag="motion"):
    pass


class _Door(_Switch, tag="door"):
    pass


class _Window(_Switch, tag="window"):
    pass


class _GlassBreak(_Switch, tag="glass_break"):
    pass


class _Subject(Struct):
    """The fields of a body that `references` needs."""

    home_id: str
    kind: str


_KINDS = {_Motion: "motion", _Door: "door", _Window: "window", _GlassBreak: "glass_break"}
_Body = _Registration | _Heartbeat | _CarbonMonoxide | _Motion | _Door | _Window | _GlassBreak
_body_of: Callable[[bytes], _Body] = body_decoder(*get_args(_Body))
_decode_subject = msgspec.json.Decoder(_Subject).decode


def references(event: Event) -> Iterable[ReferenceKey]:
    """Return the home of a reading. Registrations and heartbeats need none."""
    subject = _decode_subject(event.body)
    if subject.kind in ("registration", "heartbeat"):
        return ()
    return (ReferenceKey(Home, (subject.home_id,)),)


def transform(event: Event, references: References) -> Iterable[Row]:
    """Return the rows of one event: a home, or a reading and perhaps an alert. None for a heartbeat.

    Raises PoisonEvent for a malformed body, MissingReference for a reading of an unregistered home.
    """
    body = _decode(event.body)
    if isinstance(body, _Heartbeat):
        return ()
    if isinstance(body, _Registration):
        return (Home(body.home_id, body.time_zone, body.armed),)
    home = references.get(Home, body.home_id)
    reading = _reading(body)
    if _alarming(reading, home):
        return (reading, HomeAlert(reading.home_id, reading.sensor_id, reading.kind, reading.ppm, reading.observed_at))
    return (reading,)


def _decode(body: bytes) -> _Body:
    if not body:
        raise PoisonEvent("the body is empty")
    try:
        return _body_of(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PoisonEvent(f"the body is not an event of a home: {error}") from error


def _reading(body: _Switch | _CarbonMonoxide) -> SensorReading:
    observed_at = _utc(body.observed_at)
    if isinstance(body, _CarbonMonoxide):
        return SensorReading(body.home_id, body.sensor_id, "carbon_monoxide", None, body.ppm, observed_at)
    return SensorReading(body.home_id, body.sensor_id, _KINDS[type(body)], body.state, None, observed_at)


def _alarming(reading: SensorReading, home: Home) -> bool:
    if reading.ppm is not None:
        return reading.ppm >= ALARMING_PPM
    return reading.state == "active" and (home.armed or reading.kind == "glass_break")


def _utc(moment: datetime) -> datetime:
    if not EARLIEST <= moment < LATEST:
        raise PoisonEvent(f"observed_at {moment.isoformat()} is not between {EARLIEST:%Y} and {LATEST:%Y}")
    return moment.astimezone(UTC)
