"""The nodes of the emulator: tokens and SASL, who may attach which link, answers of $management, places of readers."""

from typing import Any

import pytest

from local.event_hubs.codec import Described, Symbol, UByte, UInt, ULong, decode
from local.event_hubs.errors import AmqpError
from local.event_hubs.frames import (
    AMQP_HEADER,
    ATTACH,
    DETACH,
    FRAME_HEADER,
    SASL_HEADER,
    SASL_INIT,
    SOURCE,
    TARGET,
    TRANSFER,
    composite,
    frame,
)
from local.event_hubs.sections import APPLICATION_PROPERTIES, PROPERTIES, sections
from local.event_hubs.tokens import LISTEN, ROOT_KEY, SEND, Grant, Grants, SharedAccessKey, read_token, split_path
from tests.local.event_hubs.messages import attach_sender, make_token, section, transfer
from tests.local.event_hubs.peer import EVERYTHING, PARTITION, Peer, make_broker

UNAUTHORIZED = ["amqp:unauthorized-access"]


@pytest.mark.asyncio
async def test_a_link_to_an_unknown_or_unsupported_node_is_refused_with_its_condition() -> None:
    for condition, address, filters in (
        ("amqp:not-found", "nowhere/ConsumerGroups/hubledger/Partitions/0", None),
        ("amqp:not-found", "telemetry/ConsumerGroups/nobody/Partitions/0", None),
        ("amqp:not-found", "", None),
        ("amqp:invalid-field", "amqps://[", None),
        ("com.microsoft:argument-out-of-range", PARTITION.replace("0", "4"), None),
        ("amqp:not-implemented", PARTITION, {Symbol("colour"): "red"}),
    ):
        peer = Peer(make_broker()).begin()
        peer.attach_reader(address, filters=filters)
        assert peer.refusals() == [condition], address
    peer = Peer(make_broker()).begin()
    peer.attach_sender("telemetry/Publishers/device-1")
    assert peer.refusals() == ["amqp:not-implemented"]
    peer = Peer(make_broker()).begin()
    peer.send(ATTACH, "t", UInt(0), False, None, None, None, Described(ULong(0x30), []))  # a transaction
    assert peer.refusals() == ["amqp:not-implemented"]


# $management


def values(payload: bytes) -> dict[int, Any]:
    return {section.code: decode(payload, section.body)[0] for section in sections(payload)}


def answer_to(
    operation: str = "READ", grant: Grant | None = EVERYTHING, node: str = "$management", **asked: Any
) -> dict[str, Any]:
    """Send a request about the hub to a node and return the properties of the answer."""
    peer = Peer(make_broker(), grant).begin()
    peer.attach_sender(node, handle=0)
    peer.attach_reader(node, handle=1)
    peer.grant(10)
    asked = {"name": "telemetry", "operation": operation, "type": "com.microsoft:eventhub", **asked}
    peer.put(transfer(section(APPLICATION_PROPERTIES, asked)))
    properties: dict[str, Any] = values(peer.payloads()[0])[APPLICATION_PROPERTIES]
    return properties


@pytest.mark.asyncio
async def test_a_request_may_carry_its_token_and_needs_it_only_where_the_connection_has_none() -> None:
    for status, grant, token in (
        (401, None, None),
        (200, None, make_token()),
        (200, None, make_token().encode()),
        (401, None, make_token(value="wrong")),
        (401, None, make_token("sb://localhost/other")),
        (401, None, 7),
        (200, EVERYTHING, make_token(value="wrong")),
    ):
        asked: dict[str, Any] = {} if token is None else {"security_token": token}
        assert answer_to(grant=grant, **asked)["status-code"] == status, token


