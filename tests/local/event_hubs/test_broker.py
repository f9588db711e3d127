"""The nodes of the emulator: who may attach which link, and the answers of $management."""

from collections.abc import Callable
from typing import Any

import pytest

from local.event_hubs.codec import Described, Symbol, Timestamp, UByte, UInt, ULong, decode
from local.event_hubs.frames import ATTACH, DETACH, SOURCE, TARGET, TRANSFER, composite
from local.event_hubs.sections import APPLICATION_PROPERTIES, PROPERTIES, VALUE, sections
from local.event_hubs.tokens import Grant
from tests.local.event_hubs.messages import attach_sender, make_token, section, transfer
from tests.local.event_hubs.peer import EVERYTHING, Peer, make_broker

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize(
    ("condition", "attach"),
    [
        ("amqp:not-found", lambda peer: peer.attach_reader("nowhere/ConsumerGroups/hubledger/Partitions/0")),
        ("amqp:not-found", lambda peer: peer.attach_reader("telemetry/ConsumerGroups/nobody/Partitions/0")),
        ("amqp:not-found", lambda peer: peer.attach_reader("telemetry")),
        ("amqp:not-found", lambda peer: peer.attach_reader("")),
        ("amqp:invalid-field", lambda peer: peer.attach_reader("amqps://[")),
        (
            "com.microsoft:argument-out-of-range",
            lambda peer: peer.attach_reader("telemetry/ConsumerGroups/hubledger/Partitions/4"),
        ),
        ("amqp:not-implemented", lambda peer: peer.attach_sender("telemetry/Publishers/device-1")),
        ("amqp:not-implemented", lambda peer: peer.attach_reader(filters={Symbol("colour"): "red"})),
        (
            "amqp:not-implemented",
            lambda peer: peer.send(ATTACH, "t", UInt(0), False, None, None, None, Described(ULong(0x30), [])),
        ),
    ],
)
async def test_a_link_to_an_unknown_or_unsupported_node_is_refused_with_its_condition(
    condition: str, attach: Callable[[Peer], None]
) -> None:
    peer = Peer(make_broker()).begin()
    attach(peer)
    assert peer.refusals() == [condition]


# $management


def values(payload: bytes) -> dict[int, Any]:
    return {section.code: decode(payload, section.body)[0] for section in sections(payload)}


def answer_to(
    operation: str, *properties: Any, grant: Grant | None = EVERYTHING, node: str = "$management", **asked: Any
) -> dict[int, Any]:
    """Send a request about the hub to a node and return the sections of the answer."""
    peer = Peer(make_broker(), grant).begin()
    peer.attach_sender(node, handle=0)
    peer.attach_reader(node, handle=1)
    peer.grant(10)
    asked = {"name": "telemetry", "operation": operation, "type": "com.microsoft:eventhub", **asked}
    head = section(PROPERTIES, [*properties]) if properties else b""
    peer.put(transfer(head + section(APPLICATION_PROPERTIES, asked)))
    return values(peer.payloads()[0])


@pytest.mark.parametrize(
    ("status", "grant", "asked"),
    [
        pytest.param(401, None, {}, id="none"),
        pytest.param(200, None, {"security_token": make_token()}, id="text"),
        pytest.param(200, None, {"security_token": make_token().encode()}, id="binary"),
        pytest.param(401, None, {"security_token": make_token(value="wrong")}, id="of a wrong key"),
        pytest.param(401, None, {"security_token": make_token("sb://localhost/other")}, id="for a different hub"),
        pytest.param(401, None, {"security_token": 7}, id="a number"),
        pytest.param(200, EVERYTHING, {"security_token": make_token(value="wrong")}, id="not needed"),
    ],
)
async def test_a_request_may_carry_its_token_and_needs_it_only_where_the_connection_has_none(
    status: int, grant: Grant | None, asked: dict[str, Any]
) -> None:
    assert answer_to("READ", grant=grant, **asked)[APPLICATION_PROPERTIES]["status-code"] == status


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
    assert peer.refusals() == ["amqp:unauthorized-access"]


@pytest.mark.parametrize(
    ("condition", "asked"),
    [
        ("com.microsoft:argument-out-of-range", {"type": "com.microsoft:partition", "partition": "9"}),
        ("amqp:not-found", {"name": "nowhere"}),
        ("amqp:unauthorized-access", {"grant": None}),
        (None, {"operation": "put-token", "node": "$cbs"}),  # with a condition, the SDK would hide the rest
    ],
)
async def test_a_refusal_says_its_condition_but_that_of_a_token_does_not(
    condition: str | None, asked: dict[str, Any]
) -> None:
    found = answer_to(**{"operation": "READ", **asked})[APPLICATION_PROPERTIES]
    assert found.get("error-condition") == condition
    assert isinstance(found.get("error-condition"), Symbol | None)
    assert found["status-description"]


async def test_a_partition_that_never_had_an_event_is_described_as_the_service_does() -> None:
    found = answer_to("READ", type="com.microsoft:partition", partition="3")[VALUE]
    names = ("begin_sequence_number", "last_enqueued_sequence_number", "last_enqueued_offset", "is_partition_empty")
    assert [found[name] for name in names] == [-1, -1, "-1", True]
    assert (found["name"], found["partition"]) == ("telemetry", "3")
    assert found["last_enqueued_time_utc"] == -62_135_596_800_000
    assert isinstance(found["last_enqueued_time_utc"], Timestamp)


async def test_a_request_whose_sections_are_null_is_answered() -> None:
    peer = Peer(make_broker()).begin()
    peer.attach_sender("$management", handle=0)
    peer.attach_reader("$management", handle=1)
    peer.grant(10)
    peer.put(transfer(section(PROPERTIES, None) + section(APPLICATION_PROPERTIES, None)))
    assert [code for code in peer.codes() if code in (TRANSFER, DETACH)] == [TRANSFER]


async def test_an_unknown_management_operation_is_not_emulated() -> None:
    answer = answer_to("DELETE")[APPLICATION_PROPERTIES]
    assert answer["status-code"] == 501
    assert "DELETE" in answer["status-description"]


# the places of readers


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


@pytest.mark.parametrize(
    ("epochs", "refused"),
    [
        ((None, 0), {0}),
        ((0, 0), {0}),
        ((1, 2), {0}),
        ((2, 1), {1}),
        ((0, None), {1}),
        ((0, 0, None), {0, 2}),
    ],
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
