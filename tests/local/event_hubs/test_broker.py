"""The nodes of the emulator: who may attach which link, and the answers of $management."""

from collections.abc import Callable
from typing import Any

import pytest

from local.event_hubs.codec import Described, Symbol, Timestamp, UByte, UInt, ULong, decode, encode
from local.event_hubs.frames import ACCEPTED, ATTACH, DETACH, DISPOSITION, REJECTED, SOURCE, TARGET, TRANSFER, composite
from local.event_hubs.hubs import HubSettings
from local.event_hubs.readers import Faults
from local.event_hubs.sections import APPLICATION_PROPERTIES, PROPERTIES, VALUE, sections
from local.event_hubs.tokens import LISTEN, Grant
from tests.local.event_hubs.messages import attach_sender, make_token, message, transfer
from tests.local.event_hubs.peer import EVERYTHING, PARTITION, Peer, make_broker, publisher

pytestmark = pytest.mark.asyncio


def detaches(peer: Peer) -> list[str]:
    """Return the conditions and descriptions of the detaches received."""
    errors = [fields[2].value for code, fields, _ in peer.frames() if code == DETACH]
    return [f"{condition}: {description}" for condition, description, _ in errors]


async def test_a_link_to_an_unknown_or_unsupported_node_is_refused_with_its_condition() -> None:
    colour = Described(ULong(SOURCE), [PARTITION, *[None] * 6, {Symbol("colour"): "red"}])
    attaches: list[tuple[str, Callable[[Peer], None]]] = [
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
        ("amqp:not-implemented", lambda peer: peer.send(ATTACH, "r", UInt(0), True, None, None, colour)),
        (
            "amqp:not-implemented",
            lambda peer: peer.send(ATTACH, "t", UInt(0), False, None, None, None, Described(ULong(0x30), [])),
        ),
    ]
    found = []
    for _, attach in attaches:
        peer = Peer(make_broker()).begin()
        attach(peer)
        found.append(peer.refusals())
    assert found == [[condition] for condition, _ in attaches]


async def test_an_unknown_hub_or_group_is_refused_in_the_words_of_the_service() -> None:
    words = {
        "nowhere/ConsumerGroups/hubledger/Partitions/0": "sb://localhost/nowhere",
        "telemetry/ConsumerGroups/nobody/Partitions/0": "localhost:eventhub:telemetry~32766|nobody",
    }
    for address, entity in words.items():
        peer = Peer(make_broker()).begin()
        peer.attach_reader(address)
        assert detaches(peer) == [f"amqp:not-found: The messaging entity '{entity}' could not be found."]


async def test_a_link_without_a_token_or_without_the_right_is_refused() -> None:
    for grant in (None, Grant(("telemetry",), frozenset({LISTEN}), 2**62)):
        peer = Peer(make_broker(), grant).begin()
        peer.attach_sender()
        assert peer.refusals() == ["amqp:unauthorized-access"]


async def test_hubs_are_found_in_any_case() -> None:
    peer = Peer(make_broker(HubSettings("Telemetry", 1, ("HubLedger",)))).begin()
    peer.attach_reader("TELEMETRY/consumergroups/HUBLEDGER/partitions/0")
    assert peer.refusals() == []


def answer_to(
    operation: str, *properties: Any, grant: Grant | None = EVERYTHING, node: str = "$management", **asked: Any
) -> dict[int, Any]:
    """Send a request about the hub to a node and return the sections of the answer."""
    peer = Peer(make_broker(), grant).begin()
    peer.attach_sender(node, handle=0)
    peer.attach_reader(node, handle=1)
    peer.grant(10)
    asked = {"name": "telemetry", "operation": operation, "type": "com.microsoft:eventhub", **asked}
    head = encode(Described(ULong(PROPERTIES), [*properties])) if properties else b""
    peer.put(transfer(head + encode(Described(ULong(APPLICATION_PROPERTIES), asked))))
    answer = next(payload for code, _, payload in peer.frames() if code == TRANSFER)
    return {section.code: decode(answer, section.body)[0] for section in sections(answer)}


async def test_an_answer_repeats_the_very_message_id() -> None:
    answer = answer_to("READ", ULong(7))
    assert answer[PROPERTIES][5] == 7
    assert answer[APPLICATION_PROPERTIES]["status-code"] == 200
    assert answer[VALUE]["partition_ids"] == ["0", "1", "2", "3"]


