"""The aggregate that a demo shows: the first one by name of its transform."""

from core.model.aggregates import EPOCH, Aggregate
from core.model.events import Event
from core.model.rows import References, row_table
from core.model.spans import SequenceNumber
from core.model.transform import Transform
from core.transforms import load_transform
from core.transforms.aggregates import load_aggregates
from local.expected import outcome_of
from local.feed.domains import FLIGHTS, HOMES, Domain
from local.feed.sample import Sample

# The usual number of rows, of all tables, that the app writes for an event of a feed.
_ROWS_PER_EVENT = {HOMES.name: 0.83, FLIGHTS.name: 1.98}


class NoAggregate(Exception):
    """The room declares no aggregate."""


def aggregate_of_demo(domain: Domain) -> Aggregate:
    """Return the first aggregate by name of a domain's transform; NoAggregate when it has none."""
    declared = load_aggregates(load_transform(domain.transform).row_classes)
    if not declared:
        raise NoAggregate(f"{domain.transform} declares no aggregate")
    return declared[0]


def rows_per_event(domain: Domain) -> float:
    """Return the usual number of rows, of all tables, that the app writes for an event."""
    if domain.sample is None:
        return _ROWS_PER_EVENT[domain.name]
    return _rows_per_line(load_transform(domain.transform), domain.sample)


def _rows_per_line(transform: Transform, sample: Sample) -> float:
    """Return how many rows a line makes on average, with the states of the lines before it."""
    states, rows = References({}), 1
    for line in sample.lines:
        event = Event(SequenceNumber(line.number), "", EPOCH, line.key, {}, line.body)
        for row in outcome_of(transform, event, states).rows:
            rows += 1
            if row_table(type(row)).key:
                states.learn(row)
    return rows / len(sample.lines)
