"""Keepers for the tests of letters: a database in memory, a fake clock and a hub that may be down."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from core.errors import HubUnreachable
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.events import Event, Partition, PartitionId, SequenceNumber
from core.model.letters import Backoff, LetterPolicy, LetterPosition, RetryReport
from core.model.ports import Clock
from core.model.transforms import Transform
from examples.home_security.transform import SensorReading
from tests.fakes.builders import STREAM, FakeClock, ids
from tests.fakes.faulty_database import Fault, FaultyStore
from tests.fakes.kept import KeptLetter
from tests.fakes.memory_store import MemoryStore
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import Store

LEASE = timedelta(seconds=300)


def at(*numbers: int, place: str = "0") -> list[LetterPosition]:
    return [LetterPosition(PartitionId(place), SequenceNumber(number)) for number in numbers]


@dataclass
class Hub:
    """A hub that has these events; `down` says that it does not answer, and `takes` lets time pass for an answer."""

    events: dict[int, Event] = field(default_factory=dict)
    down: bool = False
    asked: list[int] = field(default_factory=list)
    takes: Callable[[], None] = lambda: None

    def find_event(self, _: Partition, number: SequenceNumber) -> Event | None:
        self.asked.append(number)
        self.takes()
        if self.down:
            raise HubUnreachable("the hub does not answer")
        return self.events.get(number)


class World:
    """Keepers over one database in memory, on a fake clock. Chance is all: every pause is the longest."""

    def __init__(self, *faults: Fault | None, transform: Transform = PLAIN, attempts: int = 8) -> None:
        self.clock = FakeClock()
        self.inner = MemoryStore()
        self.hub = Hub()
        self.between: Callable[[], object] = lambda: None  # what somebody else does in the middle
        self.faulty = FaultyStore(self.inner, on_letters=faults, meanwhile=lambda: self.between())
        self.policy = LetterPolicy(Backoff(attempts=attempts), chunk=10, fan_out=3)
        self.keeper = self.another(self.faulty, transform)

    def another(self, store: Store | None = None, transform: Transform = PLAIN, seed: int = 0) -> Keeper:
        source = iter(ids(seed + 100))
        stamps = Clock(self.clock.now, lambda: next(source))
        return Keeper(STREAM, store or self.inner, transform, self.hub.find_event, stamps, self.policy)

    def round(self, keeper: Keeper | None = None) -> list[RetryReport]:
        own = keeper or self.keeper
        return [retry_chunk(chunk, own, "retry-1") for chunk in claim_due(own)]

    def letters(self) -> list[KeptLetter]:
        return self.inner.letters()

    def letter(self, number: int = 0) -> KeptLetter:
        return self.letters()[number]

    def statuses(self) -> list[str]:
        return [kept.status for kept in self.letters()]

    def readings(self) -> list[int]:
        return [kept.sequence_number for kept in self.inner.rows(SensorReading)]


def counts(report: RetryReport) -> dict[str, int]:
    """The counts of a report that are not zero."""
    names = ("resolved", "waiting", "exhausted", "released", "lost")
    return {name: getattr(report, name) for name in names if getattr(report, name)}