async def test_a_request_may_carry_its_token_and_needs_it_only_where_the_connection_has_none() -> None:
    good, wrong = make_token(), make_token(value="wrong")
    status = {
        "none": answer_to("READ", grant=None),
        "text": answer_to("READ", grant=None, security_token=good),
        "binary": answer_to("READ", grant=None, security_token=good.encode()),
        "of a wrong key": answer_to("READ", grant=None, security_token=wrong),
        "for a different hub": answer_to(
            "READ", grant=None, security_token=make_token(resource="sb://localhost/other")
        ),
        "not needed": answer_to("READ", security_token=wrong),
        "a number": answer_to("READ", grant=None, security_token=7),
    }
    assert {name: answer[APPLICATION_PROPERTIES]["status-code"] for name, answer in status.items()} == {
        "none": 401,
        "text": 200,
        "binary": 200,
        "of a wrong key": 401,
        "for a different hub": 401,
        "not needed": 200,
        "a number": 401,
    }


async def test_the_token_of_a_request_opens_nothing_else() -> None:
    peer = Peer(make_broker(), None).begin()
    peer.attach_sender("$management", handle=0)
    request = {
        "name": "telemetry",
        "operation": "READ",
        "type": "com.microsoft:eventhub",
        "security_token": make_token(),
    }
    peer.put(transfer(encode(Described(ULong(APPLICATION_PROPERTIES), request))))
    peer.attach_reader()
    assert peer.refusals() == ["amqp:unauthorized-access"]


async def test_two_requests_at_once_as_the_client_of_net_writes_them_are_both_answered() -> None:
    peer = Peer(make_broker(), None).begin()
    peer.put(attach_sender("$management", 0, (UByte(1), None)))
    reply = Described(ULong(SOURCE), ["$management"]), Described(ULong(TARGET), ["a5f0"])
    peer.send(ATTACH, "duplex0:1:2:receiver", UInt(1), True, None, None, *reply)
    peer.grant(10)
    peer.frames()
    asked = {"operation": "READ", "name": "telemetry", "type": "com.microsoft:eventhub", "security_token": make_token()}
    for number in range(2):
        head = encode(Described(ULong(PROPERTIES), [f"request{number}", None, None, None, "a5f0"]))
        whole = head + encode(Described(ULong(APPLICATION_PROPERTIES), asked))
        peer.put(composite(TRANSFER, UInt(0), UInt(number), b"", None, True) + whole)
    found = peer.frames()
    answers = [{one.code: decode(payload, one.body)[0] for one in sections(payload)} for _, _, payload in found]
    assert [answer[PROPERTIES][5] for answer in answers] == ["request0", "request1"]
    assert [answer[APPLICATION_PROPERTIES]["status-code"] for answer in answers] == [200, 200]
    assert {code for code, _, _ in found} == {TRANSFER}, "a settled request has no outcome"


async def test_a_refusal_says_its_condition_but_that_of_a_token_does_not_because_the_sdk_would_hide_the_rest() -> None:
    partition: dict[str, Any] = {"type": "com.microsoft:partition", "partition": "9"}
    for condition, answer in (
        ("com.microsoft:argument-out-of-range", answer_to("READ", **partition)),
        ("amqp:not-found", answer_to("READ", name="nowhere")),
        ("amqp:unauthorized-access", answer_to("READ", grant=None)),
        (None, answer_to("put-token", node="$cbs")),
    ):
        found = answer[APPLICATION_PROPERTIES]
        assert found.get("error-condition") == condition
        assert isinstance(found.get("error-condition"), Symbol | None)
        assert found["status-description"]


async def test_a_partition_that_never_had_an_event_is_described_as_the_service_does() -> None:
    partition: dict[str, Any] = {"type": "com.microsoft:partition", "partition": "3"}
    found = answer_to("READ", **partition)[VALUE]
    assert found == {
        "name": "telemetry",
        "type": "com.microsoft:partition",
        "partition": "3",
        "begin_sequence_number": -1,
        "last_enqueued_sequence_number": -1,
        "last_enqueued_offset": "-1",
        "last_enqueued_time_utc": -62_135_596_800_000,
        "is_partition_empty": True,
    }
    assert isinstance(found["last_enqueued_time_utc"], Timestamp)


