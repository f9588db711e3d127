import asyncio
import random
from collections.abc import Callable

import pytest

from local.event_hubs.broker import HubBroker
from local.event_hubs.codec import Described, Symbol, UByte, UInt, ULong
from local.event_hubs.frames import ATTACH, BEGIN, CLOSE, DETACH, FLOW, OPEN, SASL_INIT, TRANSFER, composite, frame
from local.event_hubs.sections import APPLICATION_PROPERTIES
from tests.local.event_hubs.messages import attach_sender, message, section, transfer
from tests.local.event_hubs.peer import SELECTOR, Peer, make_broker, publisher, reader

pytestmark = pytest.mark.asyncio
LARGEST = 0xFFFFFFFF
BODY = b"x" * 30_000


class Receiver:
    """A receiver that keeps its own books of the window, the credit and the events."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.frames = self.deliveries = self.credit = self.window = 0
        self.bodies: list[bytes] = []
        self._half = b""

    def allow(self, window: int, credit: int, drain: bool) -> None:
        self.window, self.credit = window, credit
        self.peer.flow((self.frames, window), (1, self.deliveries, credit), drain)
        self.take()

    def take(self) -> None:
        """Enter the frames that came, none of which may break a rule."""
        for code, fields, payload in self.peer.frames():
            if code == TRANSFER:
                self.frames, self.window = self.frames + 1, self.window - 1
                assert self.window >= 0, "a frame too many"
                if not self._half:
                    assert (fields[2], fields[4]) == (b"\0", True), "settled, with one tag"
                    self.deliveries, self.credit = self.deliveries + 1, self.credit - 1
                    assert self.credit >= 0, "a delivery too many"
                self._half += payload
                if not fields[5]:  # the body begins with a sign and its size
                    size = int(self._half[self._half.rindex(b"<") :].split(b"/")[0][1:])
                    self.bodies.append(self._half[-size:])
                    self._half = b""
            elif code == FLOW:
                assert not self._half, "a drain is answered in the midst of a delivery"
                assert (fields[5], fields[6], fields[8]) == (self.deliveries + self.credit, 0, True)
                self.deliveries, self.credit = self.deliveries + self.credit, 0


def body(chance: random.Random) -> bytes:
    size = chance.choice((20, 300, 2_000, 9_000))
    return (b"<%d/" % size).ljust(size, b"x")


async def test_every_event_comes_once_in_order_and_within_the_window_and_the_credit() -> None:
    for seed in range(60):
        chance = random.Random(seed)
        broker = make_broker()
        receiver = Receiver(reader(broker, window=0, max_frame=512))
        published: list[bytes] = []
        for _ in range(30):
            if chance.random() < 0.4:
                published += (more := [body(chance) for _ in range(chance.randrange(4))])
                publisher(broker, *more)
                broker.pump()
                receiver.take()
            receiver.allow(chance.choice((0, 1, 3, 7, 40)), chance.choice((0, 1, 2, 5)), chance.random() < 0.3)
        for _ in range(len(published) + 1):
            receiver.allow(10_000, 10_000, False)
        assert receiver.bodies == published, seed


async def test_a_position_is_known_by_its_descriptor_and_any_other_filter_is_refused() -> None:
    broker = make_broker()
    publisher(broker, b"old", b"new")
    after_old = "amqp.annotation.x-opt-sequence-number > '0'"
    by_code = Described(ULong(0x468C00000004), after_old)
    session = Described(Symbol("com.microsoft:session-filter"), "a")
    for name, filters, found in (
        ("by its code", {"jms-selector": by_code}, [b"new"]),
        ("by its name", {"jms-selector": Described(SELECTOR, after_old)}, [b"new"]),
        ("unknown", {SELECTOR: Described(Symbol("other"), after_old)}, None),
        ("two", {"a": by_code, "b": by_code}, None),
        ("one beside it", {"a": by_code, "b": session}, None),
    ):
        peer = Peer(broker).begin()
        peer.attach_reader(filters={Symbol(each): value for each, value in filters.items()})
        peer.grant(10)
        frames = peer.frames()
        refused = [fields[2].value[0] for code, fields, _ in frames if code == DETACH]
        assert refused == ([] if found else ["amqp:not-implemented"]), name
        assert [payload[-3:] for code, _, payload in frames if code == TRANSFER] == (found or []), name
        peer.connection.connection_lost(None)


async def test_an_outcome_follows_its_commit_and_a_refused_delivery_splits_the_range() -> None:
    accepted_at_commit: list[list[tuple[int, int, bool]]] = []

    class Watching(HubBroker):
        def commit(self) -> None:
            accepted_at_commit.append(peer.outcomes())
            super().commit()

    peer = Peer(make_broker(kind=Watching))
    peer.begin()
    peer.attach_sender("telemetry/Partitions/0")
    accepted_at_commit.clear()
    peer.put(*(transfer(message(), number) for number in range(9)))
    assert accepted_at_commit == [[]]
    assert peer.outcomes() == [(0, 8, True)]
    peer.put(*(transfer(message(), number, message_format=number % 2) for number in (10, 11, 12)))
    assert peer.outcomes() == [(10, 10, True), (11, 11, False), (12, 12, True)]


BROKEN: dict[str, bytes] = {
    "no sections": b"garbage",
    "a section that is cut short": message(b"x" * 100)[:-1],
    "annotations with a key alone": b"\x00\x53\x72\xc1\x02\x01\x40" + message(),
    "application properties that are a text": section(APPLICATION_PROPERTIES, "x") + message(),
}


MISCONDUCT: dict[str, Callable[[Peer], object]] = {
    "opens twice": lambda peer: peer.send(OPEN, "again"),
    "begins twice": lambda peer: peer.send(BEGIN, None, UInt(0), UInt(1), UInt(1)),
    "attaches a handle above the last": lambda peer: peer.put(attach_sender("telemetry", 5000)),
    "attaches a text as its source": lambda peer: peer.send(ATTACH, "a", UInt(0), False, None, None, "no source"),
    "asks for an unknown settle mode": lambda peer: peer.put(attach_sender("telemetry", modes=(UByte(3), None))),
    "leaves fields out": lambda peer: peer.send(FLOW),
    "sends an unknown performative": lambda peer: peer.send(0x99),
    "sends a frame shorter than a header": lambda peer: peer.connection.data_received(b"\0\0\0\4\2\0\0\0"),
    "sends a frame that is too large": lambda peer: peer.connection.data_received(b"\0\2\0\0\2\0\0\0"),
    "sends a frame of an unknown kind": lambda peer: peer.connection.data_received(b"\0\0\0\x09\2\7\0\0\0"),
    "repeats SASL": lambda peer: peer.connection.data_received(
        frame(composite(SASL_INIT, Symbol("ANONYMOUS")), kind=1)
    ),
}


async def test_a_peer_that_breaks_the_protocol_gets_the_reason_and_is_closed() -> None:
    for name, misbehave in MISCONDUCT.items():
        broker = make_broker()
        peer = Peer(broker).begin()
        misbehave(peer)
        assert [condition.partition(":")[0] for condition in peer.refusals(CLOSE)] == ["amqp"], name
        assert peer.is_closed, name
        await asyncio.sleep(0)
        assert not broker.connections, name


async def test_a_flood_of_two_publishers_leaves_a_reader_its_turn_after_each_of_theirs() -> None:
    broker = make_broker()
    peer = reader(broker)
    peer.grant(1_000)
    floods = [publisher(broker), publisher(broker)]
    for turn in range(20):
        for flood in floods:
            flood.put(*(transfer(message(BODY), 8 * turn + number) for number in range(8)))
        await asyncio.sleep(0)
        assert peer.codes().count(TRANSFER) == 16, turn
