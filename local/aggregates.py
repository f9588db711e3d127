"""The aggregates that a demo shows: one of each business, and the first one of a room."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from core.model.events import Event
from core.model.rows import References, row_table
from core.model.spans import SequenceNumber
from core.model.transform import Transform
from core.transforms import load_transform
from core.transforms.aggregates import load_aggregates
from local.activity_recount import recount_activity
from local.aggregate_recount import EPOCH, Recounted
from local.declared_recount import recount_declared
from local.expected import outcome_of
from local.feed.domains import FLIGHTS, HOMES, Domain
from local.feed.sample import Sample
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


class NoAggregate(Exception):
    """The room declares no aggregate."""


def shown_of(domain: Domain) -> Shown:
    """Return the aggregate of a business, or the first one by name of a room; NoAggregate when it has none."""
    return _SHOWN[domain.name] if domain.sample is None else _of_room(domain.transform, domain.sample)


def _of_room(name: str, sample: Sample) -> Shown:
    transform = load_transform(name)
    declared = load_aggregates(transform.row_classes)
    if not declared:
        raise NoAggregate(f"{name} declares no aggregate")
    of = declared[0]
    source = row_table(of.source).name
    return Shown(of.name, source, _rows_per_event(transform, sample), lambda store, _: recount_declared(of, store))


def _rows_per_event(transform: Transform, sample: Sample) -> float:
    """Return how many rows a line makes on average, with the states of the lines before it."""
    states, rows = References({}), 1
    for line in sample.lines:
        event = Event(SequenceNumber(line.number), "", EPOCH, line.key, {}, line.body)
        for row in outcome_of(transform, event, states).rows:
            rows += 1
            if row_table(type(row)).key:
                states.learn(row)
    return rows / len(sample.lines)
