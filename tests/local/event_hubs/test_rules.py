"""The rules of AMQP 1.0 that protect a peer from the emulator and the emulator from a peer, frame by frame."""

import re
from collections.abc import Callable

import pytest

from local.event_hubs.codec import Described, UByte, UInt, ULong, encode
from local.event_hubs.frames import (
    ACCEPTED,
    ATTACH,
    CLOSE,
    DETACH,
    DISPOSITION,
    END,
    FLOW,
    REJECTED,
    SOURCE,
    TRANSFER,
    composite,
    frame,
)
from local.event_hubs.peers import WAITING_LIMIT
from local.event_hubs.sections import APPLICATION_PROPERTIES, DATA, MESSAGE_ANNOTATIONS, PROPERTIES
from tests.local.event_hubs.messages import attach_sender, message, transfer
from tests.local.event_hubs.peer import PARTITION, Peer, make_broker, publisher, reader

pytestmark = pytest.mark.asyncio
LARGEST = 0xFFFFFFFF


def bodies(peer: Peer) -> tuple[int, list[int], bytes]:
    """Return the number of transfers received, the ids of the deliveries that are whole, and all payload."""
    parts = [(fields, payload) for code, fields, payload in peer.frames() if code == TRANSFER]
    return len(parts), [fields[1] for fields, _ in parts if not fields[5]], b"".join(payload for _, payload in parts)


# windows and credit


async def test_the_window_counts_frames_also_within_one_delivery() -> None:
    broker = make_broker()
    publisher(broker, b"(" * 15_000, b")" * 15_000)
    peer = reader(broker, max_frame=512)
    found = []
    received = 0
    for window in (3, 1, 40, 40):
        peer.flow((received, window), (1, 0, 2))
        frames, whole, payload = bodies(peer)
        assert frames <= window
        received += frames
        found.append((frames, whole, payload))
    assert [frames for frames, _, _ in found[:3]] == [3, 1, 40]
    assert [number for _, whole, _ in found for number in whole] == [0, 1]
    everything = b"".join(payload for _, _, payload in found)
    runs = re.findall(rb"\({9,}|\){9,}", everything)  # the time of an event may have such a byte too
    assert [len(run) for run in runs] == [15_000, 15_000]


async def test_a_negative_window_is_none() -> None:
    broker = make_broker()
    publisher(broker, *[b"body"] * 200)
    peer = reader(broker, window=10)
    peer.flow((0, 10), (1, 0, 200))
    assert bodies(peer)[0] == 10
    peer.flow((0, 3))
    assert bodies(peer)[0] == 0
    peer.flow((8, 3))
    assert bodies(peer)[0] == 1
    peer.flow((LARGEST, 14))  # the last number before 0: 12 frames are on their way
    assert bodies(peer)[0] == 2


async def test_the_largest_window_and_credit_are_no_negative_ones() -> None:
    broker = make_broker()
    publisher(broker, *[b"body"] * 20)
    peer = reader(broker, window=1)
    peer.flow((0, LARGEST), (1, 0, LARGEST))
    assert bodies(peer)[0] == 20
    peer.flow((20, LARGEST), (1, 30, LARGEST), echo=True)  # a count that is ahead of ours
    assert [fields[6] for code, fields, _ in peer.frames() if code == FLOW] == [LARGEST]


async def test_ids_and_counts_begin_again_after_the_last() -> None:
    broker = make_broker()
    publisher(broker, *[b"body"] * 4)
    peer = reader(broker)
    peer.grant(LARGEST, drain=True)  # the drain takes the count of deliveries to the last number
    peer.flow((4, 100), (1, LARGEST, 3))
    publisher(broker, *[b"body"] * 4)
    peer.connection.resume_writing()
    found = bodies(peer)
    assert found[1] == [0, 1, 2, 3, 4, 5, 6]
    peer.flow((7, 100), (1, 2, 0), echo=True)
    assert [fields[5] for code, fields, _ in peer.frames() if code == FLOW] == [2]


async def test_a_window_that_opens_with_the_flow_of_one_link_opens_for_all() -> None:
    broker = make_broker()
    publisher(broker, b"body")
    peer = reader(broker, window=0)
    peer.attach_reader("telemetry/ConsumerGroups/$Default/Partitions/0", handle=2)
    peer.frames()
    peer.flow((0, 0), (1, 0, 1))
    peer.flow((0, 10), (2, 0, 0))
    assert [fields[0] for code, fields, _ in peer.frames() if code == TRANSFER] == [1]


