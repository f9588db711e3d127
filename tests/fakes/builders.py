"""Small builders, which fill in the values that do not matter to a test."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from core.model.commits import BatchCommit, DeadLetter, PartitionState, Settled
from core.model.events import Event, EventBatch, Partition, PartitionId, SequenceNumber, Stream
from core.model.letters import LetterClaim, LetterHold
from core.model.ports import Clock
from core.model.rows import PlacedRow, Row
from core.settle.partition_store import Partitions
from examples.home_security.transform import Home, HomeAlert, SensorReading

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
NOON = EPOCH + timedelta(days=1)  # when a FakeClock begins
LATEST = datetime(9999, 1, 1, tzinfo=UTC)  # after every time that a letter of a test is due
HUB = "namespace/telemetry"
PATIENCE = timedelta(seconds=30)  # of a store, where tests race


STREAM = Stream(HUB, "hubledger")


def partition(partition_id: str = "0", *, hub: str = HUB, group: str = "hubledger") -> Partition:
    return Partition(hub, group, PartitionId(partition_id))


def event(number: int, body: bytes | str = b"", *, at: datetime | None = None, key: str | None = None) -> Event:
    moment = EPOCH + timedelta(seconds=number % 10**9) if at is None else at
    octets = body.encode() if isinstance(body, str) else body
    return Event(SequenceNumber(number), str(number * 64), moment, key, {}, octets)


def events(first: int, last: int, body: bytes | str = b"") -> tuple[Event, ...]:
    return tuple(event(number, body) for number in range(first, last + 1))


def batch(given: Iterable[Event], of: Partition | None = None) -> EventBatch:
    return EventBatch(of or partition(), tuple(given), "invocation-1")


class FakeClock:
    """A clock that does not move by itself. Sleeping moves it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return EPOCH + timedelta(days=1, seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds


def ids(seed: int = 0) -> Iterable[UUID]:
    chance = random.Random(seed)
    while True:
        yield UUID(int=chance.getrandbits(128), version=4)


def stamps(seed: int = 0, clock: FakeClock | None = None) -> Clock:
    source = iter(ids(seed))
    return Clock(now=(clock or FakeClock()).now, new_id=lambda: next(source))


def reading(home_id: str = "home-1", ppm: int | None = 5, at: datetime = EPOCH) -> SensorReading:
    return SensorReading(home_id, "sensor-1", "carbon_monoxide", None, ppm, at)


def alert(home_id: str = "home-1", ppm: int | None = 500) -> HomeAlert:
    return HomeAlert(home_id, "sensor-1", "carbon_monoxide", ppm, EPOCH)


def home(home_id: str = "home-1", time_zone: str = "Europe/Berlin", armed: bool = False) -> Home:
    return Home(home_id, time_zone, armed)


def letter(of: Event, *, error: str = "no such kind") -> DeadLetter:
    return DeadLetter(of, "unknown", "builtins.ValueError", error, "0123456789abcdef", "waiting")


def keep_letters(
    store: Partitions, bodies: Mapping[int, bytes | str], place: str | Partition = "0", **changed: Any
) -> None:
    state = store.read_partition(partition(place) if isinstance(place, str) else place)
    first = 0 if state.checkpoint is None else state.checkpoint.sequence_number + 1
    last = max(bodies)
    due = {"due_at": NOON, **changed}
    letters = [replace(letter(event(number, body)), **due) for number, body in sorted(bodies.items())]
    outcome = settled({}, letters=letters, filtered=last - first + 1 - len(letters))
    store.commit_batch(replace(commit(state, first, last, outcome), committed_at=NOON))


def hold(store: Partitions, numbers: Iterable[int], claimed_by: str = "claim-1") -> LetterHold:
    return LetterHold(store.read_partition(partition()), tuple(map(SequenceNumber, numbers)), claimed_by)


def claim(
    claimed_by: str = "claim-1", *, at: datetime | None = None, most: int = 1_000, lease: int = 300
) -> LetterClaim:
    now = at or NOON
    return LetterClaim(STREAM, claimed_by, now, now + timedelta(seconds=lease), LATEST, most)


def settled(placed: Mapping[int, Sequence[Row]], *, letters: Sequence[DeadLetter] = (), filtered: int = 0) -> Settled:
    blocks: dict[type, list[PlacedRow]] = {}
    for number, rows in placed.items():
        for ordinal, row in enumerate(rows):
            blocks.setdefault(type(row), []).append((number, ordinal, row))
    return Settled(blocks, letters, len(placed), filtered)


def commit(
    state: PartitionState, first: int, last: int, outcome: Settled | None = None, *, seed: int | None = None
) -> BatchCommit:
    """A commit of events `first` to `last`. Without an outcome all of them were filtered."""
    return BatchCommit(
        state=state,
        commit_id=next(iter(ids(first * 1_000_003 + last if seed is None else seed))),
        first=SequenceNumber(first),
        last=event(last),
        settled=outcome or settled({}, filtered=last - first + 1),
        transform_version="test/1",
        invocation_id="invocation-1",
        committed_at=EPOCH + timedelta(days=1),
    )
