"""The answers of a connection, frame by frame: order, credit, windows and broken peers."""

import asyncio
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from local.event_hubs.broker import HubBroker
from local.event_hubs.codec import Described, Symbol, UInt, ULong
from local.event_hubs.errors import AmqpError
from local.event_hubs.frames import (
    ACCEPTED,
    AMQP_HEADER,
    ATTACH,
    BEGIN,
    CLOSE,
    DETACH,
    DISPOSITION,
    END,
    FLOW,
    OPEN,
    REJECTED,
    SASL_INIT,
    SOURCE,
    TARGET,
    TRANSFER,
    composite,
    frame,
)
from local.event_hubs.sessions import CHUNK, MAX_MESSAGE
from tests.local.event_hubs.messages import attach_sender, message, transfer
from tests.local.event_hubs.peer import PARTITION, Peer, make_broker, publisher, reader

pytestmark = pytest.mark.asyncio


async def test_every_field_is_written_because_the_sdk_indexes_them() -> None:
    peer = Peer(make_broker())
    peer.connection.data_received(AMQP_HEADER)
    peer.send(OPEN, "peer")
    peer.send(BEGIN, None, UInt(0), UInt(10), UInt(10))
    peer.attach_reader(PARTITION)
    peer.attach_reader("telemetry/ConsumerGroups/hubledger/Partitions/9", handle=2)
    lengths = {code: len(fields) for code, fields, _ in peer.frames()}
    assert lengths == {OPEN: 10, BEGIN: 8, ATTACH: 14, DETACH: 3}


async def test_deliveries_that_came_together_are_accepted_in_one_range_that_a_refused_one_splits() -> None:
    peer = publisher(make_broker())
    peer.put(*(transfer(message(), number) for number in range(9)))
    assert peer.outcomes() == [(0, 8, ACCEPTED)]
    peer.put(*(transfer(message(), number, message_format=number % 2) for number in (10, 11, 12)))
    assert peer.outcomes() == [(10, 10, ACCEPTED), (11, 11, REJECTED), (12, 12, ACCEPTED)]


async def test_nothing_is_accepted_before_it_is_committed() -> None:
    accepted_at_commit: list[list[tuple[int, int, int]]] = []

    class Watching(HubBroker):
        def commit(self) -> None:
            accepted_at_commit.append(peer.outcomes())
            super().commit()

    peer = Peer(make_broker(kind=Watching))
    peer.begin()
    peer.attach_sender("telemetry/Partitions/0")
    accepted_at_commit.clear()
    peer.put(transfer(message()))
    assert accepted_at_commit == [[]]
    assert peer.outcomes() == [(0, 0, ACCEPTED)]


async def test_a_message_that_could_not_be_committed_is_rejected() -> None:
    class FullDisk(HubBroker):
        def commit(self) -> None:
            raise AmqpError("amqp:internal-error", "the disk is full")

    peer = publisher(make_broker(kind=FullDisk))
    peer.put(transfer(message()))
    assert peer.outcomes() == [(0, 0, REJECTED)]


async def test_a_reader_gets_as_many_events_as_it_has_credit_settled_and_with_one_tag() -> None:
    broker = make_broker()
    publisher(broker, *[b"body"] * 10)
    peer = reader(broker)
    peer.grant(3)
    assert [(code, *fields[1:3], fields[4]) for code, fields, _ in peer.frames()] == [
        (TRANSFER, delivery, b"\0", True) for delivery in range(3)
    ]
    peer.grant(4, received=3)
    assert peer.codes() == [TRANSFER] * 4
    peer.grant(0, received=7)
    assert peer.codes() == []


async def test_an_event_larger_than_the_peers_frames_comes_in_several() -> None:
    broker = make_broker()
    publisher(broker, b"x" * 2000)
    peer = reader(broker, max_frame=512)
    peer.grant(10)
    parts = [(fields[5], payload) for code, fields, payload in peer.frames() if code == TRANSFER]
    assert [more for more, _ in parts] == [True] * (len(parts) - 1) + [False]
    assert b"".join(payload for _, payload in parts).endswith(message(b"x" * 2000))


async def test_only_a_sender_gets_a_limit_because_a_stamped_event_may_exceed_it() -> None:
    peer = Peer(make_broker()).begin()
    peer.attach_sender()
    peer.attach_reader()
    assert [fields[10] for code, fields, _ in peer.frames() if code == ATTACH] == [MAX_MESSAGE, None]


