"""The sessions and links of a connection: windows, credit and drains, deliveries in parts, settle modes and turns."""

import asyncio
import random
import tracemalloc
from collections.abc import Callable

import pytest

from local.event_hubs.codec import Described, Symbol, UByte, UInt, ULong
from local.event_hubs.frames import ATTACH, CLOSE, DETACH, FLOW, SOURCE, TRANSFER, composite
from local.event_hubs.sections import APPLICATION_PROPERTIES, DATA, MESSAGE_ANNOTATIONS
from local.event_hubs.sessions import CHUNK, MAX_MESSAGE, TURN
from tests.local.event_hubs.messages import attach_sender, message, section, transfer, transfers
from tests.local.event_hubs.peer import PARTITION, SELECTOR, Peer, make_broker, publisher, reader

pytestmark = pytest.mark.asyncio
LARGEST = 0xFFFFFFFF
BODY = b"x" * 30_000


class Receiver:
    """A receiver that keeps its own books of the window, the credit and the events."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.frames = self.deliveries = self.credit = self.window = 0
        self.bodies: list[bytes] = []
        self._half = b""

    def allow(self, window: int, credit: int, drain: bool) -> None:
        self.window, self.credit = window, credit
        self.peer.flow((self.frames, window), (1, self.deliveries, credit), drain)
        self.take()

    def take(self) -> None:
        """Enter the frames that came, none of which may break a rule."""
        for code, fields, payload in self.peer.frames():
            if code == TRANSFER:
                assert (fields[2], fields[4]) == (b"\0", True) if not self._half else True, "settled, with one tag"
                self.frames, self.window = self.frames + 1, self.window - 1
                assert self.window >= 0, "a frame too many"
                if not self._half:
                    self.deliveries, self.credit = self.deliveries + 1, self.credit - 1
                    assert self.credit >= 0, "a delivery too many"
                self._half += payload
                if not fields[5]:
                    self.bodies.append(self._half[-self._size() :])
                    self._half = b""
            elif code == FLOW:
                assert not self._half, "a drain is answered in the midst of a delivery"
                assert (fields[5], fields[6], fields[8]) == (self.deliveries + self.credit, 0, True)
                self.deliveries, self.credit = self.deliveries + self.credit, 0

    def _size(self) -> int:
        """Return the size of the body, which begins with it and a slash."""
        return int(self._half[self._half.rindex(b"<") :].split(b"/")[0][1:])


def body(chance: random.Random) -> bytes:
    size = chance.choice((20, 300, 2_000, 9_000))
    return b"<%d/" % size + b"x" * (size - len(b"<%d/" % size))


async def test_every_event_comes_once_in_order_and_within_the_window_and_the_credit() -> None:
    for seed in range(60):
        chance = random.Random(seed)
        broker = make_broker()
        receiver = Receiver(reader(broker, window=0, max_frame=512))
        published: list[bytes] = []
        for _ in range(30):
            if chance.random() < 0.4:
                published += (more := [body(chance) for _ in range(chance.randrange(4))])
                publisher(broker, *more)
                broker.pump()
                receiver.take()
            receiver.allow(chance.choice((0, 1, 3, 7, 40)), chance.choice((0, 1, 2, 5)), chance.random() < 0.3)
        for _ in range(len(published) + 1):
            receiver.allow(10_000, 10_000, False)
        assert receiver.bodies == published, seed


# windows and credit


def taken(peer: Peer) -> list[int]:
    """Return the ids of the deliveries that are whole."""
    return [fields[1] for fields in peer.fields(TRANSFER) if not fields[5]]


async def test_a_negative_window_is_none() -> None:
    broker = make_broker()
    publisher(broker, *[b"body"] * 200)
    peer = reader(broker, window=10)
    peer.flow((0, 10), (1, 0, 200))
    found = [len(peer.payloads())]
    for window in ((0, 3), (8, 3), (LARGEST, 14)):  # LARGEST is the last number before 0: 12 frames are on their way
        peer.flow(window)
        found.append(len(peer.payloads()))
    assert found == [10, 0, 1, 2]


async def test_the_largest_window_and_credit_are_no_negative_ones() -> None:
    broker = make_broker()
    publisher(broker, *[b"body"] * 20)
    peer = reader(broker, window=1)
    peer.flow((0, LARGEST), (1, 0, LARGEST))
    assert len(peer.payloads()) == 20
    peer.flow((20, LARGEST), (1, 30, LARGEST), echo=True)  # a count that is ahead of ours
    assert [fields[6] for fields in peer.fields(FLOW)] == [LARGEST]


async def test_ids_and_counts_begin_again_after_the_last() -> None:
    broker = make_broker()
    publisher(broker, *[b"body"] * 4)
    peer = reader(broker)
    peer.grant(LARGEST, drain=True)  # the drain takes the count of deliveries to the last number
    peer.flow((4, 100), (1, LARGEST, 3))
    publisher(broker, *[b"body"] * 4)
    peer.connection.resume_writing()
    assert taken(peer) == [0, 1, 2, 3, 4, 5, 6]
    peer.flow((7, 100), (1, 2, 0), echo=True)
    assert [fields[5] for fields in peer.fields(FLOW)] == [2]


async def test_a_window_that_opens_with_the_flow_of_one_link_opens_for_all() -> None:
    broker = make_broker()
    publisher(broker, b"body")
    peer = reader(broker, window=0)
    peer.attach_reader("telemetry/ConsumerGroups/$Default/Partitions/0", handle=2)
    peer.frames()
    peer.flow((0, 0), (1, 0, 1))
    peer.flow((0, 10), (2, 0, 0))
    assert [fields[0] for fields in peer.fields(TRANSFER)] == [1]


async def test_a_cut_delivery_ends_with_its_link_and_gives_the_session_free() -> None:
    broker = make_broker()
    publisher(broker, b"x" * 5000)
    peer = reader(broker, window=2, max_frame=512)
    peer.attach_reader("telemetry/ConsumerGroups/$Default/Partitions/0", handle=2)
    peer.flow((0, 2), (1, 0, 1))
    peer.send(DETACH, UInt(1), True)
    peer.flow((2, 100), (2, 0, 1))
    assert [fields[0] for fields in peer.fields(TRANSFER)] == [1, 1] + [2] * 11


@pytest.mark.slow
async def test_a_sender_of_small_frames_gets_a_new_window_before_its_old_one_ends() -> None:
    peer = Peer(make_broker()).begin()
    peer.attach_sender()
    for _ in range(40_000):
        peer.put(transfer(b"", more=True))
    [fields] = [fields for fields in peer.fields(FLOW) if fields[4] is None]
    assert (fields[0], fields[1]) == (32_768, 65_536)


async def test_an_echo_for_the_session_alone_is_answered() -> None:
    peer = Peer(make_broker()).begin()
    peer.flow((0, 10), echo=True)
    [(code, fields, _)] = peer.frames()
    assert (code, fields[4], fields[1]) == (FLOW, None, 65_536)


# the position of a reader

BY_CODE, BY_NAME = ULong(0x468C00000004), SELECTOR
AFTER_OLD = "amqp.annotation.x-opt-sequence-number > '0'"


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        pytest.param({"jms-selector": Described(BY_CODE, AFTER_OLD)}, [b"new"], id="by its code"),
        pytest.param({"jms-selector": Described(BY_NAME, AFTER_OLD)}, [b"new"], id="by its name"),
        pytest.param({SELECTOR: None}, [b"old", b"new"], id="null is none"),
        pytest.param({SELECTOR: Described(Symbol("other"), AFTER_OLD)}, None, id="an unknown descriptor"),
        pytest.param({"a": Described(BY_CODE, AFTER_OLD), "b": Described(BY_CODE, AFTER_OLD)}, None, id="two"),
        pytest.param(
            {"a": Described(BY_CODE, AFTER_OLD), "b": Described(Symbol("com.microsoft:session-filter"), "a")},
            None,
            id="a different one beside it",
        ),
    ],
)
async def test_a_position_is_known_by_its_descriptor_whatever_its_filter_is_called(
    filters: dict[str, Described | None], found: list[bytes] | None
) -> None:
    broker = make_broker()
    publisher(broker, b"old", b"new")
    peer = Peer(broker).begin()
    peer.attach_reader(filters={Symbol(name): value for name, value in filters.items()})
    peer.grant(10)
    if found is None:
        assert peer.refusals() == ["amqp:not-implemented"]
    else:
        assert [payload[-3:] for payload in peer.payloads()] == found


# deliveries of a peer


async def test_deliveries_that_came_together_are_accepted_in_one_range_that_a_refused_one_splits() -> None:
    peer = publisher(make_broker())
    peer.put(*(transfer(message(), number) for number in range(9)))
    assert peer.outcomes() == [(0, 8, True)]
    peer.put(*(transfer(message(), number, message_format=number % 2) for number in (10, 11, 12)))
    assert peer.outcomes() == [(10, 10, True), (11, 11, False), (12, 12, True)]


async def test_a_message_over_the_limit_is_rejected_and_its_link_goes_on_to_one_of_exactly_the_limit() -> None:
    peer = publisher(make_broker())
    whole = message(b"x" * (MAX_MESSAGE - 8))
    assert len(whole) == MAX_MESSAGE
    peer.put(*transfers(whole + b"x", 5), transfer(message(), 6), *transfers(whole, 7))
    assert peer.outcomes() == [(5, 5, False), (6, 7, True)]


async def test_the_parts_of_a_message_over_the_limit_are_not_kept() -> None:
    peer = publisher(make_broker())
    tracemalloc.start()
    try:
        for _ in range(500):
            peer.put(transfer(b"x" * 60_000, more=True))
        assert tracemalloc.get_traced_memory()[0] < 2 * MAX_MESSAGE, "30 MB came"
    finally:
        tracemalloc.stop()
    assert peer.codes() == []


def abort(peer: Peer, delivery: int) -> None:
    peer.send(TRANSFER, UInt(0), UInt(delivery), b"t", UInt(0), False, False, None, None, None, True)


async def test_an_aborted_delivery_leaves_nothing_and_its_credit_is_given_again() -> None:
    peer = publisher(make_broker())
    peer.put(transfer(b"half", more=True))
    abort(peer, 0)
    peer.put(transfer(message(), 1))
    assert peer.outcomes() == [(1, 1, True)]
    for number in range(2, 500):
        abort(peer, number)
    [(code, fields, _)] = peer.frames()
    assert (code, fields[4], fields[5], fields[6]) == (FLOW, 0, 500, 1000)


async def test_a_delivery_is_settled_when_any_of_its_transfers_says_so() -> None:
    for flags in ((False, True), (True, False), (False, False)):
        peer = publisher(make_broker())
        whole = message(b"x" * 100)
        peer.put(transfer(whole[:50], settled=flags[0], more=True), transfer(whole[50:], settled=flags[1]))
        assert peer.outcomes() == ([] if any(flags) else [(0, 0, True)]), flags
        peer.put(transfer(message(), 1))
        assert peer.outcomes() == [(1, 1, True)], "the next delivery is not settled"


BROKEN: dict[str, bytes] = {
    "no sections": b"garbage",
    "a section that is cut short": message(b"x" * 100)[:-1],
    "a section of an unknown kind": section(0x79, b"") + message(),
    "data that is a text": section(DATA, "text"),
    "annotations that are a list": section(MESSAGE_ANNOTATIONS, [1, 2]) + message(),
    "annotations with a key alone": b"\x00\x53\x72\xc1\x02\x01\x40" + message(),
    "application properties that are a text": section(APPLICATION_PROPERTIES, "x") + message(),
    "a descriptor alone": b"\x00\x53\x75",
}


async def test_a_malformed_message_ends_its_link_after_the_outcomes_of_the_others() -> None:
    for name, broken in BROKEN.items():
        for settled in (False, True):
            peer = publisher(make_broker())
            peer.put(transfer(message(), 0), transfer(broken, 1, settled=settled), transfer(message(), 2))
            *outcomes, (code, fields, _) = peer.frames()
            assert [one[1][1:3] for one in outcomes] == ([[0, 0]] if settled else [[0, 0], [1, 1]]), name
            assert (code, fields[2].value[0]) == (DETACH, "amqp:decode-error"), name
            assert not peer.is_closed
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
        assert not peer.is_closed, name


# settle modes


async def test_a_sender_gets_its_own_settle_modes_or_the_defaults_and_a_reader_always_settled_deliveries() -> None:
    zero, one, two = UByte(0), UByte(1), UByte(2)
    for asked, answered in (
        ((zero, zero), [0, 0]),
        ((one, zero), [1, 0]),
        ((two, one), [2, 1]),
        ((None, None), [2, 0]),
    ):
        for address in ("telemetry", "$management", "nowhere"):
            peer = Peer(make_broker()).begin()
            peer.put(attach_sender(address, modes=asked))
            assert [fields[3:5] for fields in peer.fields(ATTACH)] == [answered], asked
    for mode in (zero, one, two, None):
        peer = Peer(make_broker()).begin()
        peer.send(ATTACH, "r", UInt(1), True, mode, zero, Described(ULong(SOURCE), [PARTITION]))
        assert [fields[3:5] for fields in peer.fields(ATTACH)] == [[1, 0]], mode


async def test_an_unknown_settle_mode_ends_the_connection() -> None:
    for asked in ((UByte(3), None), (None, UByte(2))):
        peer = Peer(make_broker()).begin()
        peer.put(attach_sender("telemetry", modes=asked))
        assert peer.refusals(CLOSE) == ["amqp:decode-error"], asked


# turns: no link keeps a different one waiting for more than one turn of each


async def test_a_reader_with_credit_for_all_gets_a_bounded_piece_in_each_turn_and_its_drain_after_the_last() -> None:
    broker = make_broker()
    publisher(broker, *[BODY] * 200)
    peer, small = reader(broker), reader(broker)
    peer.grant(250, drain=True)
    small.grant(1)
    assert small.codes() == [TRANSFER], "it is served between the turns of the large one"
    codes = turn = peer.codes()
    while FLOW not in turn:
        assert len(turn) * len(BODY) <= TURN * (CHUNK + len(BODY))
        await asyncio.sleep(0)
        turn = peer.codes()
        codes = codes + turn
    assert codes == [TRANSFER] * 200 + [FLOW]


async def test_a_flood_of_two_publishers_leaves_a_reader_its_turn_after_each_of_theirs() -> None:
    broker = make_broker()
    peer = reader(broker)
    peer.grant(1_000)
    floods = [publisher(broker), publisher(broker)]
    for turn in range(20):
        for flood in floods:
            flood.put(*(transfer(message(BODY), 8 * turn + number) for number in range(8)))
        await asyncio.sleep(0)
        assert peer.codes().count(TRANSFER) == 16, turn


async def test_a_link_that_ended_between_its_turns_sends_nothing_more() -> None:
    broker = make_broker()
    publisher(broker, *[BODY] * 200)
    peer = reader(broker)
    peer.grant(200)
    peer.connection.sessions[0].detach(peer.connection.sessions[0].links[1])
    peer.frames()
    for _ in range(5):
        await asyncio.sleep(0)
    assert peer.codes() == []


async def test_a_reader_that_stops_reading_gets_nothing_more_and_then_the_rest_in_pieces() -> None:
    broker = make_broker()
    publisher(broker, *[BODY] * 60)
    peer = reader(broker)
    peer.connection.pause_writing()
    peer.grant(60)
    assert TRANSFER not in peer.codes()
    peer.connection.resume_writing()
    for _ in range(3):
        await asyncio.sleep(0)
    assert peer.codes().count(TRANSFER) == 60
    assert peer.transport.largest_write <= CHUNK + 2 * len(BODY)
