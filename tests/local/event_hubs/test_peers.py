import logging

import pytest

from local.event_hubs.codec import Symbol, UInt
from local.event_hubs.frames import AMQP_HEADER, ATTACH, BEGIN, CLOSE, OPEN, SASL_HEADER, SASL_INIT, composite, frame
from local.event_hubs.peers import PATIENCE, WAITING_LIMIT
from tests.local.event_hubs.messages import attach_sender, message, transfer
from tests.local.event_hubs.peer import Clock, Peer, make_broker

pytestmark = pytest.mark.asyncio
FOREIGN = ("evil.example", "localhost.evil.example", "localhost.", "127.0.0.1.nip.io", "0.0.0.0", "localhost:1:2", " ")
LOOPBACK = ("localhost", "LocalHost:5672", "127.0.0.1", "127.0.0.1:65535", "::1", "[::1]:5672", None)


async def test_an_open_for_a_foreign_host_is_refused_and_one_for_loopback_or_none_is_not() -> None:
    for name in (*FOREIGN, "x" * 5000, *LOOPBACK):
        peer = Peer(make_broker())
        peer.connection.data_received(AMQP_HEADER)
        peer.send(OPEN, "peer", name)
        ((code, fields, _),) = peer.frames()
        if name in LOOPBACK:
            assert code == OPEN, name
            continue
        assert (code, fields[0].value[0]) == (CLOSE, "amqp:not-allowed"), name
        assert len(fields[0].value[1]) < 300
        assert peer.is_closed, name


async def test_a_greeting_that_does_not_end_or_a_frame_that_trickles_is_cut_and_no_quiet_or_fast_peer_is() -> None:
    clock = Clock()
    broker = make_broker(clock=clock)
    init = frame(composite(SASL_INIT, Symbol("ANONYMOUS"), b"", "localhost"), kind=1)
    parts = (b"", b"AMQP", SASL_HEADER, SASL_HEADER + init[:-1], SASL_HEADER + init, AMQP_HEADER)
    greeting = {sent: Peer(broker) for sent in parts}
    for sent, peer in greeting.items():
        peer.connection.data_received(sent)
    slow, fast, quiet, frozen = (Peer(broker).begin() for _ in range(4))
    fast.attach_sender()
    frozen.connection.data_received(b"\0\0")
    frozen.connection.freeze()
    body, whole = frame(composite(OPEN, "peer", None, UInt(65_536))), frame(transfer(message(b"x" * 500), 0))
    for at in range(PATIENCE // 500 + 2):
        slow.connection.data_received(body[at : at + 1])
        fast.connection.data_received(whole[-1:] * (at > 0) + whole[:-1])
        clock.now += 500  # as often as a broker looks at its connections
        broker.let_time_pass()
    assert [sent for sent, peer in greeting.items() if not peer.is_closed] == []
    assert [peer.is_closed for peer in (slow, fast, quiet, frozen)] == [True, False, False, False]


async def test_a_peer_that_does_not_read_is_closed_when_4_mb_wait_for_it_and_one_that_reads_slowly_is_not() -> None:
    assert WAITING_LIMIT == 4 * 1024 * 1024
    refused = frame(composite(ATTACH, "a" * 30_000, UInt(1), False))
    deaf, slow = Peer(make_broker()).begin(), Peer(make_broker()).begin()
    for peer in (deaf, slow):
        peer.transport.is_read = False
        peer.connection.pause_writing()
        for _ in range(2 * WAITING_LIMIT // 30_000):
            if not peer.is_closed:
                peer.connection.data_received(refused)
            if peer is slow:
                peer.transport.waiting = 30_000
    assert (deaf.is_closed, slow.is_closed) == (True, False)
    assert deaf.transport.waiting < WAITING_LIMIT + 35_000
    assert deaf.refusals(CLOSE) == ["amqp:resource-limit-exceeded"]


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str]]:
    """Return the action, peer and reason of the lines since the last call, which are all warnings."""
    records = [vars(record) for record in caplog.records]
    assert {record["levelno"] for record in records} <= {logging.WARNING}
    caplog.clear()
    return [(record["action"], record["peer"], record["reason"]) for record in records]


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