async def test_a_request_whose_sections_are_null_is_answered() -> None:
    peer = Peer(make_broker()).begin()
    peer.attach_sender("$management", handle=0)
    peer.attach_reader("$management", handle=1)
    peer.grant(10)
    peer.put(transfer(b"".join(encode(Described(ULong(code), None)) for code in (PROPERTIES, APPLICATION_PROPERTIES))))
    assert [code for code in peer.codes() if code in (TRANSFER, DETACH)] == [TRANSFER]


async def test_an_unknown_management_operation_is_not_emulated() -> None:
    answer = answer_to("DELETE")[APPLICATION_PROPERTIES]
    assert answer["status-code"] == 501
    assert "DELETE" in answer["status-description"]


async def test_a_lost_connection_frees_its_readers_places() -> None:
    broker = make_broker()
    for _ in range(8):
        peer = Peer(broker).begin()
        peer.attach_reader()
        assert peer.refusals() == []
        peer.connection.connection_lost(None)
    assert not broker.connections


async def test_the_sixth_reader_without_an_epoch_is_refused() -> None:
    peer = Peer(make_broker()).begin()
    for handle in range(6):
        peer.attach_reader(handle=handle)
    assert detaches(peer) == [
        "amqp:resource-limit-exceeded: Exceeded the maximum number of allowed receivers per partition in a consumer "
        "group which is 5. List of connected receivers - nil, nil, nil, nil, nil."
    ]


async def test_the_higher_or_equal_epoch_takes_over() -> None:
    cases: list[tuple[tuple[int | None, ...], set[int]]] = [
        ((None, 0), {0}),
        ((0, 0), {0}),
        ((1, 2), {0}),
        ((2, 1), {1}),
        ((0, None), {1}),
        ((0, 0, None), {0, 2}),
    ]
    for epochs, refused in cases:
        broker = make_broker()
        peers = [Peer(broker).begin() for _ in epochs]
        for peer, epoch in zip(peers, epochs, strict=True):
            peer.attach_reader(epoch=epoch)
        stolen = [["amqp:link:stolen"] if number in refused else [] for number in range(len(epochs))]
        assert [peer.refusals() for peer in peers] == stolen, epochs
        for peer in peers:
            peer.connection.connection_lost(None)
        assert not broker.connections


async def test_readers_of_different_epochs_are_told_apart_in_the_words_of_the_service() -> None:
    def told(*readers: tuple[int | None, str | None]) -> list[str]:
        broker = make_broker()
        peers = [Peer(broker).begin() for _ in readers]
        for peer, (epoch, name) in zip(peers, readers, strict=True):
            peer.attach_reader(epoch=epoch, name=name)
        return [words.removeprefix("amqp:link:stolen: ") for peer in peers for words in detaches(peer)]

    end = "is getting disconnected. If you are recreating the receiver, make sure a higher epoch is used."
    assert told((3, "old"), (5, "new")) == [
        f"New receiver 'new' with higher epoch of '5' is created hence current receiver 'old' with epoch '3' {end}"
    ]
    assert told((None, None), (0, None)) == [
        f"New receiver 'nil' with higher epoch of '0' is created hence current receiver 'nil' with epoch '-1' {end}"
    ]
    assert told((5, "owner"), (4, "late")) == [
        "Receiver 'owner' with a higher epoch '5' already exists. Receiver 'late' with epoch 4 cannot be created. "
        "Make sure you are creating receiver with increasing epoch value to ensure connectivity, or ensure all old "
        "epoch receivers are closed or disconnected."
    ]
    assert told((5, "owner"), (None, "plain")) == [
        "At least one receiver for the endpoint is created with epoch of '5', and so non-epoch receiver is not "
        "allowed. Either reconnect with a higher epoch, or make sure all epoch receivers are closed or disconnected."
    ]


async def test_as_many_sends_as_were_throttled_are_rejected() -> None:
    peer = publisher(make_broker(faults=Faults(throttled_sends=2)))
    for number in range(3):
        peer.put(transfer(message(), number))
    states = [fields[4] for code, fields, _ in peer.frames() if code == DISPOSITION]
    assert [state.descriptor for state in states] == [REJECTED, REJECTED, ACCEPTED]
    assert states[0].value[0].value[0] == "com.microsoft:server-busy"
