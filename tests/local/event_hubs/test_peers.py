"""Peers that the emulator refuses: for a foreign host, slow ones, and those that do not read; and the log of them."""

import logging
from collections.abc import Callable

import pytest

from local.event_hubs.codec import Symbol, UInt
from local.event_hubs.frames import (
    AMQP_HEADER,
    ATTACH,
    BEGIN,
    CLOSE,
    DETACH,
    FLOW,
    OPEN,
    SASL_HEADER,
    SASL_INIT,
    composite,
    frame,
)
from local.event_hubs.peers import PATIENCE, WAITING_LIMIT, Complaints, described
from local.event_hubs.sections import PROPERTIES
from tests.local.event_hubs.messages import attach_sender, message, section, transfer
from tests.local.event_hubs.peer import Clock, Peer, make_broker

pytestmark = pytest.mark.asyncio
FOREIGN = ("evil.example", "localhost.evil.example", "localhost.", "127.0.0.1.nip.io", "0.0.0.0", "localhost:1:2", " ")
LOOPBACK = ("localhost", "LocalHost:5672", "127.0.0.1", "127.0.0.1:65535", "::1", "[::1]:5672", None)


def opened(hostname: str | None) -> Peer:
    peer = Peer(make_broker())
    peer.connection.data_received(AMQP_HEADER)
    peer.send(OPEN, "peer", hostname)
    return peer


async def test_an_open_for_a_foreign_host_is_refused_and_one_for_loopback_or_none_is_not() -> None:
    for name in (*FOREIGN, "x" * 5000):
        peer = opened(name)
        ((code, fields, _),) = peer.frames()
        assert (code, fields[0].value[0]) == (CLOSE, "amqp:not-allowed"), name
        assert len(fields[0].value[1]) < 300
        assert peer.is_closed, name
    for loopback in LOOPBACK:
        assert opened(loopback).codes() == [OPEN], loopback


# slow peers