async def test_a_reader_stops_at_the_sessions_window() -> None:
    broker = make_broker()
    publisher(broker, *[b"body"] * 10)
    peer = reader(broker, window=4)
    peer.send(FLOW, UInt(0), UInt(4), UInt(0), UInt(10), UInt(1), UInt(0), UInt(100))
    assert peer.codes() == [TRANSFER] * 4
    peer.send(FLOW, UInt(4), UInt(3), UInt(0), UInt(10))
    assert peer.codes() == [TRANSFER] * 3


async def test_a_reader_that_stops_reading_gets_nothing_more_and_then_the_rest_in_pieces() -> None:
    broker = make_broker()
    publisher(broker, *[b"x" * 30_000] * 60)
    peer = reader(broker)
    peer.connection.pause_writing()
    peer.grant(60)
    assert TRANSFER not in peer.codes()
    peer.connection.resume_writing()
    for _ in range(3):
        await asyncio.sleep(0)
    assert peer.codes().count(TRANSFER) == 60
    assert peer.transport.largest_write <= CHUNK + 2 * 30_000


async def test_a_drained_link_gives_its_credit_back() -> None:
    peer = reader(make_broker())
    peer.grant(7, drain=True)
    [(code, fields, _)] = peer.frames()
    assert (code, fields[5], fields[6], fields[8]) == (FLOW, 7, 0, True)


async def test_readers_get_new_events_once_they_are_committed() -> None:
    broker = make_broker()
    peer = reader(broker, selector="amqp.annotation.x-opt-offset > '@latest'")
    peer.grant(10)
    publisher(broker, b"new")
    await asyncio.sleep(0)
    [(code, _, payload)] = peer.frames()
    assert code == TRANSFER
    assert payload.endswith(b"new")


async def test_a_position_is_known_by_its_descriptor_whatever_its_filter_is_called() -> None:
    broker = make_broker()
    publisher(broker, b"old", b"new")
    selector = "amqp.annotation.x-opt-sequence-number > '0'"
    text = Symbol("apache.org:selector-filter:string")
    for given in (Described(ULong(0x468C00000004), selector), Described(text, selector)):
        peer = Peer(broker).begin()
        ends = Described(ULong(SOURCE), [PARTITION, *[None] * 6, {Symbol("jms-selector"): given}])
        peer.send(ATTACH, "r1", UInt(1), True, None, None, ends, Described(ULong(TARGET), ["here"]))
        peer.grant(10)
        assert [payload[-3:] for code, _, payload in peer.frames() if code == TRANSFER] == [b"new"]
    refused = Peer(broker).begin()
    ends = Described(ULong(SOURCE), [PARTITION, *[None] * 6, {text: Described(Symbol("other"), selector)}])
    refused.send(ATTACH, "r1", UInt(1), True, None, None, ends, Described(ULong(TARGET), ["here"]))
    assert [fields[2].value[0] for code, fields, _ in refused.frames() if code == DETACH] == ["amqp:not-implemented"]


SINCE = Described(ULong(0x468C00000004), "amqp.annotation.x-opt-sequence-number > '-1'")


@pytest.mark.parametrize(
    ("filters", "answer"),
    [
        ({"position": None}, TRANSFER),
        ({"position": SINCE, "other": Described(Symbol("com.microsoft:session-filter"), "a")}, DETACH),
        ({"position": SINCE, "second": SINCE}, DETACH),
    ],
)
async def test_a_filter_of_null_is_none_and_one_beside_the_position_is_refused(
    filters: dict[str, Any], answer: int
) -> None:
    broker = make_broker()
    publisher(broker, b"old")
    peer, names = Peer(broker).begin(), {"position": "apache.org:selector-filter:string"}
    given = {Symbol(names.get(name, name)): value for name, value in filters.items()}
    ends = Described(ULong(SOURCE), [PARTITION, *[None] * 6, given])
    peer.send(ATTACH, "r1", UInt(1), True, None, None, ends, Described(ULong(TARGET), ["here"]))
    peer.grant(10)
    assert answer in [code for code, _, _ in peer.frames()]


async def test_a_message_over_the_limit_is_rejected_in_the_words_of_the_service_and_its_link_goes_on() -> None:
    peer = publisher(make_broker())
    part = b"x" * 60_000
    parts = MAX_MESSAGE // len(part)
    for _ in range(parts):
        peer.put(transfer(part, 5, more=True))
    peer.put(transfer(part, 5), transfer(message(), 6))
    [refused, accepted] = [fields for code, fields, _ in peer.frames() if code == DISPOSITION]
    assert (refused[1:3], refused[4].descriptor) == ([5, 5], REJECTED)
    assert refused[4].value[0].value[:2] == [
        "amqp:link:message-size-exceeded",
        f"The received message (delivery-id:5, size:{(parts + 1) * len(part)} bytes) exceeds the limit "
        "(1048576 bytes) currently allowed on the link.",
    ]
    assert (accepted[1:3], accepted[4].descriptor) == ([6, 6], ACCEPTED)


