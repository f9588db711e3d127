"""The events that the feed can publish and the recount can check: two businesses, or a user's own events."""

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from core.model.rows import row_table
from core.transforms.loading import check_transform, full_name, load_transform, module_of
from local.feed import flights as flight_rule
from local.feed import homes as home_rule
from local.feed import sample
from local.feed.event_file import samples_in
from local.feed.flights import NUMBERS, FlightScript, FlightShares, flight_minutes
from local.feed.homes import HomeScript, HomeShares, home_minutes
from local.feed.planned_events import Minute
from local.feed.sample import Sample, keyed_by, likeliest_key, read_sample, sample_minutes
from local.programs import APP

PACKAGE = "examples."

Story = Callable[[int, int | None, int, int, float | None], Iterator[Minute]]


class UnknownDomain(ValueError):
    """There is no such business. The message names the known ones."""


@dataclass(frozen=True, slots=True)
class Domain:
    """A business, named by the transform that the app needs for it, or the events of a file, which is its `sample`.

    `dangerous` is the transform of a chaos with dangerous events, if there is one. `story` takes the number of senders,
    the number of events (None: endless), the seed, the first instant and the share of duplicates (None: the usual
    share). `columns` are the record's columns after the outcome. `multisets` are queries by the table that they
    recount. Each row they return is a difference. A letter has no row in any of `row_tables`.
    """

    transform: str
    senders: str
    usual_senders: int
    sender_limit: int
    story: Story
    columns: tuple[str, ...]
    multisets: Mapping[str, str]
    row_tables: tuple[str, ...]
    dangerous: str | None = None
    sample: Sample | None = None

    @property
    def name(self) -> str:
        return self.transform.removeprefix(PACKAGE)

    def source(self, senders: int) -> str:
        """Return where the events come from, for people."""
        return f"{senders:,} {self.senders}" if self.sample is None else str(self.sample)

    def senders_for(self, events: int) -> int:
        """Return a number of senders so small that most of them publish several times in a bounded story."""
        return min(self.usual_senders, max(200, events // 20))


def _homes(homes: int, events: int | None, seed: int, start: int, duplicates: float | None) -> Iterator[Minute]:
    shares = HomeShares() if duplicates is None else HomeShares(duplicate=duplicates)
    return home_minutes(HomeScript(homes, events, seed, start, shares))


def _flights(numbers: int, events: int | None, seed: int, start: int, duplicates: float | None) -> Iterator[Minute]:
    shares = FlightShares() if duplicates is None else FlightShares(duplicate=duplicates)
    return flight_minutes(FlightScript(numbers, events, seed, start, shares))


HOMES = Domain(
    transform=f"{PACKAGE}home_security",
    senders="homes",
    usual_senders=100_000,
    sender_limit=10_000_000,
    story=_homes,
    columns=home_rule.COLUMNS,
    multisets=home_rule.MULTISETS,
    row_tables=home_rule.ROW_TABLES,
    dangerous="local.feed.dangers",
)
FLIGHTS = Domain(
    transform=f"{PACKAGE}flight_info",
    senders="flight numbers",
    usual_senders=2_000,
    sender_limit=NUMBERS,
    story=_flights,
    columns=flight_rule.COLUMNS,
    multisets=flight_rule.MULTISETS,
    row_tables=flight_rule.ROW_TABLES,
)


def domain_of_sample(transform: str, published: Sample) -> Domain:
    """Return the events of a file, for a transform of which nothing else is known."""

    def story(senders: int, events: int | None, seed: int, start: int, duplicates: float | None) -> Iterator[Minute]:
        return sample_minutes(published, events, seed, duplicates or 0.0)

    return Domain(transform, "lines", 1, 1, story, sample.COLUMNS, {}, (), sample=published)


def find_domain(name: str) -> Domain:
    """Return the business of a transform, by its module name or the last part of it."""
    for domain in (HOMES, FLIGHTS):
        if name in (domain.transform, domain.name):
            return domain
    raise UnknownDomain(
        f"must be {HOMES.name} or {FLIGHTS.name}, or a room like apps.orders with its --events-from, not {name!r}"
    )


# A file may lack what its events refer to: the letters of such events are given up soon. A transform that fails for
# every event stops its partitions only for a moment.
ATTEMPTS = 6
SETTINGS = {"DEAD_LETTER_ATTEMPTS": str(ATTEMPTS), "FUSE_PATIENCE": "3"}


def sample_of(options: argparse.Namespace) -> Sample | None:
    """Return the sample that a run publishes: the named file, or a room's sample, or None for our businesses.

    Without a named field, the key is the first key column of a state that most lines have as a field, because the rows
    of a state are in order only within a partition. Raises UnusableFile, UnknownDomain and InvalidTransform.
    """
    path: Path | None = options.events_from
    if options.transform is None and path is not None:
        raise UnknownDomain(f"name the room of the events in {path}: {_known_rooms()}")
    name = options.transform = transform_named(options.transform or HOMES.name)
    if path is None and _is_business(name):
        return None
    folder = folder_of(name)
    path = path or samples_in(folder)
    check_transform(name)
    lines = read_sample(path)
    tables = map(row_table, load_transform(name).row_classes)  # the first key column of each state, in their order
    key = options.key or likeliest_key(lines, list(dict.fromkeys(table.key[0] for table in tables if table.key)))
    return keyed_by(path, lines, key) if key else Sample(path, lines)


def _is_business(name: str) -> bool:
    try:
        find_domain(name)
    except UnknownDomain:
        return False
    return True


def transform_named(name: str) -> str:
    """Return the full name of a transform, of which a person may have typed the last part."""
    return find_domain(name).transform if _is_business(name) else full_name(name)


def folder_of(name: str) -> Path:
    """Return the folder of a room, or of a module. Raises UnknownDomain."""
    try:
        spec = find_spec(module_of(name))
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        raise UnknownDomain(f"there is no room {name}: name home_security, flight_info or {_known_rooms()}")
    return Path(spec.origin).parent


def _known_rooms() -> str:
    rooms = sorted(f"apps.{path.parent.name}" for path in (APP / "apps").glob("*/transform.py"))
    return ", ".join(rooms) or "one like apps.orders"
