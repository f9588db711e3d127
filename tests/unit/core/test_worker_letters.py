"""core/worker_letters.py: rounds over a database in memory, on a fake clock."""

import asyncio
from datetime import timedelta

from core.errors import HubUnreachable
from core.letters.retry import Keeper
from core.model.clock import Clock
from core.model.events import Event, Partition
from core.model.letters import LetterPolicy
from core.model.spans import SequenceNumber
from core.worker_letters import PAUSE, keep_letters, keep_round
from tests.fakes.builders import NOON, STREAM, FakeClock, ids
from tests.fakes.builders import keep_letters as given_letters
from tests.fakes.faulty_store import Fault, FaultyStore
from tests.fakes.memory_store import MemoryStore
from tests.fakes.plain_transform import PLAIN

LOOK = timedelta(seconds=60)


def find_event(_: Partition, number: SequenceNumber) -> Event | None:
    raise HubUnreachable(f"nobody asks for {number}")


class World:
    """One keeper over one database."""

    def __init__(self, *faults: Fault | None) -> None:
        self.clock, self.store, source = FakeClock(), MemoryStore(), iter(ids(1))
        stamps = Clock(self.clock.now, lambda: next(source))
        self.keeper = Keeper(
            STREAM, FaultyStore(self.store, on_letters=faults), PLAIN, find_event, stamps, LetterPolicy(chunk=2)
        )

    def round(self) -> timedelta:
        return keep_round(self.keeper, LOOK)

    def statuses(self) -> list[str]:
        return [kept.status for kept in self.store.letters()]


def test_a_round_retries_what_is_due_and_the_next_one_follows_at_once() -> None:
    world = World()
    given_letters(world.store, dict.fromkeys(range(5), "quiet"))
    assert world.round() == timedelta()
    assert world.statuses() == ["resolved"] * 5


def test_a_round_with_nothing_due_sleeps_until_something_is_and_never_longer_than_a_look() -> None:
    world = World()
    assert world.round() == LOOK
    given_letters(world.store, {0: "quiet"}, due_at=NOON + timedelta(seconds=20))
    assert world.round() == timedelta(seconds=20)
    given_letters(world.store, {1: "quiet"}, due_at=NOON + timedelta(hours=1))
    world.clock.advance(20)
    world.round()
    assert world.round() == LOOK


def test_a_round_that_finds_due_letters_and_gets_none_pauses() -> None:
    class Rival(MemoryStore):
        def claim_letters(self, claim: object) -> tuple[()]:
            return ()

    world = World()
    rival = Rival()
    given_letters(rival, {0: "quiet"})
    keeper = Keeper(world.keeper.stream, rival, PLAIN, find_event, world.keeper.clock)
    assert keep_round(keeper, LOOK) == PAUSE


def test_a_fault_is_no_end_of_it() -> None:
    world = World(Fault.NOT_REACHED)
    given_letters(world.store, {0: "quiet"})
    assert world.round() == LOOK
    assert world.round() == timedelta()
    assert world.statuses() == ["resolved"]


def test_rounds_follow_each_other_until_they_are_cancelled() -> None:
    world, slept = World(), list[float]()
    given_letters(world.store, dict.fromkeys(range(5), "quiet"))

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            raise asyncio.CancelledError

    async def cancelled() -> bool:
        try:
            await keep_letters(world.keeper, LOOK, sleep)
        except asyncio.CancelledError:
            return True
        return False

    assert asyncio.run(cancelled())
    assert slept == [0, 60, 60]
    assert world.statuses() == ["resolved"] * 5