async def test_the_parts_of_a_message_over_the_limit_are_not_kept() -> None:
    peer = publisher(make_broker())
    tracemalloc.start()
    try:
        for _ in range(500):
            peer.put(transfer(b"x" * 60_000, more=True))
        assert tracemalloc.get_traced_memory()[0] < 2 * MAX_MESSAGE, "30 MB came"
    finally:
        tracemalloc.stop()
    assert peer.codes() == []


async def test_a_message_of_exactly_the_limit_is_accepted() -> None:
    peer = publisher(make_broker())
    whole = message(b"x" * (MAX_MESSAGE - 8))
    assert len(whole) == MAX_MESSAGE
    peer.put(
        *(transfer(whole[at : at + 60_000], more=at + 60_000 < MAX_MESSAGE) for at in range(0, MAX_MESSAGE, 60_000))
    )
    assert peer.outcomes() == [(0, 0, ACCEPTED)]


async def test_an_aborted_delivery_leaves_nothing() -> None:
    peer = publisher(make_broker())
    peer.put(transfer(b"half", more=True))
    peer.send(TRANSFER, UInt(0), UInt(0), b"t", UInt(0), False, False, None, None, None, True)
    peer.put(transfer(message(), 1))
    assert peer.outcomes() == [(1, 1, ACCEPTED)]


async def test_an_unknown_protocol_is_answered_with_the_header_of_amqp() -> None:
    peer = Peer(make_broker())
    peer.connection.data_received(b"GET / HTTP/1.1\r\n\r\n")
    assert peer.transport.written == AMQP_HEADER
    assert peer.transport.is_closing()


MISCONDUCT: dict[str, Callable[[Peer], object]] = {
    "opens twice": lambda peer: peer.send(OPEN, "again"),
    "begins twice": lambda peer: peer.send(BEGIN, None, UInt(0), UInt(1), UInt(1)),
    "begins past the last channel": lambda peer: peer.send(BEGIN, None, UInt(0), UInt(1), UInt(1), channel=5000),
    "attaches a handle above the last": lambda peer: peer.put(attach_sender("telemetry", 5000)),
    "attaches a number as its name": lambda peer: peer.send(ATTACH, 7, UInt(0), False),
    "attaches a text as its source": lambda peer: peer.send(ATTACH, "a", UInt(0), False, None, None, "no source"),
    "leaves fields out": lambda peer: peer.send(FLOW),
    "sends an unknown performative": lambda peer: peer.send(0x99),
    "sends a frame shorter than a header": lambda peer: peer.connection.data_received(b"\0\0\0\4\2\0\0\0"),
    "sends a frame that is too large": lambda peer: peer.connection.data_received(b"\0\2\0\0\2\0\0\0"),
    "begins a body after its frame": lambda peer: peer.connection.data_received(b"\0\0\0\x09\x09\0\0\0\0"),
    "sends a frame of an unknown kind": lambda peer: peer.connection.data_received(b"\0\0\0\x09\2\7\0\0\0"),
    "sends no performative": lambda peer: peer.connection.data_received(b"\0\0\0\x09\2\0\0\0\x41"),
    "repeats SASL": lambda peer: peer.connection.data_received(
        frame(composite(SASL_INIT, Symbol("ANONYMOUS")), kind=1)
    ),
}


async def test_a_peer_that_breaks_the_protocol_gets_the_reason_and_is_closed() -> None:
    for name, misbehave in MISCONDUCT.items():
        broker = make_broker()
        peer = Peer(broker).begin()
        misbehave(peer)
        closed = [fields[0].value[0] for code, fields, _ in peer.frames() if code == CLOSE]
        assert [condition.partition(":")[0] for condition in closed] == ["amqp"], name
        assert peer.transport.is_closing(), name
        await asyncio.sleep(0)
        assert not broker.connections, name


async def test_frames_for_a_session_that_has_ended_are_ignored_until_one_begins_on_its_channel() -> None:
    peer = publisher(make_broker())
    peer.send(END)
    peer.send(DETACH, UInt(0), True)
    peer.put(transfer(message()))
    assert peer.codes() == [END]
    peer.send(BEGIN, None, UInt(0), UInt(10), UInt(10))
    peer.attach_sender()
    assert not peer.transport.is_closing()
    assert ATTACH in peer.codes()