@pytest.mark.asyncio
async def test_a_refusal_says_its_condition_but_that_of_a_token_does_not() -> None:
    cases: tuple[tuple[str | None, dict[str, Any]], ...] = (
        ("com.microsoft:argument-out-of-range", {"type": "com.microsoft:partition", "partition": "9"}),
        ("amqp:not-found", {"name": "nowhere"}),
        ("amqp:unauthorized-access", {"grant": None}),
        (None, {"operation": "put-token", "node": "$cbs"}),  # with a condition, the SDK would hide the rest
    )
    for condition, asked in cases:
        found = answer_to(**asked)
        assert found.get("error-condition") == condition
        assert found["status-description"]
    refused = answer_to("DELETE")
    assert refused["status-code"] == 501 and "DELETE" in refused["status-description"]


@pytest.mark.asyncio
async def test_two_requests_at_once_as_the_client_of_net_writes_them_are_answered_and_open_nothing_else() -> None:
    peer = Peer(make_broker(), None).begin()
    peer.put(attach_sender("$management", 0, (UByte(1), None)))
    reply = Described(ULong(SOURCE), ["$management"]), Described(ULong(TARGET), ["a5f0"])
    peer.send(ATTACH, "duplex0:1:2:receiver", UInt(1), True, None, None, *reply)
    peer.grant(10)
    peer.frames()
    asked = {"operation": "READ", "name": "telemetry", "type": "com.microsoft:eventhub", "security_token": make_token()}
    for number in range(2):
        head = section(PROPERTIES, [f"request{number}", None, None, None, "a5f0"])
        whole = head + section(APPLICATION_PROPERTIES, asked)
        peer.put(composite(TRANSFER, UInt(0), UInt(number), b"", None, True) + whole)
    found = peer.frames()
    answers = [values(payload) for _, _, payload in found]
    assert [answer[PROPERTIES][5] for answer in answers] == ["request0", "request1"]
    assert [answer[APPLICATION_PROPERTIES]["status-code"] for answer in answers] == [200, 200]
    assert {code for code, _, _ in found} == {TRANSFER}, "a settled request has no outcome"
    peer.attach_reader(handle=2)
    assert peer.refusals() == UNAUTHORIZED


# the places of readers


@pytest.mark.asyncio
async def test_the_sixth_reader_without_an_epoch_is_refused_until_a_lost_connection_frees_its_places() -> None:
    broker = make_broker()
    peer = Peer(broker).begin()
    for handle in range(6):
        peer.attach_reader(handle=handle)
    [fields] = peer.fields(DETACH)
    assert fields[2].value[:2] == [
        "amqp:resource-limit-exceeded",
        "Exceeded the maximum number of allowed receivers per partition in a consumer group which is 5. List of"
        " connected receivers - nil, nil, nil, nil, nil.",
    ]
    peer.connection.connection_lost(None)
    assert not broker.connections
    again = Peer(broker).begin()
    again.attach_reader()
    assert again.refusals() == []


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("epochs", "refused"),
    [((None, 0), {0}), ((0, 0), {0}), ((1, 2), {0}), ((2, 1), {1}), ((0, None), {1}), ((0, 0, None), {0, 2})],
)
async def test_the_higher_or_equal_epoch_takes_over(epochs: tuple[int | None, ...], refused: set[int]) -> None:
    broker = make_broker()
    peers = [Peer(broker).begin() for _ in epochs]
    for peer, epoch in zip(peers, epochs, strict=True):
        peer.attach_reader(epoch=epoch)
    stolen = [["amqp:link:stolen"] if number in refused else [] for number in range(len(epochs))]
    assert [peer.refusals() for peer in peers] == stolen
    for peer in peers:
        peer.connection.connection_lost(None)
    assert not broker.connections


# tokens

READER = SharedAccessKey("reader", "other", frozenset({LISTEN}))
KEYS = {"root": SharedAccessKey("root", "secret"), "reader": READER}
NOW = 1_000_000
HUB = "sb://localhost/telemetry"


def sign(resource: str = HUB, name: str = "root", expiry: int = 2_000, key: str | None = None) -> str:
    return make_token(resource, name, key or KEYS[name].value, expiry)