async def test_a_cut_delivery_ends_with_its_link_and_gives_the_session_free() -> None:
    broker = make_broker()
    publisher(broker, b"x" * 5000)
    peer = reader(broker, window=2, max_frame=512)
    peer.attach_reader("telemetry/ConsumerGroups/$Default/Partitions/0", handle=2)
    peer.flow((0, 2), (1, 0, 1))
    peer.send(DETACH, UInt(1), True)
    peer.flow((2, 100), (2, 0, 1))
    assert [fields[0] for code, fields, _ in peer.frames() if code == TRANSFER] == [1, 1] + [2] * 11


@pytest.mark.slow
async def test_a_sender_of_small_frames_gets_a_new_window_before_its_old_one_ends() -> None:
    peer = Peer(make_broker()).begin()
    peer.attach_sender()
    for _ in range(40_000):
        peer.put(transfer(b"", more=True))
    [fields] = [fields for code, fields, _ in peer.frames() if code == FLOW and fields[4] is None]
    assert (fields[0], fields[1]) == (32_768, 65_536)


async def test_an_echo_for_the_session_alone_is_answered() -> None:
    peer = Peer(make_broker()).begin()
    peer.flow((0, 10), echo=True)
    [(code, fields, _)] = peer.frames()
    assert (code, fields[4], fields[1]) == (FLOW, None, 65_536)


# drain


async def test_a_drain_waits_for_the_events_that_the_window_stops_and_loses_none() -> None:
    broker = make_broker()
    publisher(broker, *[b"body"] * 5)
    peer = reader(broker, window=2)
    peer.flow((0, 2), (1, 0, 10), drain=True)
    assert bodies(peer)[1] == [0, 1]
    peer.flow((2, 2))
    assert bodies(peer)[1] == [2, 3]
    peer.flow((4, 2))
    [(first, _, _), (code, fields, _)] = peer.frames()
    assert (first, code, fields[5], fields[6], fields[8]) == (TRANSFER, FLOW, 10, 0, True)
    peer.flow((5, 100), (1, 10, 1))
    publisher(broker, b"after")
    peer.connection.resume_writing()
    assert bodies(peer)[1] == [5]


async def test_a_drain_is_answered_after_the_last_frame_of_a_cut_delivery() -> None:
    broker = make_broker()
    publisher(broker, b"x" * 1000)
    peer = reader(broker, window=1, max_frame=512)
    peer.flow((0, 1), (1, 0, 1), drain=True)
    assert peer.codes() == [TRANSFER]
    peer.flow((1, 10))
    assert peer.codes() == [TRANSFER, TRANSFER, FLOW]


async def test_a_drain_with_a_closed_window_is_answered_when_nothing_waits() -> None:
    peer = reader(make_broker(), window=0)
    peer.flow((0, 0), (1, 0, 4), drain=True)
    [(code, fields, _)] = peer.frames()
    assert (code, fields[5], fields[6], fields[8]) == (FLOW, 4, 0, True)


async def test_credit_taken_back_while_the_window_is_closed_sends_nothing_and_loses_nothing() -> None:
    broker = make_broker()
    publisher(broker, *[b"body"] * 3)
    peer = reader(broker, window=0)
    peer.flow((0, 0), (1, 0, 3))
    peer.flow((0, 10), (1, 0, 0))
    assert peer.codes() == []
    peer.flow((0, 10), (1, 0, 3))
    assert bodies(peer)[1] == [0, 1, 2]


# deliveries of a peer


async def test_a_delivery_is_settled_when_any_of_its_transfers_says_so() -> None:
    for flags in ((False, True), (True, False), (False, False)):
        peer = publisher(make_broker())
        whole = message(b"x" * 100)
        peer.put(transfer(whole[:50], settled=flags[0], more=True), transfer(whole[50:], settled=flags[1]))
        assert peer.outcomes() == ([] if any(flags) else [(0, 0, ACCEPTED)]), flags
        peer.put(transfer(message(), 1))
        assert peer.outcomes() == [(1, 1, ACCEPTED)], "the next delivery is not settled"


async def test_aborted_deliveries_use_credit_which_is_given_again() -> None:
    peer = publisher(make_broker())
    for number in range(500):
        peer.send(TRANSFER, UInt(0), UInt(number), b"t", UInt(0), False, False, None, None, None, True)
    [(code, fields, _)] = peer.frames()
    assert (code, fields[4], fields[5], fields[6]) == (FLOW, 0, 500, 1000)


