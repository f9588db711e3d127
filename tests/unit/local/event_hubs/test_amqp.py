"""What a connection answers, frame by frame: order, credit, windows, refusals and broken peers."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from local.event_hubs.broker import HubBroker
from local.event_hubs.codec import Described, Symbol, UInt, ULong, decode, encode
from local.event_hubs.errors import AmqpError
from local.event_hubs.frames import (
    ACCEPTED,
    AMQP_HEADER,
    ATTACH,
    BEGIN,
    CLOSE,
    DETACH,
    DISPOSITION,
    END,
    FLOW,
    OPEN,
    REJECTED,
    SASL_HEADER,
    SASL_INIT,
    TRANSFER,
    composite,
    frame,
)
from local.event_hubs.hubs import HubSettings
from local.event_hubs.links import CHUNK, MAX_MESSAGE
from local.event_hubs.readers import Faults
from local.event_hubs.sections import APPLICATION_PROPERTIES, PROPERTIES, VALUE, sections
from local.event_hubs.tokens import LISTEN, Grant
from tests.unit.local.event_hubs.messages import message
from tests.unit.local.event_hubs.peer import Peer, make_broker

pytestmark = pytest.mark.asyncio

PARTITION = "telemetry/ConsumerGroups/hubledger/Partitions/0"


def outcomes(peer: Peer) -> list[tuple[int, int, int]]:
    """The dispositions received: first delivery, last, and the descriptor of the state."""
    return [(fields[1], fields[2], fields[4].descriptor) for code, fields, _ in peer.frames() if code == DISPOSITION]


def refusals(peer: Peer) -> list[str]:
    """The conditions of the detaches received."""
    return [fields[2].value[0] for code, fields, _ in peer.frames() if code == DETACH and fields[2]]


async def publisher(broker: HubBroker, address: str = "telemetry/Partitions/0") -> Peer:
    peer = Peer(broker)
    peer.begin()
    peer.attach_sender(address)
    peer.frames()
    return peer


async def test_every_field_is_written_because_the_sdk_indexes_them() -> None:
    peer = Peer(make_broker())
    peer.connection.data_received(AMQP_HEADER)
    peer.send(OPEN, "peer")
    peer.send(BEGIN, None, UInt(0), UInt(10), UInt(10))
    peer.attach_reader(PARTITION)
    peer.attach_reader("telemetry/ConsumerGroups/hubledger/Partitions/9", handle=2)
    lengths = {code: len(fields) for code, fields, _ in peer.frames()}
    assert lengths == {OPEN: 10, BEGIN: 8, ATTACH: 14, DETACH: 3}


async def test_deliveries_that_came_together_are_accepted_in_one_range() -> None:
    broker = make_broker()
    peer = await publisher(broker)
    transfers = [
        frame(composite(TRANSFER, UInt(0), UInt(number), b"t", UInt(0), False, False) + message())
        for number in range(9)
    ]
    peer.connection.data_received(b"".join(transfers))
    assert outcomes(peer) == [(0, 8, ACCEPTED)]


async def test_a_refused_delivery_splits_the_range_and_keeps_its_place() -> None:
    broker = make_broker()
    peer = await publisher(broker)
    bodies = [message(), b"garbage", message()]
    transfers = [
        frame(composite(TRANSFER, UInt(0), UInt(number), b"t", UInt(0), False, False) + body)
        for number, body in enumerate(bodies)
    ]
    peer.connection.data_received(b"".join(transfers))
    assert outcomes(peer) == [(0, 0, ACCEPTED), (1, 1, REJECTED), (2, 2, ACCEPTED)]


async def test_nothing_is_accepted_before_it_is_committed() -> None:
    accepted_at_commit: list[list[tuple[int, int, int]]] = []

    class Watching(HubBroker):
        def commit(self) -> None:
            accepted_at_commit.append(outcomes(peer))
            super().commit()

    peer = Peer(make_broker(kind=Watching))
    peer.begin()
    peer.attach_sender("telemetry/Partitions/0")
    accepted_at_commit.clear()
    peer.transfer(message(), 0)
    assert accepted_at_commit == [[]]
    assert outcomes(peer) == [(0, 0, ACCEPTED)]


async def test_what_could_not_be_committed_is_rejected() -> None:
    class FullDisk(HubBroker):
        def commit(self) -> None:
            raise AmqpError("amqp:internal-error", "the disk is full")

    peer = await publisher(make_broker(kind=FullDisk))
    peer.transfer(message(), 0)
    assert outcomes(peer) == [(0, 0, REJECTED)]


async def test_a_reader_is_sent_what_its_credit_allows_and_not_more() -> None:
    broker = make_broker()
    sender = await publisher(broker)
    for number in range(10):
        sender.transfer(message(), number)
    reader = Peer(broker)
    reader.begin()
    reader.attach_reader(PARTITION)
    assert TRANSFER not in reader.codes()
    reader.grant(3)
    assert reader.codes() == [TRANSFER] * 3
    reader.grant(4, received=3)
    assert reader.codes() == [TRANSFER] * 4
    reader.grant(0, received=7)
    assert reader.codes() == []


async def test_deliveries_share_one_tag_and_are_settled() -> None:
    broker = make_broker()
    sender = await publisher(broker)
    sender.transfer(message(), 0)
    sender.transfer(message(), 1)
    reader = Peer(broker)
    reader.begin()
    reader.attach_reader(PARTITION)
    reader.grant(10)
    transfers = [fields for code, fields, _ in reader.frames() if code == TRANSFER]
    assert [(fields[1], fields[2], fields[4]) for fields in transfers] == [(0, b"\0", True), (1, b"\0", True)]


async def test_an_event_larger_than_the_peers_frames_comes_in_several() -> None:
    broker = make_broker()
    sender = await publisher(broker)
    sender.transfer(message(b"x" * 2000), 0)
    reader = Peer(broker)
    reader.begin(max_frame=512)
    reader.attach_reader(PARTITION)
    reader.grant(10)
    parts = [(fields[5], payload) for code, fields, payload in reader.frames() if code == TRANSFER]
    assert [more for more, _ in parts] == [True] * (len(parts) - 1) + [False]
    assert b"".join(payload for _, payload in parts).endswith(message(b"x" * 2000))


async def test_a_reader_stops_at_the_sessions_window() -> None:
    broker = make_broker()
    sender = await publisher(broker)
    for number in range(10):
        sender.transfer(message(), number)
    reader = Peer(broker)
    reader.begin(window=4)
    reader.attach_reader(PARTITION)
    reader.frames()
    reader.send(FLOW, UInt(0), UInt(4), UInt(0), UInt(10), UInt(1), UInt(0), UInt(100))
    assert reader.codes() == [TRANSFER] * 4
    reader.send(FLOW, UInt(4), UInt(3), UInt(0), UInt(10))
    assert reader.codes() == [TRANSFER] * 3


async def test_a_stopped_reader_is_written_to_in_pieces_and_no_further() -> None:
    broker = make_broker()
    sender = await publisher(broker)
    for number in range(60):
        sender.transfer(message(b"x" * 30_000), number)
    reader = Peer(broker)
    reader.begin()
    reader.attach_reader(PARTITION)
    reader.connection.pause_writing()
    reader.grant(60)
    assert TRANSFER not in reader.codes()
    reader.connection.resume_writing()
    assert reader.codes().count(TRANSFER) == 60
    assert reader.transport.largest_write <= CHUNK + 2 * 30_000


async def test_a_drained_link_gives_its_credit_back() -> None:
    broker = make_broker()
    reader = Peer(broker)
    reader.begin()
    reader.attach_reader(PARTITION)
    reader.frames()
    reader.grant(7, drain=True)
    [(code, fields, _)] = reader.frames()
    assert (code, fields[5], fields[6]) == (FLOW, 7, 0)


async def test_readers_get_new_events_once_they_are_committed() -> None:
    broker = make_broker()
    reader = Peer(broker)
    reader.begin()
    reader.attach_reader(PARTITION, selector="amqp.annotation.x-opt-offset > '@latest'")
    reader.grant(10)
    reader.frames()
    sender = await publisher(broker)
    sender.transfer(message(b"new"), 0)
    await asyncio.sleep(0)
    [(code, _, payload)] = reader.frames()
    assert code == TRANSFER
    assert payload.endswith(b"new")


async def test_a_message_over_the_limit_detaches_its_link_only() -> None:
    peer = await publisher(make_broker())
    part = b"x" * 60_000
    for _ in range(MAX_MESSAGE // len(part) + 1):
        peer.send(TRANSFER, UInt(0), UInt(0), b"t", UInt(0), False, True, payload=part)
    assert refusals(peer) == ["amqp:link:message-size-exceeded"]
    peer.attach_sender("telemetry/Partitions/1", handle=5)
    assert ATTACH in peer.codes()


async def test_an_aborted_delivery_leaves_nothing() -> None:
    broker = make_broker()
    peer = await publisher(broker)
    peer.send(TRANSFER, UInt(0), UInt(0), b"t", UInt(0), False, True, payload=b"half")
    peer.send(TRANSFER, UInt(0), UInt(0), b"t", UInt(0), False, False, None, None, None, True)
    peer.transfer(message(), 1)
    assert outcomes(peer) == [(1, 1, ACCEPTED)]


@pytest.mark.parametrize(
    ("address", "condition"),
    [
        ("nowhere/ConsumerGroups/hubledger/Partitions/0", "amqp:not-found"),
        ("telemetry/ConsumerGroups/nobody/Partitions/0", "amqp:not-found"),
        ("telemetry/ConsumerGroups/hubledger/Partitions/4", "com.microsoft:argument-out-of-range"),
        ("telemetry", "amqp:not-found"),
        ("", "amqp:not-found"),
        ("amqps://[", "amqp:invalid-field"),
    ],
)
async def test_a_reader_of_what_is_not_there_is_refused(address: str, condition: str) -> None:
    peer = Peer(make_broker())
    peer.begin()
    peer.attach_reader(address)
    assert refusals(peer) == [condition]


@pytest.mark.parametrize(
    "attach",
    [
        lambda peer: peer.attach_sender("telemetry/Publishers/device-1"),
        lambda peer: peer.attach_sender(capabilities=Symbol("com.microsoft:idempotent-producer")),
        lambda peer: peer.attach_reader(PARTITION, filters={Symbol("colour"): "red"}),
        lambda peer: peer.send(ATTACH, "t", UInt(0), False, None, None, None, Described(ULong(0x30), [])),
    ],
    ids=["publisher policy", "idempotent producer", "other filter", "transaction"],
)
async def test_what_is_not_emulated_is_refused_loudly(attach: Any) -> None:
    peer = Peer(make_broker())
    peer.begin()
    attach(peer)
    assert refusals(peer) == ["amqp:not-implemented"]


async def test_a_link_without_a_token_or_without_the_right_is_refused() -> None:
    broker = make_broker()
    nobody = Peer(broker, grant=None)
    nobody.begin()
    nobody.attach_sender()
    assert refusals(nobody) == ["amqp:unauthorized-access"]
    listener = Peer(broker, Grant(("telemetry",), frozenset({LISTEN}), 2**62))
    listener.begin()
    listener.attach_sender()
    assert refusals(listener) == ["amqp:unauthorized-access"]


async def test_an_answer_repeats_the_very_message_id_and_goes_to_the_session_that_asked() -> None:
    broker = make_broker()
    peer = Peer(broker)
    peer.begin()
    peer.attach_sender("$management", handle=0)
    peer.attach_reader("$management", handle=1)
    peer.grant(10)
    peer.frames()
    asked = {"name": "telemetry", "operation": "READ", "type": "com.microsoft:eventhub"}
    request = encode(Described(ULong(PROPERTIES), [ULong(7)])) + encode(Described(ULong(APPLICATION_PROPERTIES), asked))
    peer.transfer(request, 0)
    answer = next(payload for code, _, payload in peer.frames() if code == TRANSFER)
    parts = {section.code: decode(answer, section.body)[0] for section in sections(answer)}
    assert parts[PROPERTIES][5] == 7
    assert parts[APPLICATION_PROPERTIES]["status-code"] == 200
    assert parts[VALUE]["partition_ids"] == ["0", "1", "2", "3"]


async def test_another_management_operation_is_not_emulated() -> None:
    broker = make_broker()
    peer = Peer(broker)
    peer.begin()
    peer.attach_sender("$management", handle=0)
    peer.attach_reader("$management", handle=1)
    peer.grant(10)
    peer.frames()
    asked = {"name": "telemetry", "operation": "DELETE", "type": "com.microsoft:eventhub"}
    peer.transfer(encode(Described(ULong(APPLICATION_PROPERTIES), asked)), 0)
    answer = next(payload for code, _, payload in peer.frames() if code == TRANSFER)
    assert b"DELETE" in answer
    parts = {section.code: decode(answer, section.body)[0] for section in sections(answer)}
    assert parts[APPLICATION_PROPERTIES]["status-code"] == 501


async def test_a_sasl_mechanism_other_than_those_offered_ends_the_connection() -> None:
    peer = Peer(make_broker())
    peer.connection.data_received(SASL_HEADER)
    peer.connection.data_received(frame(composite(SASL_INIT, Symbol("PLAIN"), b"\0user\0password"), kind=1))
    assert peer.transport.is_closing()


async def test_another_protocol_is_answered_with_the_one_spoken_here() -> None:
    peer = Peer(make_broker())
    peer.connection.data_received(b"GET / HTTP/1.1\r\n\r\n")
    assert peer.transport.written == AMQP_HEADER
    assert peer.transport.is_closing()


@pytest.mark.parametrize(
    "misbehave",
    [
        lambda peer: peer.send(OPEN, "again"),
        lambda peer: peer.send(BEGIN, None, UInt(0), UInt(1), UInt(1)),
        lambda peer: peer.send(BEGIN, None, UInt(0), UInt(1), UInt(1), channel=5000),
        lambda peer: (peer.attach_sender(), peer.attach_sender()),
        lambda peer: peer.send(ATTACH, 7, UInt(0), False),
        lambda peer: peer.send(ATTACH, "a", UInt(0), False, None, None, "no source"),
        lambda peer: peer.send(FLOW),
        lambda peer: peer.send(0x99),
        lambda peer: peer.connection.data_received(b"\0\0\0\4\2\0\0\0"),
        lambda peer: peer.connection.data_received(b"\0\2\0\0\2\0\0\0"),
        lambda peer: peer.connection.data_received(b"\0\0\0\x09\x09\0\0\0\0"),
        lambda peer: peer.connection.data_received(b"\0\0\0\x09\2\7\0\0\0"),
        lambda peer: peer.connection.data_received(b"\0\0\0\x09\2\0\0\0\x41"),
        lambda peer: peer.connection.data_received(frame(composite(SASL_INIT, Symbol("ANONYMOUS")), kind=1)),
    ],
)
async def test_a_peer_that_breaks_the_protocol_is_told_so_and_closed(misbehave: Any) -> None:
    broker = make_broker()
    peer = Peer(broker)
    peer.begin()
    misbehave(peer)
    closed = [fields[0].value[0] for code, fields, _ in peer.frames() if code == CLOSE]
    assert len(closed) == 1
    assert closed[0].startswith("amqp:")
    assert peer.transport.is_closing()
    await asyncio.sleep(0)
    assert not broker.connections


async def test_frames_for_a_session_that_has_ended_mean_nothing() -> None:
    peer = await publisher(make_broker())
    peer.send(END)
    peer.send(DETACH, UInt(0), True)
    peer.transfer(message(), 0)
    assert peer.codes() == [END]


async def test_a_session_may_begin_again_on_the_channel_of_one_that_ended() -> None:
    peer = await publisher(make_broker())
    peer.send(END)
    peer.send(BEGIN, None, UInt(0), UInt(10), UInt(10))
    peer.attach_sender()
    assert not peer.transport.is_closing()
    assert ATTACH in peer.codes()


async def test_a_lost_connection_frees_its_readers_places() -> None:
    broker = make_broker()
    for _ in range(8):
        peer = Peer(broker)
        peer.begin()
        peer.attach_reader(PARTITION)
        assert refusals(peer) == []
        peer.connection.connection_lost(None)
    assert not broker.connections


async def test_the_sixth_reader_without_an_epoch_is_refused() -> None:
    broker = make_broker()
    peer = Peer(broker)
    peer.begin()
    for handle in range(6):
        peer.attach_reader(PARTITION, handle)
    assert refusals(peer) == ["amqp:resource-limit-exceeded"]


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [(None, 0, 0), (0, 0, 0), (1, 2, 0), (2, 1, 1), (0, None, 1)],
)
async def test_the_higher_or_equal_epoch_takes_over(first: int | None, second: int | None, refused: int) -> None:
    broker = make_broker()
    peers = []
    for epoch in (first, second):
        peer = Peer(broker)
        peer.begin()
        epochs = None if epoch is None else {Symbol("com.microsoft:epoch"): epoch}
        peer.attach_reader(PARTITION, properties=epochs)
        peers.append(peer)
    assert [refusals(peer) for peer in peers] == [["amqp:link:stolen"] if n == refused else [] for n in range(2)]


async def test_a_reader_that_took_over_is_known_to_the_next_one_and_can_leave() -> None:
    broker = make_broker()
    peers = [Peer(broker) for _ in range(3)]
    for peer, epoch in zip(peers, (0, 0, None), strict=True):
        peer.begin()
        peer.attach_reader(PARTITION, properties=None if epoch is None else {Symbol("com.microsoft:epoch"): epoch})
    assert [refusals(peer) for peer in peers] == [["amqp:link:stolen"], [], ["amqp:link:stolen"]]
    for peer in peers:
        peer.connection.connection_lost(None)
    assert not broker.connections


async def test_throttled_sends_are_rejected_and_then_no_more() -> None:
    peer = await publisher(make_broker(faults=Faults(throttled_sends=2)))
    for number in range(3):
        peer.transfer(message(), number)
    states = [fields[4] for code, fields, _ in peer.frames() if code == DISPOSITION]
    assert [state.descriptor for state in states] == [REJECTED, REJECTED, ACCEPTED]
    assert states[0].value[0].value[0] == "com.microsoft:server-busy"


async def test_hubs_are_found_in_any_case() -> None:
    broker = make_broker(HubSettings("Telemetry", 1, ("HubLedger",)))
    peer = Peer(broker)
    peer.begin()
    peer.attach_reader("TELEMETRY/consumergroups/HUBLEDGER/partitions/0")
    assert refusals(peer) == []


@pytest.mark.parametrize("seed", range(40))
async def test_a_stream_with_bytes_changed_is_survived(seed: int) -> None:
    chance = random.Random(seed)
    broker = make_broker()
    recorded = Peer(broker)
    stream = bytearray(
        frame(composite(OPEN, "peer"))
        + frame(composite(BEGIN, None, UInt(0), UInt(10), UInt(10)))
        + frame(composite(ATTACH, "s", UInt(0), False, None, None, None, Described(ULong(0x29), ["telemetry"])))
        + frame(composite(FLOW, UInt(0), UInt(1), UInt(0), UInt(1), UInt(0), UInt(0), UInt(1)))
        + frame(composite(TRANSFER, UInt(0), UInt(0), b"t", UInt(0), False, False) + message())
    )
    for _ in range(chance.randrange(1, 8)):
        stream[chance.randrange(len(stream))] = chance.randrange(256)
    recorded.connection.data_received(AMQP_HEADER + bytes(stream))
    recorded.connection.data_received(bytes(stream))
    if not recorded.transport.is_closing():
        recorded.transport.abort()
    await asyncio.sleep(0)
    assert not broker.connections
