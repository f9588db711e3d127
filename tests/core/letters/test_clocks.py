"""Promises of every store about time: letters are due by the clock of the database, whatever a process's own says."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import cycle

import pytest

from core.ingest.ingest import Ingestion, ingest_batch
from core.letters.retry import Keeper, claim_due, retry_chunk, wait_for_due
from core.model.letters import Backoff, LetterPolicy
from core.model.ports import Clock
from core.store.database import store_clock
from examples.home_security.transform import SensorReading
from tests.fakes.builders import STREAM, FakeClock, batch, event, ids, partition
from tests.fakes.kept import Engine
from tests.fakes.memory_store import MemoryStore
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import Store

HOUR, DAY, NONE = timedelta(hours=1), timedelta(days=1), timedelta()
LETTERS = 20  # of each owner
BRIEF = LetterPolicy(Backoff(base=timedelta(seconds=0.25), ceiling=timedelta(seconds=0.25)), lease=timedelta(seconds=5))
PATIENCE = 30.0  # seconds


@dataclass
class Owner:
    """A process with its own clock: it ingests a partition, and retries the letters of all."""

    store: Store
    own: Clock
    policy: LetterPolicy
    monotonic: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        of_batches = store_clock(self.store.database, self.own, monotonic=self.monotonic)
        self.means = Ingestion(self.store, PLAIN, of_batches, letters=self.policy)
        clock = self.store.keepers_clock(self.own, self.monotonic)
        self.keeper = Keeper(STREAM, self.store, PLAIN, lambda place, number: None, clock, self.policy)

    def ingest(self, place: str, bodies: Iterable[str], first: int = 0) -> None:
        given = [event(number, body) for number, body in enumerate(bodies, first)]
        ingest_batch(batch(given, partition(place)), self.means)

    def retry(self) -> None:
        """Retry the letters that are due, if any."""
        if wait_for_due(self.keeper, DAY) == NONE:
            for chunk in claim_due(self.keeper):
                retry_chunk(chunk, self.keeper, "keeper")


def clock_that_is(*off: timedelta, seed: int) -> Clock:
    """The clock of a process: off by these times in turn, so that several make it jump."""
    turns, made = cycle(off), ids(seed)
    return Clock(lambda: datetime.now(UTC) + next(turns), lambda: next(iter(made)))


@pytest.mark.parametrize(
    "off",
    [
        *([(one,), (other,)] for one, other in ((NONE, HOUR), (-HOUR, HOUR), (NONE, DAY), (-DAY, NONE), (-DAY, DAY))),
        [(NONE, DAY, -HOUR, HOUR, -DAY), (NONE,)],
    ],
    ids=lambda off: " and ".join("then ".join(f"{at.total_seconds() / 3600:+g} h " for at in one) for one in off),
)
def test_letters_of_owners_whose_clocks_differ_or_jump_keep_their_schedule_and_all_resolve(
    make_store: Callable[[], Store], engine: Engine, off: list[tuple[timedelta, ...]]
) -> None:
    """Let letters of each owner fail twice more, give them their reference, and check that they resolve in time."""
    owners = [Owner(make_store(), clock_that_is(*each, seed=seed), BRIEF) for seed, each in enumerate(off)]
    began = time.monotonic()

    def retry_until(has_come: Callable[[], bool]) -> None:
        while not has_come():
            for owner in owners:
                owner.retry()
            due = 1 + int((time.monotonic() - began) / BRIEF.backoff.base.total_seconds())
            assert max(one.attempts for one in engine.letters()) <= due, "an attempt came before its time"
            assert time.monotonic() < began + PATIENCE, [(one.status, one.attempts) for one in engine.letters()]

    for place, owner in enumerate(owners):
        owner.ingest(str(place), ["look home-1"] * LETTERS)
    retry_until(lambda: min(one.attempts for one in engine.letters()) >= 3)
    owners[1].ingest("1", ["home home-1 1"], first=LETTERS)
    retry_until(lambda: all(one.status == "resolved" for one in engine.letters()))
    assert len(engine.letters()) == len(engine.rows(SensorReading)) == 2 * LETTERS


@pytest.mark.parametrize("jump", [HOUR + timedelta(minutes=5), DAY], ids=["an hour", "a day"])
@pytest.mark.parametrize("sign", [1, -1], ids=["ahead", "behind"])
def test_letters_resolve_within_their_schedule_when_the_clock_of_the_database_was_wrong(
    jump: timedelta, sign: int
) -> None:
    """It is set wrong and right again, and the process that held letters in the meantime is killed."""
    clock = FakeClock()
    seconds, policy, off = sign * jump.total_seconds(), LetterPolicy(), NONE
    store = MemoryStore(now=lambda: clock.now() + off)
    owners = [
        Owner(store, clock_that_is(each, seed=at), policy, clock.monotonic) for at, each in enumerate((NONE, DAY))
    ]
    owners[0].ingest("0", ["look home-1"] * LETTERS)
    off = timedelta(seconds=seconds)
    clock.advance(60)
    owners[0].ingest("0", ["look home-1"] * LETTERS, first=LETTERS)
    clock.advance(60)
    assert claim_due(owners[0].keeper)  # it is killed now
    off = NONE
    clock.advance(60)
    owners[1].ingest("1", ["home home-1 1"])
    until = clock.seconds + HOUR.total_seconds()
    while any(one.status != "resolved" for one in store.letters()):
        for owner in owners:
            owner.retry()
        clock.advance(10)
        assert clock.seconds < until, {(one.status, one.due_at) for one in store.letters()}
    assert max(one.attempts for one in store.letters()) <= 3
    assert len(store.rows(SensorReading)) == 2 * LETTERS