BROKEN: dict[str, bytes] = {
    "no sections": b"garbage",
    "a section that is cut short": message(b"x" * 100)[:-1],
    "a section of an unknown kind": encode(Described(ULong(0x79), b"")) + message(),
    "data that is a text": encode(Described(ULong(DATA), "text")),
    "annotations that are a list": encode(Described(ULong(MESSAGE_ANNOTATIONS), [1, 2])) + message(),
    "annotations with a key alone": b"\x00\x53\x72\xc1\x02\x01\x40" + message(),
    "application properties that are a text": encode(Described(ULong(APPLICATION_PROPERTIES), "x")) + message(),
    "a descriptor alone": b"\x00\x53\x75",
}


async def test_a_malformed_message_ends_its_link_after_the_outcomes_of_the_others() -> None:
    for name, broken in BROKEN.items():
        for settled in (False, True):
            peer = publisher(make_broker())
            peer.put(transfer(message(), 0), transfer(broken, 1, settled=settled), transfer(message(), 2))
            found = peer.frames()
            outcomes = [fields[4].descriptor for code, fields, _ in found if code == DISPOSITION]
            assert outcomes == ([ACCEPTED] if settled else [ACCEPTED, REJECTED]), name
            assert (found[-1][0], found[-1][1][2].value[0]) == (DETACH, "amqp:decode-error"), name
            assert not peer.transport.is_closing()
            peer.attach_sender("telemetry/Partitions/0", handle=4)
            assert ATTACH in peer.codes(), "the session goes on"


async def test_a_malformed_request_ends_its_link() -> None:
    for name in ("no sections", "application properties that are a text"):
        for node in ("$cbs", "$management"):
            peer = Peer(make_broker()).begin()
            peer.attach_sender(node)
            peer.put(transfer(BROKEN[name], settled=True))
            assert peer.refusals() == ["amqp:decode-error"], (name, node)


MISTAKES: dict[str, tuple[str, Callable[[Peer], None]]] = {
    "sends a transfer without a delivery id": (
        "amqp:invalid-field",
        lambda peer: peer.put(composite(TRANSFER, UInt(0), None, b"t") + message()),
    ),
    "changes the delivery id in the midst": (
        "amqp:invalid-field",
        lambda peer: peer.put(transfer(b"", 1, more=True), transfer(message(), 2)),
    ),
    "sends over a link that receives": ("amqp:not-allowed", lambda peer: peer.put(transfer(message(), handle=7))),
}


async def test_a_mistake_of_a_sender_ends_its_link() -> None:
    for name, (condition, act) in MISTAKES.items():
        peer = Peer(make_broker()).begin()
        peer.attach_sender()
        peer.attach_reader(handle=7)
        act(peer)
        assert peer.refusals() == [condition], name
        assert not peer.transport.is_closing(), name


# settle modes


async def test_the_answer_to_a_sender_repeats_its_settle_modes_and_gives_the_defaults_for_none() -> None:
    for asked, answered in (
        ((UByte(0), UByte(0)), (0, 0)),
        ((UByte(1), UByte(0)), (1, 0)),
        ((UByte(2), UByte(1)), (2, 1)),
        ((None, None), (2, 0)),
    ):
        for address in ("telemetry", "$management", "nowhere"):
            peer = Peer(make_broker()).begin()
            peer.put(attach_sender(address, modes=asked))
            assert [fields[3:5] for code, fields, _ in peer.frames() if code == ATTACH] == [[*answered]], asked


async def test_a_reader_is_told_that_its_deliveries_are_settled_whatever_it_asks_for() -> None:
    for asked in (UByte(0), UByte(1), UByte(2), None):
        peer = Peer(make_broker()).begin()
        peer.send(ATTACH, "r", UInt(1), True, asked, UByte(0), Described(ULong(SOURCE), [PARTITION]))
        assert [fields[3:5] for code, fields, _ in peer.frames() if code == ATTACH] == [[1, 0]], asked


async def test_an_unknown_settle_mode_ends_the_connection() -> None:
    for asked in ((UByte(3), None), (None, UByte(2))):
        peer = Peer(make_broker()).begin()
        peer.put(attach_sender("telemetry", modes=asked))
        assert peer.refusals(CLOSE) == ["amqp:decode-error"], asked


# handles


async def test_a_frame_on_a_handle_that_no_link_has_ends_the_session_after_its_outcomes() -> None:
    frames: dict[str, bytes] = {
        "transfer": transfer(message(), 1, handle=9),
        "flow": composite(FLOW, UInt(0), UInt(1), UInt(0), UInt(1), UInt(9), UInt(0), UInt(1)),
    }
    for name, unknown in frames.items():
        peer = publisher(make_broker())
        peer.put(transfer(message(), 0), unknown, transfer(message(), 2))
        [accepted, ended] = peer.frames()
        assert (accepted[0], accepted[1][1:3]) == (DISPOSITION, [0, 0]), name
        assert (ended[0], ended[1][0].value[0]) == (END, "amqp:session:unattached-handle"), name
        peer.send(END)
        assert not peer.transport.is_closing(), name
        peer.begin_session()
        peer.attach_sender()
        assert ATTACH in peer.codes(), name