def allows(right: str | None, *tokens: str, address: str = "telemetry", now: int = NOW) -> bool:
    grants = Grants()
    for token in tokens:
        grants.add(read_token(token, KEYS, NOW))
    try:
        grants.require(right, split_path(address), now)
    except AmqpError as error:
        assert error.condition == "amqp:unauthorized-access"
        return False
    return True


def test_a_token_is_good_for_its_resource_and_all_below_with_the_rights_of_its_key_until_it_expires() -> None:
    expected = {
        (HUB, "telemetry"): True,
        ("sb://localhost/Telemetry/", "amqps://localhost/telemetry/Partitions/0"): True,
        ("sb://localhost/", "telemetry"): True,
        (HUB, "alarms"): False,
        (HUB, "telemetry2"): False,
        (f"{HUB}/Partitions/0", "telemetry"): False,
        (f"{HUB}/partitions/0", "telemetry/Partitions/0"): True,
    }
    assert {each: allows(SEND, sign(each[0]), address=each[1]) for each in expected} == expected
    assert [allows(right, sign(name="reader")) for right in (LISTEN, None, SEND)] == [True, True, False]
    assert [allows(SEND, sign(expiry=2_000), now=now) for now in (1_999_999, 2_000_000)] == [True, False]
    assert allows(SEND, sign(expiry=2_000), sign(expiry=3_000), now=2_500_000), "a newer token renews it"
    with pytest.raises(ValueError, match="has rights other than"):
        SharedAccessKey("k", "v", frozenset({"Write"}))
    assert "secret" not in repr(KEYS["root"])


def test_a_bad_token_is_refused_with_a_reason_and_without_repeating_it() -> None:
    for token, reason in (
        (sign(key="wrong"), "signature does not match"),
        (sign().replace("skn=root", "skn=nobody"), "signature does not match"),
        (sign(expiry=999), "has expired"),
        (sign().replace("se=2000", "se=soon"), "lacks"),
        ("eyJhbGciOi.J9.x", "only SharedAccessSignature"),
    ):
        with pytest.raises(AmqpError, match=reason) as refused:
            read_token(token, KEYS, NOW)
        assert refused.value.condition == "amqp:unauthorized-access"
        assert "sig=" not in str(refused.value)


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
        assert kind == 1
        found.append(decode(data[at + 8 : at + size])[0].value)
        at += size
    return found


@pytest.mark.asyncio
async def test_a_peer_has_the_rights_of_the_key_with_which_it_signs_in() -> None:
    for mechanism, response, reading, sending in (
        ("PLAIN", ROOT, [], []),
        ("PLAIN", b"someone\0reader\0other", [], UNAUTHORIZED),
        ("MSSBCBS", ROOT, UNAUTHORIZED, UNAUTHORIZED),  # a token comes later
        ("ANONYMOUS", None, UNAUTHORIZED, UNAUTHORIZED),
    ):
        peer = greeted(mechanism, response)
        assert sasl_values(peer) == [[["MSSBCBS", "ANONYMOUS", "PLAIN"]], [0, None]]
        peer.begin()
        peer.attach_reader(handle=1)
        assert peer.refusals() == reading, mechanism
        peer.attach_sender()
        assert peer.refusals() == sending, mechanism


@pytest.mark.asyncio
async def test_an_unknown_mechanism_a_wrong_key_or_no_key_ends_the_connection_and_no_secret_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for mechanism, response in (
        ("SCRAM-SHA-1", ROOT),
        ("PLAIN", b"\0RootManageSharedAccessKey\0not-the-secret"),
        ("PLAIN", b"\0nobody\0SAS_KEY_VALUE"),
        ("PLAIN", None),
        ("PLAIN", "a text"),
    ):
        peer = greeted(mechanism, response)
        assert sasl_values(peer)[1][0] == 1, response
        assert peer.is_closed, response
        assert not peer.transport.written.endswith(AMQP_HEADER), response
    assert caplog.records
    assert "not-the-secret" not in "".join(str(record.__dict__) for record in caplog.records)
