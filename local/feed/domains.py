"""What the feed can publish and the recount can check: the stories of two businesses, or a user's own events."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from local.feed import flight_rule, home_rule, sample
from local.feed.flights import NUMBERS, FlightScript, FlightShares, flight_minutes
from local.feed.homes import Script, Shares, home_minutes
from local.feed.planned import Minute
from local.feed.sample import Sample, sample_minutes

PACKAGE = "examples."

Story = Callable[[int, int | None, int, int, float | None], Iterator[Minute]]


class UnknownDomain(ValueError):
    """There is no such business; the message names the known ones."""


@dataclass(frozen=True, slots=True)
class Domain:
    """A business, named by the transform that the app needs for it; or the events of a file, which is its `sample`.

    `dangerous` is the transform of a chaos with dangerous events, if there is one. `story` takes the number of senders,
    the number of events (None: endless), the seed, the first instant and the share of duplicates (None: the usual
    share). `columns` are the record's columns after the outcome. `multisets` are queries by the table that they
    recount; each row they return is a difference. A letter has no row in any of `row_tables`.
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
        """The short name."""
        return self.transform.removeprefix(PACKAGE)

    def source(self, senders: int) -> str:
        """Return where the events come from, for people."""
        return f"{senders:,} {self.senders}" if self.sample is None else str(self.sample)

    def senders_for(self, events: int) -> int:
        """Return a number of senders so small that most of them publish several times in a bounded story."""
        return min(self.usual_senders, max(200, events // 20))


def _homes(homes: int, events: int | None, seed: int, start: int, duplicates: float | None) -> Iterator[Minute]:
    shares = Shares() if duplicates is None else Shares(duplicate=duplicates)
    return home_minutes(Script(homes, events, seed, start, shares))


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
    dangerous="local.dangerous",
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
