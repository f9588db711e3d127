"""The businesses that can be fed and recounted: each with its story, what the record keeps of it, and its tables."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from local.feed import flight_tables, home_tables
from local.feed.flights import NUMBERS, FlightScript, FlightShares, flight_minutes
from local.feed.minutes import Script, Shares, home_minutes
from local.feed.planned import Minute

PACKAGE = "core.transforms."

Story = Callable[[int, int | None, int, int, float | None], Iterator[Minute]]


class UnknownDomain(ValueError):
    """No such business is known here; the message names those that are."""


@dataclass(frozen=True, slots=True)
class Domain:
    """A business, named by the transform that the app needs for it.

    `story` takes the number of senders, of events (None: endless), the seed, the first instant and the share of
    duplicates (None: the usual one). `columns` are the record's own, after the outcome; `multisets` are queries whose
    rows are differences, by the table they recount; a letter has no row in any of the `row_tables`.
    """

    transform: str
    senders: str
    usual_senders: int
    most_senders: int
    story: Story
    columns: tuple[str, ...]
    multisets: Mapping[str, str]
    row_tables: tuple[str, ...]

    @property
    def name(self) -> str:
        """The short name."""
        return self.transform.removeprefix(PACKAGE)

    def senders_for(self, events: int) -> int:
        """How many senders make a bounded story in which most are heard several times."""
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
    most_senders=10_000_000,
    story=_homes,
    columns=home_tables.COLUMNS,
    multisets=home_tables.MULTISETS,
    row_tables=home_tables.ROW_TABLES,
)
FLIGHTS = Domain(
    transform=f"{PACKAGE}flight_info",
    senders="flight numbers",
    usual_senders=2_000,
    most_senders=NUMBERS,
    story=_flights,
    columns=flight_tables.COLUMNS,
    multisets=flight_tables.MULTISETS,
    row_tables=flight_tables.ROW_TABLES,
)


def find_domain(name: str) -> Domain:
    """By the transform's module name, or its last part."""
    for domain in (HOMES, FLIGHTS):
        if name in (domain.transform, domain.name):
            return domain
    raise UnknownDomain(f"must be {HOMES.name} or {FLIGHTS.name}, not {name!r}")