async def test_a_handle_that_is_attached_twice_ends_the_session() -> None:
    peer = Peer(make_broker()).begin()
    peer.put(attach_sender("telemetry"), attach_sender("telemetry"))
    assert peer.refusals(END) == ["amqp:session:handle-in-use"]


async def test_a_handle_is_in_use_until_the_detach_of_its_link_is_sent() -> None:
    peer = publisher(make_broker())
    peer.put(transfer(b"garbage"), attach_sender("telemetry"))
    codes = [code for code, _, _ in peer.frames()]
    assert codes == [DISPOSITION, DETACH, END]


async def test_frames_on_their_way_to_a_link_that_this_side_detached_are_ignored() -> None:
    peer = publisher(make_broker())
    peer.put(transfer(b"garbage"), transfer(message(), 1))
    peer.flow((0, 10), (0, 0, 1))
    peer.put(transfer(message(), 2))
    assert END not in peer.codes()
    peer.send(DETACH, UInt(0), True)
    peer.put(transfer(message(), 3))
    assert peer.refusals(END) == ["amqp:session:unattached-handle"]


# peers that do not read

REQUEST = transfer(encode(Described(ULong(PROPERTIES), ["i" * 30_000])))
LONG_ATTACH = composite(ATTACH, "a" * 30_000, UInt(1), False)


def ask(peer: Peer, credit: int) -> None:
    peer.attach_sender("$management")
    peer.attach_reader("$management")
    peer.grant(credit)


Flood = tuple[Callable[[Peer], None], bytes]
FLOODS: dict[str, Flood] = {
    "attaches that are refused": (lambda peer: None, LONG_ATTACH),
    "answers": (lambda peer: ask(peer, 1_000_000), REQUEST),
}
FLOODS_OF_SMALL_FRAMES: dict[str, Flood] = {
    "echoes": (lambda peer: None, composite(FLOW, *map(UInt, (0, 9, 0, 9)), *[None] * 5, True)),
    "rejected deliveries": (lambda peer: peer.attach_sender(), transfer(message(), message_format=1)),
}


def assert_closed(floods: dict[str, Flood]) -> None:
    for name, (prepare, flood) in floods.items():
        peer = Peer(make_broker()).begin()
        prepare(peer)
        peer.frames()
        peer.stop_reading()
        data = frame(flood) * 100
        for _ in range(3 * WAITING_LIMIT // 5_000):
            if not peer.transport.is_closing():
                peer.connection.data_received(data)
        assert peer.transport.waiting < WAITING_LIMIT + 35_000, name
        assert peer.refusals(CLOSE) == ["amqp:resource-limit-exceeded"], name


async def test_a_peer_that_does_not_read_is_closed_when_4_mb_wait_for_it() -> None:
    assert WAITING_LIMIT == 4 * 1024 * 1024
    assert_closed(FLOODS)


@pytest.mark.slow  # 4 MB of frames of 50 bytes
async def test_a_peer_that_does_not_read_small_frames_is_closed_too() -> None:
    assert_closed(FLOODS_OF_SMALL_FRAMES)


async def test_a_peer_that_gives_no_credit_for_its_answers_is_closed_when_4_mb_wait_for_it() -> None:
    peer = Peer(make_broker()).begin()
    ask(peer, 0)
    peer.put(*[REQUEST] * (WAITING_LIMIT // 31_000))
    assert not peer.transport.is_closing()
    peer.put(*[REQUEST] * 10)
    assert peer.refusals(CLOSE) == ["amqp:resource-limit-exceeded"]


async def test_answers_that_the_peer_took_or_whose_link_is_gone_do_not_count() -> None:
    peer = Peer(make_broker()).begin()
    ask(peer, 1_000)
    for _ in range(2 * WAITING_LIMIT // 30_000):
        peer.put(REQUEST)
    assert len(bodies(peer)[1]) == 2 * WAITING_LIMIT // 30_000
    for _ in range(3):
        peer.send(DETACH, UInt(1), True)
        peer.attach_reader("$management")
        peer.put(*[REQUEST] * (WAITING_LIMIT // 60_000))
    assert not peer.transport.is_closing()


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
    assert not peer.transport.is_closing()
