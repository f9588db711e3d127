"""Publishers wait for the owner of a partition, and for nobody else, and never without end."""

import asyncio
from collections.abc import Callable

import pytest

from local.event_hubs.frames import DETACH, DISPOSITION, END, FLOW
from local.event_hubs.hubs import HubSettings
from local.event_hubs.lead import LONGEST_WAIT, NEIGHBOUR, STANDSTILL
from local.event_hubs.readers import Faults
from tests.local.event_hubs.messages import batch, message, transfer
from tests.local.event_hubs.peer import Clock, Peer, make_broker

pytestmark = pytest.mark.asyncio
LEAD = 10


class World:
    """A broker whose publishers may lead by ten events, and its clock."""

    def __init__(self, retained_events: int | None = None, lead: int | None = LEAD) -> None:
        self.clock, self.faults = Clock(), Faults()
        settings = HubSettings("telemetry", 32, ("hubledger", "other"), retained_events, lead)
        self.broker = make_broker(settings, clock=self.clock, faults=self.faults)

    def owner(self, group: str = "hubledger", partition: int = 0, epoch: int | None = 0) -> Peer:
        """Attach a reader with an epoch, from the start and without credit."""
        peer = Peer(self.broker).begin()
        peer.attach_reader(f"telemetry/ConsumerGroups/{group}/Partitions/{partition}", epoch=epoch)
        peer.frames()
        return peer

    async def let_pass(self, milliseconds: int) -> None:
        """Let time pass in steps of half a second, as the emulator does."""
        await asyncio.sleep(0)
        for _ in range(milliseconds // 500 + 1):
            self.broker.let_time_pass()
            self.clock.now += 500


class Publishing:
    """A publisher that never waits: it counts the messages it has sent, and those that were answered."""

    def __init__(self, world: World, partition: int = 0, *, settled: bool = False) -> None:
        self.peer = Peer(world.broker).begin()
        self.peer.attach_sender(f"telemetry/Partitions/{partition}")
        self.sent = self.answered = self.credit = 0
        self.states: list[int] = []
        self._settled = settled
        self.look()

    def send(self, count: int = 1, events: int = 1) -> None:
        for _ in range(count):
            whole = message() if events == 1 else batch([message()] * events)
            kind = 0 if events == 1 else 0x80013700
            self.peer.put(transfer(whole, self.sent, message_format=kind, settled=self._settled))
            self.sent += 1
        self.look()

    def look(self) -> None:
        for code, fields, _ in self.peer.frames():
            if code == DISPOSITION:
                self.answered += fields[2] - fields[1] + 1
                self.states.append(fields[4].descriptor)
            elif code == FLOW and fields[4] is not None:
                self.credit = fields[6]

    @property
    def unanswered(self) -> int:
        self.look()
        return self.sent - self.answered


@pytest.fixture
def world() -> World:
    return World()


async def test_the_outcome_and_the_credit_stop_at_the_limit_and_go_on_when_the_owner_advances(world: World) -> None:
    owner, flood = world.owner(), Publishing(world)
    flood.send(LEAD)
    assert (flood.unanswered, flood.credit) == (0, 1000)
    flood.send(3)
    assert (flood.unanswered, flood.credit) == (3, 0)
    owner.grant(2)
    assert flood.unanswered == 3, "eleven events are still to take"
    owner.grant(1, received=2)
    assert (flood.unanswered, flood.credit) == (0, 1000)
    flood.send()
    assert flood.unanswered == 1


@pytest.mark.parametrize(
    ("lead", "attach"),
    [
        pytest.param(LEAD, lambda world: None, id="without an owner"),
        pytest.param(LEAD, lambda world: world.owner(epoch=None), id="for a reader without an epoch"),
        pytest.param(LEAD, lambda world: world.owner(partition=31), id="for the owner of a different partition"),
        pytest.param(None, lambda world: world.owner(), id="without a limit"),
    ],
)
async def test_nobody_waits(lead: int | None, attach: Callable[[World], object]) -> None:
    world = World(lead=lead)
    attach(world)
    flood = Publishing(world)
    flood.send(5 * LEAD)
    assert flood.unanswered == 0


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda world, owner: owner.connection.connection_lost(None), id="its connection is lost"),
        pytest.param(
            lambda world, owner: owner.connection.sessions[0].detach(owner.connection.sessions[0].links[1]),
            id="it detaches",
        ),
        pytest.param(
            lambda world, owner: world.owner().connection.connection_lost(None),
            id="a different owner takes over and dies",
        ),
    ],
)
async def test_the_wait_ends_when_the_owner_is_gone_and_begins_again_with_the_next(
    world: World, end: Callable[[World, Peer], object]
) -> None:
    owner, flood = world.owner(), Publishing(world)
    flood.send(LEAD + 5)
    assert flood.unanswered == 5
    end(world, owner)
    assert (flood.unanswered, flood.credit) == (0, 1000)
    again = world.owner()
    flood.send()
    assert flood.unanswered == 1
    again.grant(100)
    assert flood.unanswered == 0


