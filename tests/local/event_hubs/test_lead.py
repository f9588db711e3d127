import asyncio

import pytest

from local.event_hubs.frames import DISPOSITION, FLOW
from local.event_hubs.hubs import HubSettings
from local.event_hubs.lead import LONGEST_WAIT, STANDSTILL
from tests.local.event_hubs.messages import message, transfer
from tests.local.event_hubs.peer import Clock, Peer, make_broker

pytestmark = pytest.mark.asyncio
LEAD = 10


class World:
    """A broker whose publishers may lead by ten events, its clock, and a publisher that never waits."""

    def __init__(self, lead: int | None = LEAD) -> None:
        self.clock = Clock()
        settings = HubSettings("telemetry", 32, ("hubledger",), lead=lead)
        self.broker = make_broker(settings, clock=self.clock)
        self.peer = Peer(self.broker).begin()
        self.peer.attach_sender("telemetry/Partitions/0")
        self.sent = self.answered = self.credit = 0

    def owner(self, partition: int = 0, epoch: int | None = 0) -> Peer:
        """Attach a reader with an epoch, from the start and without credit."""
        peer = Peer(self.broker).begin()
        peer.attach_reader(f"telemetry/ConsumerGroups/hubledger/Partitions/{partition}", epoch=epoch)
        peer.frames()
        return peer

    async def let_pass(self, milliseconds: int) -> None:
        await asyncio.sleep(0)
        for _ in range(milliseconds // 500 + 1):
            self.broker.let_time_pass()
            self.clock.now += 500

    def send(self, count: int = 1) -> None:
        for _ in range(count):
            self.peer.put(transfer(message(), self.sent))
            self.sent += 1

    def held(self) -> tuple[int, int]:
        """Return the number of messages without an answer, and the credit."""
        for code, fields, _ in self.peer.frames():
            if code == DISPOSITION:
                self.answered += fields[2] - fields[1] + 1
            elif code == FLOW and fields[4] is not None:
                self.credit = fields[6]
        return self.sent - self.answered, self.credit

    @property
    def unanswered(self) -> int:
        return self.held()[0]


@pytest.fixture
def world() -> World:
    return World()


async def test_the_outcome_and_the_credit_stop_at_the_limit_and_go_on_when_the_owner_advances(world: World) -> None:
    owner = world.owner()
    world.send(LEAD)
    assert world.held() == (0, 1000)
    world.send(3)
    assert world.held() == (3, 0)
    owner.grant(2)
    assert world.unanswered == 3, "eleven events are still to take"
    owner.grant(1, received=2)
    assert world.held() == (0, 1000)
    world.send()
    assert world.unanswered == 1


async def test_no_outcome_waits_longer_than_the_longest_wait_and_none_for_an_owner_that_stands(world: World) -> None:
    owner = world.owner()
    world.send(20 * LEAD)
    for received in range(4):  # a slow owner keeps its hold
        assert world.unanswered > 0
        owner.grant(1, received=received)
        await world.let_pass(LONGEST_WAIT)
        assert world.held() == (0, 1000)
        world.send()
    for _ in range(STANDSTILL // LONGEST_WAIT + 1):
        await world.let_pass(LONGEST_WAIT)
        world.send()
    await world.let_pass(500)
    world.send(5 * LEAD)
    assert world.unanswered == 0, "it stands still"
    owner.grant(1, received=4)
    world.send()
    assert world.unanswered == 1, "it has moved"
