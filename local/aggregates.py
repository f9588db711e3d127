"""The aggregates that a demo shows: one of each business."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from local.activity_recount import recount_activity
from local.aggregate_recount import Recounted
from local.feed.domains import FLIGHTS, HOMES, Domain
from local.punctuality_recount import recount_punctuality


@dataclass(frozen=True, slots=True)
class Shown:
    """An aggregate: its name, the table whose rows it adds up, and its recount of a store against a record.

    `rows_per_event` is the usual number of rows, of all tables, that the app writes for an event.
    """

    name: str
    source: str
    rows_per_event: float
    recount: Callable[[Path, Path], Recounted]


_SHOWN = {
    HOMES.name: Shown("home_activity", "sensor_reading", 0.83, recount_activity),
    FLIGHTS.name: Shown("flight_punctuality", "flight_change", 1.98, recount_punctuality),
}


def shown_of(domain: Domain) -> Shown:
    """Return the aggregate of a business."""
    return _SHOWN[domain.name]
