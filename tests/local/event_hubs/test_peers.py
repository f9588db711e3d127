"""Peers that the emulator refuses: for a foreign host, and slow ones, by a clock that the tests move."""

import pytest

from local.event_hubs.broker import HubBroker
from local.event_hubs.codec import Symbol, UInt
from local.event_hubs.errors import AmqpError
from local.event_hubs.frames import AMQP_HEADER, CLOSE, OPEN, SASL_HEADER, SASL_INIT, composite, frame
from local.event_hubs.hubs import Hubs, HubSettings
from local.event_hubs.peers import PATIENCE, refuse_foreign
from local.event_hubs.readers import Faults
from local.event_hubs.tokens import ROOT_KEY
from tests.local.event_hubs.messages import message, transfer
from tests.local.event_hubs.peer import Peer

pytestmark = pytest.mark.asyncio
FOREIGN = ("evil.example", "localhost.evil.example", "localhost.", "127.0.0.1.nip.io", "0.0.0.0", "localhost:1:2", " ")
LOOK = 500


class Clock:
    """A clock, and the broker whose connections it ages."""

    def __init__(self) -> None:
        self.now = 0
        self.faults = Faults()
        self.broker = HubBroker(Hubs([HubSettings("telemetry", 4)], self), [ROOT_KEY], self, self.faults)

    def __call__(self) -> int:
        return self.now

    def look(self) -> None:
        """Let half a second pass."""
        self.now += LOOK
        self.broker.let_time_pass()

    def pass_patience(self) -> None:
        for _ in range(PATIENCE // LOOK + 2):
            self.look()


async def test_an_open_for_a_foreign_host_is_refused() -> None:
    for name in FOREIGN:
        peer = Peer(Clock().broker)
        peer.connection.data_received(AMQP_HEADER)
        peer.send(OPEN, "peer", name)
        ((code, fields, _),) = peer.frames()
        assert (code, fields[0].value[0]) == (CLOSE, "amqp:not-allowed"), name
        assert peer.transport.is_closing(), name


async def test_every_name_of_loopback_opens_and_so_does_none() -> None:
    for name in ("localhost", "LocalHost:5672", "127.0.0.1", "127.0.0.1:65535", "::1", "[::1]:5672", None):
        peer = Peer(Clock().broker)
        peer.connection.data_received(AMQP_HEADER)
        peer.send(OPEN, "peer", name)
        assert peer.codes() == [OPEN], name


async def test_the_reason_names_at_most_200_characters_of_the_peers_text() -> None:
    with pytest.raises(AmqpError) as refused:
        refuse_foreign("x" * 5000)
    assert len(refused.value.description) < 300


async def test_a_greeting_that_does_not_end_is_cut_in_each_of_its_parts() -> None:
    init = frame(composite(SASL_INIT, Symbol("ANONYMOUS"), b"", "localhost"), kind=1)
    for sent in (b"", b"AMQP", SASL_HEADER, SASL_HEADER + init[:-1], SASL_HEADER + init, AMQP_HEADER):
        clock = Clock()
        peer = Peer(clock.broker)
        peer.connection.data_received(sent)
        clock.pass_patience()
        assert peer.transport.is_closing(), sent


async def test_a_frame_that_trickles_is_cut_and_fast_ones_in_parts_are_not() -> None:
    clock = Clock()
    body = frame(composite(OPEN, "peer", None, UInt(65_536)))
    slow, fast = Peer(clock.broker).begin(), Peer(clock.broker).begin()
    fast.attach_sender()
    whole = frame(transfer(message(b"x" * 500), 0))
    for at in range(PATIENCE // LOOK + 2):
        slow.connection.data_received(body[at : at + 1])
        fast.connection.data_received(whole[-1:] * (at > 0) + whole[:-1])
        clock.look()
    assert slow.transport.is_closing()
    assert not fast.transport.is_closing()


async def test_a_quiet_connection_and_a_frozen_one_stay() -> None:
    clock = Clock()
    quiet, frozen = Peer(clock.broker).begin(), Peer(clock.broker).begin()
    frozen.connection.data_received(b"\0\0")
    frozen.connection.freeze()
    clock.pass_patience()
    clock.pass_patience()
    assert not quiet.transport.is_closing()
    assert not frozen.transport.is_closing()
