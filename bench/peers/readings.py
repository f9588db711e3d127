"""The transform of all peers, ours included: the readings of home_security, of homes that need no registration.

Without references, every consumer does the same work for an event, and a peer needs no table of homes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from core.errors import PoisonEvent
from core.model.events import Event
from core.model.rows import References, Row, RowType
from core.store.columns import instant_text
from examples.home_security import transform as home_security
from examples.home_security.transform import Home, SensorReading

__all__ = ["VERSION", "PoisonEvent", "SensorReading", "transform"]

VERSION = "readings/1"
COLUMNS = ("home_id", "sensor_id", "kind", "state", "ppm", "observed_at")
_DISARMED = Home("any", "Etc/UTC", False)


class _EveryHome(References):
    """Knows every home as registered and disarmed."""

    __slots__ = ()

    def get(self, row_class: type[RowType], *key: object) -> RowType:
        return cast("RowType", _DISARMED)


_EVERY_HOME = _EveryHome({})


@dataclass(slots=True)
class _Published:
    body: bytes


def transform(event: Event, references: References) -> Iterable[Row]:
    """Return the reading of an event, or none for a heartbeat or a registration. Raises PoisonEvent for a bad body."""
    rows = tuple(home_security.transform(event, _EVERY_HOME))
    return rows[:1] if rows and type(rows[0]) is SensorReading else ()  # without its alert


def values_of(body: bytes) -> tuple[Any, ...] | None:
    """Return the values of the columns for a body, None for an event without a row.

    Raises PoisonEvent for a bad body.
    """
    rows = cast("Sequence[SensorReading]", transform(cast("Event", _Published(body)), _EVERY_HOME))
    if not rows:
        return None
    one = rows[0]
    return (one.home_id, one.sensor_id, one.kind, one.state, one.ppm, instant_text(one.observed_at))
