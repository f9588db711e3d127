"""Tokens: signatures, expiry, scopes and rights; and SASL: which mechanisms are offered, and who is welcome."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.event_hubs.codec import Described, Symbol, decode
from local.event_hubs.errors import AmqpError
from local.event_hubs.frames import AMQP_HEADER, FRAME_HEADER, SASL_HEADER, SASL_INIT, composite, frame
from local.event_hubs.tokens import LISTEN, ROOT_KEY, SEND, Grants, SharedAccessKey, read_token, split_path
from tests.local.event_hubs.messages import make_token
from tests.local.event_hubs.peer import Peer, make_broker

READER = SharedAccessKey("reader", "other", frozenset({LISTEN}))
KEYS = {"root": SharedAccessKey("root", "secret"), "reader": READER}
NOW = 1_000_000
HUB = "sb://localhost/telemetry"


def sign(resource: str = HUB, name: str = "root", expiry: int = 2_000, key: str | None = None) -> str:
    return make_token(resource, name, key or KEYS[name].value, expiry)


def granted(*tokens: str) -> Grants:
    grants = Grants()
    for token in tokens:
        grants.add(read_token(token, KEYS, NOW))
    return grants


def allows(grants: Grants, right: str | None, address: str = "telemetry", now: int = NOW) -> bool:
    try:
        grants.require(right, split_path(address), now)
    except AmqpError as error:
        assert error.condition == "amqp:unauthorized-access"
        return False
    return True


def test_a_token_is_good_for_its_resource_and_all_below() -> None:
    expected = {
        (HUB, "telemetry"): True,
        ("sb://localhost/Telemetry/", "amqps://localhost/telemetry/Partitions/0"): True,
        ("sb://localhost/", "telemetry"): True,
        (HUB, "alarms"): False,
        (HUB, "telemetry2"): False,
        (f"{HUB}/Partitions/0", "telemetry"): False,
        (f"{HUB}/partitions/0", "telemetry/Partitions/0"): True,
    }
    found = {(resource, address): allows(granted(sign(resource)), SEND, address) for resource, address in expected}
    assert found == expected


def test_a_key_gives_its_rights_and_no_more() -> None:
    assert [allows(granted(sign(name="reader")), right) for right in (LISTEN, None, SEND)] == [True, True, False]
    with pytest.raises(ValueError, match="has rights other than"):
        SharedAccessKey("k", "v", frozenset({"Write"}))
    assert "secret" not in repr(KEYS["root"])


def test_a_grant_ends_when_its_token_expires_unless_a_newer_token_renews_it() -> None:
    grants = granted(sign(expiry=2_000))
    assert [allows(grants, SEND, now=now) for now in (1_999_999, 2_000_000)] == [True, False]
    with pytest.raises(AmqpError, match="ExpiredToken"):
        grants.require(SEND, ("telemetry",), 2_000_000)
    assert allows(granted(sign(expiry=2_000), sign(expiry=3_000)), SEND, now=2_500_000)


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (sign(key="wrong"), "signature does not match"),
        (sign().replace("telemetry", "alarms"), "signature does not match"),
        (sign().replace("skn=root", "skn=nobody"), "signature does not match"),
        (sign(expiry=999), "has expired"),
        (sign().replace("se=2000", "se=soon"), "lacks"),
        ("SharedAccessSignature sr=x", "lacks"),
        ("eyJhbGciOi.J9.x", "only SharedAccessSignature"),
        ("", "only SharedAccessSignature"),
    ],
)
def test_a_bad_token_is_refused_with_a_reason_and_without_repeating_it(token: str, reason: str) -> None:
    with pytest.raises(AmqpError, match=reason) as refused:
        read_token(token, KEYS, NOW)
    assert refused.value.condition == "amqp:unauthorized-access"
    assert "sig=" not in str(refused.value)


@given(st.text(max_size=80))
def test_any_text_is_refused_or_read_and_nothing_else(garbage: str) -> None:
    for attempt in (garbage, "SharedAccessSignature " + garbage, sign() + garbage):
        try:
            read_token(attempt, KEYS, NOW)
        except AmqpError:
            continue


# SASL

ROOT = b"\0RootManageSharedAccessKey\0SAS_KEY_VALUE"


def greeted(mechanism: str, response: Any) -> Peer:
    """Return a peer without a token that has chosen a mechanism."""
    peer = Peer(make_broker(keys=(ROOT_KEY, READER)), None)
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


UNAUTHORIZED = ["amqp:unauthorized-access"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("mechanism", "response", "reading", "sending"),
    [
        pytest.param("PLAIN", ROOT, [], [], id="a key"),
        pytest.param("PLAIN", b"someone\0reader\0other", [], UNAUTHORIZED, id="a key that may read"),
        pytest.param("MSSBCBS", ROOT, UNAUTHORIZED, UNAUTHORIZED, id="a token later"),
        pytest.param("ANONYMOUS", None, UNAUTHORIZED, UNAUTHORIZED, id="nobody"),
    ],
)
async def test_a_peer_has_the_rights_of_the_key_with_which_it_signs_in(
    mechanism: str, response: bytes | None, reading: list[str], sending: list[str]
) -> None:
    peer = greeted(mechanism, response)
    assert sasl_values(peer) == [[["MSSBCBS", "ANONYMOUS", "PLAIN"]], [0, None]]
    peer.begin()
    peer.attach_reader(handle=1)
    assert peer.refusals() == reading
    peer.attach_sender()
    assert peer.refusals() == sending


@pytest.mark.asyncio
async def test_an_unknown_mechanism_a_wrong_key_or_no_key_ends_the_connection_and_no_secret_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for mechanism, response in (
        ("SCRAM-SHA-1", ROOT),
        ("PLAIN", b"\0RootManageSharedAccessKey\0not-the-secret"),
        ("PLAIN", b"\0nobody\0SAS_KEY_VALUE"),
        ("PLAIN", b"\0nobody\0\xff\xfe"),
        ("PLAIN", b"RootManageSharedAccessKey"),
        ("PLAIN", b""),
        ("PLAIN", None),
        ("PLAIN", "a text"),
    ):
        peer = greeted(mechanism, response)
        assert sasl_values(peer)[1][0] == 1, response
        assert peer.is_closed, response
        assert not peer.transport.written.endswith(AMQP_HEADER), response
    assert caplog.records
    assert "not-the-secret" not in "".join(str(record.__dict__) for record in caplog.records)
