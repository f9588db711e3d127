"""A connection, frame by frame: its greeting, commits before outcomes, and peers that break the protocol."""

import asyncio
from collections.abc import Callable

import pytest

from local.event_hubs.broker import HubBroker
from local.event_hubs.codec import Symbol, UInt
from local.event_hubs.errors import AmqpError
from local.event_hubs.frames import (
    AMQP_HEADER,
    ATTACH,
    BEGIN,
    CLOSE,
    DETACH,
    DISPOSITION,
    END,
    FLOW,
    OPEN,
    SASL_INIT,
    composite,
    frame,
)
from tests.local.event_hubs.messages import attach_sender, message, transfer
from tests.local.event_hubs.peer import Peer, make_broker, publisher

pytestmark = pytest.mark.asyncio


async def test_every_field_is_written_because_the_sdk_indexes_them() -> None:
    peer = Peer(make_broker())
    peer.connection.data_received(AMQP_HEADER)
    peer.send(OPEN, "peer")
    peer.send(BEGIN, None, UInt(0), UInt(10), UInt(10))
    peer.attach_reader()
    peer.attach_reader("telemetry/ConsumerGroups/hubledger/Partitions/9", handle=2)
    lengths = {code: len(fields) for code, fields, _ in peer.frames()}
    assert lengths == {OPEN: 10, BEGIN: 8, ATTACH: 14, DETACH: 3}


async def test_nothing_is_accepted_before_it_is_committed() -> None:
    accepted_at_commit: list[list[tuple[int, int, bool]]] = []

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
    assert peer.outcomes() == [(0, 0, True)]


async def test_a_message_that_could_not_be_committed_is_rejected() -> None:
    class FullDisk(HubBroker):
        def commit(self) -> None:
            raise AmqpError("amqp:internal-error", "the disk is full")

    peer = publisher(make_broker(kind=FullDisk))
    peer.put(transfer(message()))
    assert peer.outcomes() == [(0, 0, False)]


async def test_an_unknown_protocol_is_answered_with_the_header_of_amqp() -> None:
    peer = Peer(make_broker())
    peer.connection.data_received(b"GET / HTTP/1.1\r\n\r\n")
    assert peer.transport.written == AMQP_HEADER
    assert peer.is_closed


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
        assert [condition.partition(":")[0] for condition in peer.refusals(CLOSE)] == ["amqp"], name
        assert peer.is_closed, name
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
    assert not peer.is_closed
    assert ATTACH in peer.codes()


@pytest.mark.parametrize(
    "unknown",
    [transfer(message(), 1, handle=9), composite(FLOW, *map(UInt, (0, 1, 0, 1, 9, 0, 1)))],
    ids=["transfer", "flow"],
)
async def test_a_frame_on_a_handle_that_no_link_has_ends_the_session_after_its_outcomes(unknown: bytes) -> None:
    peer = publisher(make_broker())
    peer.put(transfer(message(), 0), unknown, transfer(message(), 2))
    [accepted, ended] = peer.frames()
    assert (accepted[0], accepted[1][1:3]) == (DISPOSITION, [0, 0])
    assert (ended[0], ended[1][0].value[0]) == (END, "amqp:session:unattached-handle")
    peer.send(END)
    assert not peer.is_closed
    peer.begin_session()
    peer.attach_sender()
    assert ATTACH in peer.codes()


async def test_a_handle_is_in_use_until_the_detach_of_its_link_is_sent() -> None:
    twice = Peer(make_broker()).begin()
    twice.put(attach_sender("telemetry"), attach_sender("telemetry"))
    assert twice.refusals(END) == ["amqp:session:handle-in-use"]
    peer = publisher(make_broker())
    peer.put(transfer(b"garbage"), attach_sender("telemetry"))
    assert peer.codes() == [DISPOSITION, DETACH, END]


async def test_frames_on_their_way_to_a_link_that_this_side_detached_are_ignored() -> None:
    peer = publisher(make_broker())
    peer.put(transfer(b"garbage"), transfer(message(), 1))
    peer.flow((0, 10), (0, 0, 1))
    peer.put(transfer(message(), 2))
    assert END not in peer.codes()
    peer.send(DETACH, UInt(0), True)
    peer.put(transfer(message(), 3))
    assert peer.refusals(END) == ["amqp:session:unattached-handle"]