class Slow:
    """A broker that looks at its connections every half second of a clock."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.broker = make_broker(clock=self.clock)

    def looks(self, count: int = PATIENCE // 500 + 2) -> None:
        for _ in range(count):
            self.clock.now += 500
            self.broker.let_time_pass()


async def test_a_greeting_that_does_not_end_is_cut_in_each_of_its_parts() -> None:
    init = frame(composite(SASL_INIT, Symbol("ANONYMOUS"), b"", "localhost"), kind=1)
    for sent in (b"", b"AMQP", SASL_HEADER, SASL_HEADER + init[:-1], SASL_HEADER + init, AMQP_HEADER):
        slow = Slow()
        peer = Peer(slow.broker)
        peer.connection.data_received(sent)
        slow.looks()
        assert peer.is_closed, sent


async def test_a_frame_that_trickles_is_cut_and_fast_ones_in_parts_are_not() -> None:
    world = Slow()
    body = frame(composite(OPEN, "peer", None, UInt(65_536)))
    slow, fast = Peer(world.broker).begin(), Peer(world.broker).begin()
    fast.attach_sender()
    whole = frame(transfer(message(b"x" * 500), 0))
    for at in range(PATIENCE // 500 + 2):
        slow.connection.data_received(body[at : at + 1])
        fast.connection.data_received(whole[-1:] * (at > 0) + whole[:-1])
        world.looks(1)
    assert (slow.is_closed, fast.is_closed) == (True, False)


async def test_a_quiet_connection_and_a_frozen_one_stay() -> None:
    world = Slow()
    quiet, frozen = Peer(world.broker).begin(), Peer(world.broker).begin()
    frozen.connection.data_received(b"\0\0")
    frozen.connection.freeze()
    world.looks(PATIENCE // 200)
    assert (quiet.is_closed, frozen.is_closed) == (False, False)


# peers that do not read

REQUEST = transfer(section(PROPERTIES, ["i" * 30_000]))
LONG_ATTACH = composite(ATTACH, "a" * 30_000, UInt(1), False)


def ask(peer: Peer, credit: int) -> None:
    peer.attach_sender("$management")
    peer.attach_reader("$management")
    peer.grant(credit)


@pytest.mark.parametrize(
    ("prepare", "flood"),
    [
        pytest.param(lambda peer: None, LONG_ATTACH, id="attaches that are refused"),
        pytest.param(lambda peer: ask(peer, 1_000_000), REQUEST, id="answers"),
        pytest.param(
            lambda peer: None,
            composite(FLOW, *map(UInt, (0, 9, 0, 9)), *[None] * 5, True),
            id="echoes",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda peer: peer.attach_sender(),
            transfer(message(), message_format=1),
            id="rejected deliveries",
            marks=pytest.mark.slow,
        ),
    ],
)
async def test_a_peer_that_does_not_read_is_closed_when_4_mb_wait_for_it(
    prepare: Callable[[Peer], None], flood: bytes
) -> None:
    assert WAITING_LIMIT == 4 * 1024 * 1024
    peer = Peer(make_broker()).begin()
    prepare(peer)
    peer.frames()
    peer.stop_reading()
    data = frame(flood) * 100
    for _ in range(3 * WAITING_LIMIT // 5_000):
        if not peer.is_closed:
            peer.connection.data_received(data)
    assert peer.transport.waiting < WAITING_LIMIT + 35_000
    assert peer.refusals(CLOSE) == ["amqp:resource-limit-exceeded"]


async def test_a_peer_that_gives_no_credit_for_its_answers_is_closed_when_4_mb_wait_for_it() -> None:
    peer = Peer(make_broker()).begin()
    ask(peer, 0)
    peer.put(*[REQUEST] * (WAITING_LIMIT // 31_000))
    assert not peer.is_closed
    peer.put(*[REQUEST] * 10)
    assert peer.refusals(CLOSE) == ["amqp:resource-limit-exceeded"]


async def test_answers_that_the_peer_took_or_whose_link_is_gone_do_not_count() -> None:
    peer = Peer(make_broker()).begin()
    ask(peer, 1_000)
    for _ in range(2 * WAITING_LIMIT // 30_000):
        peer.put(REQUEST)
    for _ in range(3):
        peer.send(DETACH, UInt(1), True)
        peer.attach_reader("$management")
        peer.put(*[REQUEST] * (WAITING_LIMIT // 60_000))
    assert not peer.is_closed


async def test_answers_to_many_links_in_a_closed_window_are_bounded_together() -> None:
    peer = Peer(make_broker()).begin()
    peer.attach_sender("$management")
    links = 2 * WAITING_LIMIT // 30_000
    for handle in range(1, links):
        peer.attach_reader("$management", handle)
    peer.frames()
    for handle in range(1, links):
        peer.flow((0, 0), (handle, 0, 1))
    peer.put(REQUEST)
    assert peer.refusals(CLOSE) == ["amqp:resource-limit-exceeded"]


async def test_a_peer_that_reads_slowly_is_not_closed() -> None:
    peer = Peer(make_broker()).begin()
    peer.stop_reading()
    for _ in range(2 * WAITING_LIMIT // 30_000):
        peer.put(LONG_ATTACH)
        peer.transport.waiting = 30_000
    assert not peer.is_closed


# the log


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str]]:
    """Return the action, peer and reason of the lines since the last call, which are all warnings."""
    records = [vars(record) for record in caplog.records]
    assert {record["levelno"] for record in records} <= {logging.WARNING}
    caplog.clear()
    return [(record["action"], record["peer"], record["reason"]) for record in records]


async def test_the_same_wrong_of_an_address_is_one_line_a_second_whatever_its_port(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    complaints = Complaints(clock)
    for clock.now in (0, 10, 999, 1_000, 1_500, 2_000):
        complaints.note("127.0.0.1", 4_000 + clock.now, "greet", "it speaks TLS")
    assert [peer for _, peer, _ in lines(caplog)] == ["127.0.0.1:4000", "127.0.0.1:5000", "127.0.0.1:6000"]
    wrongs = [("127.0.0.1", "greet", "a"), ("::1", "greet", "a"), ("::1", "close", "a"), ("::1", "close", "b")]
    for host, action, reason in wrongs * 2:
        complaints.note(host, 1, action, reason)
    assert [(peer.removesuffix(":1"), action, reason) for action, peer, reason in lines(caplog)] == wrongs


async def test_a_reason_has_an_end_and_the_memory_of_lines_too(caplog: pytest.LogCaptureFixture) -> None:
    complaints = Complaints(Clock())
    for number in range(5_000):
        complaints.note("::1", 1, "close", f"{number} " + "x" * 10_000)
    assert max(len(reason) for _, _, reason in lines(caplog)) == 400
    assert len(complaints._written) <= 1_000


async def test_the_protocol_of_a_peer_is_named_by_its_first_bytes() -> None:
    for first, words in (
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", "TLS, and the emulator has plain TCP only"),
        (b"AMQP\x02\x01\x00\x00", "asks for TLS"),
        (b"AMQP\x00\x00\x09\x01", "a different version of AMQP"),
        (b"GET /$servicebus/websocket"[:8], "AMQP over WebSockets"),
        (b"POST /a ", "speaks HTTP"),
        (b"\x00\x01\x02\x03\x04\x05\x06\x07", "its first bytes are b'\\x00\\x01"),
    ):
        assert words in described(first), first


SESSION = AMQP_HEADER + frame(composite(OPEN, "peer")) + frame(composite(BEGIN, None, UInt(0), UInt(9), UInt(9)))


@pytest.mark.parametrize(
    ("sent", "action", "reason"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", "greet", "it speaks TLS"),
        (AMQP_HEADER + b"\x00\x00\x00\x04\x02\x00\x00\x00", "close", "amqp:connection:framing-error"),
        (SESSION + frame(attach_sender("nowhere")), "attach", "could not be found. (the link is to 'nowhere')"),
        (SESSION + frame(attach_sender("telemetry")) + frame(transfer(b"x")), "detach", "amqp:decode-error"),
        (SESSION + frame(transfer(b"x", handle=9)), "end", "amqp:session:unattached-handle"),
    ],
)
async def test_each_wrong_is_one_line_with_the_address_and_the_reason(
    sent: bytes, action: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    Peer(make_broker(clock=Clock())).connection.data_received(sent)
    [(found, peer, words)] = lines(caplog)
    assert (found, peer) == (action, "127.0.0.1:4711")
    assert reason in words
