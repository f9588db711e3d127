"""SASL: which mechanisms are offered, and who is welcome."""

from typing import Any

import pytest

from local.event_hubs.broker import HubBroker
from local.event_hubs.codec import Described, Symbol, decode
from local.event_hubs.frames import AMQP_HEADER, FRAME_HEADER, SASL_HEADER, SASL_INIT, composite, frame
from local.event_hubs.hubs import Hubs, HubSettings
from local.event_hubs.readers import Faults
from local.event_hubs.server import unix_milliseconds
from local.event_hubs.tokens import LISTEN, ROOT_KEY, SharedAccessKey
from tests.local.event_hubs.peer import Peer

pytestmark = pytest.mark.asyncio
ROOT = b"\0RootManageSharedAccessKey\0SAS_KEY_VALUE"
READER = SharedAccessKey("reader", "other", frozenset({LISTEN}))


def greeted(mechanism: str, response: Any) -> Peer:
    """Return a peer without a token that has chosen a mechanism."""
    hubs = Hubs([HubSettings("telemetry", 4, ("hubledger",))], unix_milliseconds)
    peer = Peer(HubBroker(hubs, [ROOT_KEY, READER], unix_milliseconds, Faults()), None)
    peer.connection.data_received(SASL_HEADER)
    peer.connection.data_received(frame(composite(SASL_INIT, Symbol(mechanism), response, "localhost"), kind=1))
    return peer


def sasl_values(peer: Peer) -> list[list[Any]]:
    """Return the fields of the SASL frames that a peer got."""
    data, at, found = bytes(peer.transport.written), 8, []
    while at < len(data) and data[at : at + 4] != b"AMQP":
        size, _, kind, _ = FRAME_HEADER.unpack_from(data, at)
        body = decode(data[at + 8 : at + size])[0]
        assert (kind, type(body)) == (1, Described)
        found.append(body.value)
        at += size
    return found


async def test_the_mechanisms_are_those_of_the_service_in_an_array() -> None:
    peer = greeted("ANONYMOUS", None)
    assert sasl_values(peer) == [[["MSSBCBS", "ANONYMOUS", "PLAIN"]], [0, None]]


async def test_a_peer_that_signs_in_with_a_key_has_its_rights_without_a_token() -> None:
    peer = greeted("PLAIN", ROOT)
    assert sasl_values(peer)[1][0] == 0
    peer.begin()
    peer.attach_sender()
    peer.attach_reader(handle=1)
    assert peer.refusals() == []


async def test_a_key_gives_its_rights_alone() -> None:
    peer = greeted("PLAIN", b"someone\0reader\0other")
    peer.begin()
    peer.attach_reader(handle=1)
    assert peer.refusals() == []
    peer.attach_sender()
    assert peer.refusals() == ["amqp:unauthorized-access"]


async def test_a_peer_that_shows_its_token_later_has_no_rights_before() -> None:
    for mechanism in ("MSSBCBS", "ANONYMOUS"):
        peer = greeted(mechanism, ROOT).begin()
        peer.attach_sender()
        assert peer.refusals() == ["amqp:unauthorized-access"], mechanism


async def test_an_unknown_mechanism_a_wrong_key_or_no_key_ends_the_connection_with_the_outcome_of_sasl() -> None:
    for mechanism, response in (
        ("SCRAM-SHA-1", ROOT),
        ("PLAIN", b"\0RootManageSharedAccessKey\0wrong"),
        ("PLAIN", b"\0nobody\0SAS_KEY_VALUE"),
        ("PLAIN", b"\0nobody\0\xff\xfe"),
        ("PLAIN", b"RootManageSharedAccessKey"),
        ("PLAIN", b""),
        ("PLAIN", None),
        ("PLAIN", "a text"),
    ):
        peer = greeted(mechanism, response)
        assert sasl_values(peer)[1][0] == 1, response
        assert peer.transport.is_closing(), response
        assert not peer.transport.written.endswith(AMQP_HEADER), response


async def test_no_secret_of_a_refused_peer_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    greeted("PLAIN", b"\0RootManageSharedAccessKey\0not-the-secret")
    assert caplog.records
    assert "not-the-secret" not in "".join(str(record.__dict__) for record in caplog.records)