async def test_no_outcome_waits_longer_than_the_longest_wait_and_a_slow_owner_keeps_its_hold(world: World) -> None:
    owner, flood = world.owner(), Publishing(world)
    flood.send(20 * LEAD)
    for received in range(8):
        assert flood.unanswered > 0
        owner.grant(1, received=received)
        await world.let_pass(LONGEST_WAIT)
        assert (flood.unanswered, flood.credit) == (0, 1000)
        flood.send()


async def test_nobody_waits_for_an_owner_that_stands_still_until_it_moves(world: World) -> None:
    owner, flood = world.owner(), Publishing(world)
    flood.send(LEAD + 1)
    for _ in range(STANDSTILL // LONGEST_WAIT + 1):
        await world.let_pass(LONGEST_WAIT)
        flood.send()
    await world.let_pass(500)
    flood.send(5 * LEAD)
    assert flood.unanswered == 0, "it stands still"
    owner.grant(1)
    flood.send()
    assert flood.unanswered == 1, "it has moved"


async def test_the_slowest_of_two_groups_counts_until_it_stands_still_while_the_other_has_nothing_left(
    world: World,
) -> None:
    app, other, flood = world.owner(), world.owner("other"), Publishing(world)
    app.grant(1_000_000)
    other.grant(1)
    flood.send(3 * LEAD)
    await world.let_pass(NEIGHBOUR - 1_000)
    assert flood.unanswered > 0
    await world.let_pass(1_000)
    flood.send(3 * LEAD)
    await asyncio.sleep(0)
    assert flood.unanswered == 0
    flood.send(3 * LEAD)
    world.broker.let_time_pass()
    assert flood.unanswered == 2 * LEAD, "now the app counts alone, until its turn"


async def test_a_publisher_that_hides_its_outcomes_is_held_by_its_credit(world: World) -> None:
    owner, flood = world.owner(), Publishing(world, settled=True)
    flood.send(LEAD + 1)
    assert flood.credit == 0
    owner.grant(1)
    flood.look()
    assert (flood.credit, flood.answered) == (1000, 0)


async def test_a_publisher_that_ignores_its_credit_without_end_is_detached(world: World) -> None:
    world.owner()
    flood = Publishing(world)
    flood.send(LEAD + 1)
    flood.peer.put(*(transfer(message(), 11 + number) for number in range(10_000)))
    assert flood.peer.refusals() == [], "azure-eventhub takes so much credit for granted"
    flood.peer.put(transfer(message(), 10_011))
    *outcomes, (code, fields, _) = flood.peer.frames()
    assert (code, fields[2].value[0]) == (DETACH, "amqp:link:transfer-limit-exceeded")
    assert sum(one[2] - one[1] + 1 for code, one, _ in outcomes if code == DISPOSITION) == 10_002


@pytest.mark.parametrize(
    ("end", "answer"),
    [
        pytest.param(
            lambda peer: peer.connection.sessions[0].detach(peer.connection.sessions[0].links[0]),
            [DISPOSITION, DETACH],
            id="its link",
        ),
        pytest.param(lambda peer: peer.send(END), [DISPOSITION, END], id="its session"),
        pytest.param(lambda peer: peer.connection.connection_lost(None), [], id="its connection"),
    ],
)
async def test_a_publisher_whose_link_ends_while_it_waits_gets_its_outcomes_first_and_then_nothing(
    world: World, end: Callable[[Peer], None], answer: list[int]
) -> None:
    owner, flood = world.owner(), Publishing(world)
    flood.send(LEAD + 1)
    end(flood.peer)
    assert flood.peer.codes() == answer
    owner.grant(100)
    await world.let_pass(LONGEST_WAIT)
    assert flood.peer.frames() == []


async def test_the_limit_is_half_of_the_retained_events_so_that_none_expires_before_its_owner() -> None:
    world = World(retained_events=8)
    owner, flood = world.owner(), Publishing(world)
    flood.send(5)
    assert flood.unanswered == 1
    owner.grant(5)
    assert flood.unanswered == 0


async def test_an_owner_whose_events_expired_holds_nobody() -> None:
    world = World(retained_events=8)
    owner, flood = world.owner(), Publishing(world)
    flood.send(events=100)
    assert flood.unanswered == 1
    owner.grant(1)
    assert flood.unanswered == 1, "it jumped to the first retained event"
    owner.grant(4, received=1)
    assert flood.unanswered == 0
