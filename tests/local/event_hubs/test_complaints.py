"""The log of the wrongs of peers: an address and a reason in each line, and no line twice in a second."""

import logging

import pytest

from local.event_hubs.broker import HubBroker
from local.event_hubs.codec import UInt
from local.event_hubs.frames import AMQP_HEADER, BEGIN, OPEN, composite, frame
from local.event_hubs.hubs import Hubs, HubSettings
from local.event_hubs.peers import Complaints, described
from local.event_hubs.readers import Faults
from local.event_hubs.tokens import ROOT_KEY
from tests.local.event_hubs.messages import attach_sender, transfer
from tests.local.event_hubs.peer import EVERYTHING, FakeTransport, Peer

Line = tuple[str, str, str]


class Clock:
    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


def lines(caplog: pytest.LogCaptureFixture) -> list[Line]:
    """Return the action, peer and reason of the lines since the last call, which are all warnings."""
    records = [vars(record) for record in caplog.records]
    assert {record["levelno"] for record in records} <= {logging.WARNING}
    caplog.clear()
    return [(record["action"], record["peer"], record["reason"]) for record in records]


def test_the_same_wrong_of_an_address_is_one_line_a_second_whatever_its_port(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    complaints = Complaints(clock)
    for clock.now in (0, 10, 999, 1_000, 1_500, 2_000):
        complaints.note("127.0.0.1", 4_000 + clock.now, "greet", "it speaks TLS")
    assert [peer for _, peer, _ in lines(caplog)] == ["127.0.0.1:4000", "127.0.0.1:5000", "127.0.0.1:6000"]


def test_a_different_address_action_or_reason_is_a_line_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    complaints = Complaints(Clock())
    wrongs = [("127.0.0.1", "greet", "a"), ("::1", "greet", "a"), ("::1", "close", "a"), ("::1", "close", "b")]
    for host, action, reason in wrongs * 2:
        complaints.note(host, 1, action, reason)
    assert [(peer.removesuffix(":1"), action, reason) for action, peer, reason in lines(caplog)] == wrongs


def test_a_reason_has_an_end_and_the_memory_of_lines_too(caplog: pytest.LogCaptureFixture) -> None:
    complaints = Complaints(Clock())
    for number in range(5_000):
        complaints.note("::1", 1, "close", f"{number} " + "x" * 10_000)
    assert max(len(reason) for _, _, reason in lines(caplog)) == 400
    assert len(complaints._written) <= 1_000


def test_the_protocol_of_a_peer_is_named_by_its_first_bytes() -> None:
    for first, words in (
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", "TLS, and the emulator has plain TCP only"),
        (b"AMQP\x02\x01\x00\x00", "asks for TLS"),
        (b"AMQP\x00\x00\x09\x01", "a different version of AMQP"),
        (b"GET /$servicebus/websocket"[:8], "AMQP over WebSockets"),
        (b"GET / HT", "speaks HTTP"),
        (b"POST /a ", "speaks HTTP"),
        (b"\x00\x01\x02\x03\x04\x05\x06\x07", "its first bytes are b'\\x00\\x01"),
    ):
        assert words in described(first), first


class Named(FakeTransport):
    """A transport with an address."""

    def get_extra_info(self, name: str, default: object = None) -> object:
        return ("127.0.0.1", 4711) if name == "peername" else default


async def heard(sent: bytes, caplog: pytest.LogCaptureFixture) -> list[Line]:
    """Return the lines about a peer that sends these bytes."""
    clock = Clock()
    broker = HubBroker(Hubs([HubSettings("telemetry", 4)], clock), [ROOT_KEY], clock, Faults())
    peer = Peer(broker)
    named = Named(peer.connection)
    peer.connection.connection_made(named)
    broker.connections[peer.connection].add(EVERYTHING)
    peer.connection.data_received(sent)
    return lines(caplog)


@pytest.mark.asyncio
async def test_each_wrong_is_one_line_with_the_address_and_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    session = AMQP_HEADER + b"".join(
        map(frame, (composite(OPEN, "peer"), composite(BEGIN, None, UInt(0), UInt(9), UInt(9))))
    )
    for sent, action, reason in (
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", "greet", "it speaks TLS"),
        (AMQP_HEADER + b"\x00\x00\x00\x04\x02\x00\x00\x00", "close", "amqp:connection:framing-error"),
        (session + frame(attach_sender("nowhere")), "attach", "could not be found. (the link is to 'nowhere')"),
        (session + frame(attach_sender("telemetry")) + frame(transfer(b"x")), "detach", "amqp:decode-error"),
        (session + frame(transfer(b"x", handle=9)), "end", "amqp:session:unattached-handle"),
    ):
        [(found, peer, words)] = await heard(sent, caplog)
        assert (found, peer) == (action, "127.0.0.1:4711")
        assert reason in words
