from collections.abc import Generator, Iterable
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import RequestRefused, StreamIncarnationChanged
from core.model.commits import Checkpoint, PartitionState
from core.model.events import BATCH_EVENTS, Event, PartitionId, SequenceNumber, Span, joined, span
from core.model.ports import Place
from core.model.rows import ReferenceKey, References, Row
from core.model.transforms import Transform
from core.replay import pieces as replay_pieces
from core.replay.pieces import PartitionRange, Piece, PieceReader, ReplayCommit, StandingState, WrittenState
from core.replay.plan import ReplayReferences, ReplayTrial, plan_replay
from core.replay.request import ReplayOrder, ranges_of
from core.settle.isolate import Isolation
from examples.home_security.transform import Home
from tests.fakes.builders import EPOCH, STREAM, event, events, home, ids, partition, stamps
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.plain_transform import PLAIN
from tests.fakes.replaying import order
from tests.fakes.store import MemoryStore

STATE = PartitionState(partition(), 1, None)


class Letters(MemoryStore):
    """A store that holds these letters and nothing else."""

    def __init__(self, kept: list[Event]) -> None:
        super().__init__()
        self.kept = kept

    def read_kept_events(self, state: PartitionState, span: Span, most: int) -> tuple[Event, ...]:
        return tuple(one for one in self.kept if span.first <= one.sequence_number <= span.last)[:most]


def pieces_of(
    hub: list[Event], letters: list[Event], whole: Span, most: int = BATCH_EVENTS, keys: frozenset[str] = frozenset()
) -> list[Piece]:
    reading = MemoryHub({"0": hub}).read_range(STATE.partition, whole.first, whole.last, EPOCH + timedelta(days=1))
    reader, pieces, following = (
        PieceReader(Letters(letters).read_kept_events, STATE, reading, most, keys),
        [],
        whole.first,
    )
    while following <= whole.last:
        pieces.append(reader.next_piece(Span(following, whole.last)))
        following = SequenceNumber(pieces[-1].span.last + 1)
    reader.close()
    return pieces


def test_where_a_letter_kept_the_event_it_is_taken_from_the_letter() -> None:
    (piece,) = pieces_of([event(1, "of the hub"), event(2, "of the hub")], [event(2, "of the letter")], span(1, 2))
    assert [one.body for one in piece.events] == [b"of the hub", b"of the letter"]


def test_no_more_events_of_the_hub_are_held_than_a_piece_has() -> None:
    taken: list[Event] = []

    def reading() -> Generator[Event, None, None]:
        for one in events(0, 20):
            if one.sequence_number % 2 == 0:
                taken.append(one)
                yield one

    reader = PieceReader(Letters([event(number) for number in range(4)]).read_kept_events, STATE, reading(), 4)
    assert (reader.next_piece(span(0, 20)).span, len(taken)) == (span(0, 3), 4)
    assert len(reader.next_piece(span(4, 20)).events) == 4
    assert len(taken) == 6, "two were held, and two more were taken"


@pytest.mark.parametrize(("events", "border"), [(1, 3), (2, 49), (3, 50), (4, 97)])
def test_a_piece_that_is_cut_is_whole(events: int, border: int) -> None:
    piece = Piece(
        span(0, 99),
        tuple(event(number) for number in (3, 4, 50, 51, 98)),
        (span(0, 2), span(5, 49), span(52, 97), span(99, 99)),
    )
    lower, upper = piece.cut(events)
    assert upper is not None
    assert (lower.span, upper.span) == (span(0, border), span(border + 1, 99))
    assert (len(lower.events), lower.events + upper.events) == (events, piece.events)
    assert joined(lower.gone, upper.gone, 9) == piece.gone
    empty = Piece(span(0, 99), ())
    assert (piece.cut(5), empty.cut(0)) == ((piece, None), (empty, None))


def test_ranges_that_touch_are_joined_and_too_many_are_cut() -> None:
    assert joined((span(0, 4),), (span(5, 9), span(11, 12)), 9) == (span(0, 9), span(11, 12))
    many = tuple(span(3 * number, 3 * number + 1) for number in range(1_500))
    assert joined((), many, 1_000) == many[:1_000]


def test_a_piece_by_key_goes_on_until_it_has_its_events_and_leaves_the_others_alone() -> None:
    hub = [event(number, key="ab"[number % 3 == 0]) for number in range(100) if number not in (50, 51)]
    pieces = pieces_of(hub, [], span(0, 99), 5, keys=frozenset("b"))
    ends = [14, 29, 44, 61, 76, 91, 99]
    assert [one.span for one in pieces] == [span(a + 1, b) for a, b in pairwise([-1, *ends])]
    assert [one.sequence_number for one in pieces[3].events] == [45, 48, 54, 57, 60]
    assert [one.gone for one in pieces if one.gone] == [(span(50, 51),)]
    assert pieces[3].left_alone == 12


def test_a_piece_by_key_ends_when_it_is_late_even_with_no_event() -> None:
    hub = MemoryHub({"0": events(0, 99)}).read_range(STATE.partition, SequenceNumber(0), SequenceNumber(99), EPOCH)
    reader, late = PieceReader(Letters([]).read_kept_events, STATE, hub, 5, {"nobody"}), iter([False, False, True])
    piece = reader.next_piece(span(0, 99), lambda: next(late))
    assert (piece.span, piece.events, piece.gone, piece.left_alone) == (span(0, 14), (), (), 15)
    assert reader.next_piece(span(15, 99), lambda: True).span == span(15, 19)


NUMBERS = st.sets(st.integers(0, 40), max_size=30)
KEYS = ["a", "A", "a ", "ä", "😀"]


@given(NUMBERS, NUMBERS, st.integers(0, 20), st.integers(20, 45), st.integers(1, 6), st.sets(st.sampled_from(KEYS)))
def test_every_number_of_a_range_is_an_event_of_the_keys_or_of_others_or_gone_and_none_is_two(
    in_hub: set[int], in_letters: set[int], first: int, last: int, most: int, keys: set[str]
) -> None:
    hub, letters = ([event(n, key=KEYS[n % 7 % 5]) for n in sorted(numbers)] for numbers in (in_hub, in_letters))
    pieces = pieces_of(hub, letters, span(first, last), most, frozenset(keys))
    found = [one.sequence_number for piece in pieces for one in piece.events]
    gone = [n for piece in pieces for one in piece.gone for n in range(one.first, one.last + 1)]
    everywhere = range(first, last + 1)
    wanted = keys or set(KEYS)
    assert found == [n for n in everywhere if n in in_hub | in_letters and KEYS[n % 7 % 5] in wanted]
    assert gone == [n for n in everywhere if n not in in_hub | in_letters]
    assert [n for piece in pieces for n in range(piece.span.first, piece.span.last + 1)] == list(everywhere)
    assert all(len(piece.events) <= most for piece in pieces)
    if keys:
        assert all(len(piece.events) == most for piece in pieces[:-1])


def test_an_event_that_was_enqueued_after_the_checkpoint_is_of_another_hub() -> None:
    checkpoint = Checkpoint(SequenceNumber(99), "99", event(99).enqueued_at, 7, next(iter(ids())))
    hub = MemoryHub({"0": [event(5), event(6, at=event(100).enqueued_at)]})
    reading = hub.read_range(STATE.partition, SequenceNumber(5), SequenceNumber(6), EPOCH + timedelta(days=1))
    reader = PieceReader(Letters([]).read_kept_events, replace(STATE, checkpoint=checkpoint), reading)
    with pytest.raises(StreamIncarnationChanged):
        reader.next_piece(span(5, 6))


JOB = next(iter(ids()))
CHECKPOINT = Checkpoint(SequenceNumber(99), "99", event(99).enqueued_at, 7, JOB)
STATE = PartitionState(partition(), 1, CHECKPOINT)
KEY = ReferenceKey(Home, ("h",))
OLD, NEW = home("h", armed=False), home("h", armed=True)


def plan(
    *given: Event,
    known: ReplayReferences | None = None,
    refused: dict[SequenceNumber, str] | None = None,
    transform: Transform = PLAIN,
) -> ReplayCommit:
    span = Span(given[0].sequence_number, given[-1].sequence_number)
    progress = replay_pieces.PartitionProgress(PartitionRange(STATE.partition.partition_id, span), span.first)
    trial = ReplayTrial(JOB, STATE, Isolation(refused=refused or {}).around(transform))
    return plan_replay(Piece(span, given), progress, known or ReplayReferences({}, {}), trial, stamps())


def seen(commit: ReplayCommit) -> list[str]:
    return [
        row.sensor_id for placed in commit.settled.rows.values() for _, _, row in placed if hasattr(row, "sensor_id")
    ]


@pytest.mark.parametrize(
    ("stands", "carried", "piece", "found"),
    [
        pytest.param(3, None, [], "sensorTrue", id="the state that stood before it"),
        pytest.param(50, None, [event(5, "home h 0")], "sensorFalse", id="what an earlier event of its piece wrote"),
        pytest.param(50, 5, [], "sensorFalse", id="what an earlier piece carried along"),
        pytest.param(6, 5, [], "sensorTrue", id="what was written between the carried state and the event"),
        pytest.param(50, None, [], "sensorTrue", id="what stands now, as a retry does, without a state before it"),
        pytest.param(None, None, [], "sensorTrue", id="what a different partition wrote"),
    ],
)
def test_an_event_sees_the_last_state(stands: int | None, carried: int | None, piece: list[Event], found: str) -> None:
    known = ReplayReferences(
        {KEY: StandingState(NEW, None if stands is None else SequenceNumber(stands))},
        {} if carried is None else {KEY: WrittenState(SequenceNumber(carried), OLD)},
    )
    assert seen(plan(*piece, event(7, "look h"), known=known)) == [found]
    (letter,) = plan(event(7, "look h")).settled.letters  # without any state
    assert letter.error_class == "reference"


def test_the_states_that_a_piece_wrote_last_are_carried_along() -> None:
    done = plan(event(5, "home h 0"), event(6, "home h 1"), event(7, "home g 1"))
    assert done.carried == {
        KEY: WrittenState(SequenceNumber(6), NEW),
        ReferenceKey(Home, ("g",)): WrittenState(SequenceNumber(7), home("g", armed=True)),
    }
    assert plan(event(5, "home h 0"), transform=replace(PLAIN, references_of=None)).carried == {}  # it looks nothing up


def test_rows_are_taken_out_of_every_table_of_the_transform_and_of_what_it_wrote_besides() -> None:
    def others(event: Event, references: References) -> Iterable[Row]:
        return [home("x")]

    done = plan(event(5, "x"), transform=replace(PLAIN, rows_of=others, row_classes=PLAIN.row_classes[1:]))
    assert done.row_classes == (*PLAIN.row_classes[1:], Home)


HUB = MemoryHub({"0": events(0, 99), "1": events(0, 49), "2": []})
HUB.expire_before("1", 20)


def replayable(id: str, first: int, checkpoint: int) -> PartitionRange:
    return PartitionRange(PartitionId(id), span(first, checkpoint))


REACH = (STREAM, [replayable("0", 10, 90), replayable("1", 0, 49)], HUB, 1_000)


def numbers_of(asked: ReplayOrder) -> dict[str, tuple[int, int]]:
    return {one.partition_id: (one.span.first, one.span.last) for one in ranges_of(asked, *REACH)[0]}


def at(second: int) -> Place:
    return EPOCH + timedelta(seconds=second)


def test_without_a_range_it_is_all_that_is_committed_and_nothing_is_asked_of_the_hub() -> None:
    HUB.asked.clear()
    assert numbers_of(order()) == {"0": (10, 90), "1": (0, 49)}
    assert numbers_of(order(["0", "0"])) == {"0": (10, 90)}
    assert HUB.asked == []


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (20, 30, (20, 30)),
        (20, 20, (20, 20)),
        (None, 30, (10, 30)),
        (20, None, (20, 90)),
        ("1280", "1920", (20, 30)),  # offsets: 64 an event
        ("1281", "1921", (21, 30)),  # between two events
        (at(20), at(30), (20, 29)),  # ends before
        (at(20), at(10**6), (20, 90)),
        (20, at(30), (20, 29)),
        (at(20), 30, (20, 30)),
    ],
)
def test_a_range_is_read_by_number_by_offset_and_by_time(start: Place, end: Place, expected: tuple[int, int]) -> None:
    assert numbers_of(order(["0"], start, end)) == {"0": expected}


OUTSIDE = "the ledger begins at 10; events after the checkpoint at 90 are left out"
LOST = "the hub begins at 20: the time of earlier events is lost, so only a number can select them"


@pytest.mark.parametrize(
    ("asked", "expected", "note"),
    [
        (order(["0"], 0, 95), (10, 90), OUTSIDE),
        (order(["0"], 10, 90), (10, 90), None),
        (order(["1"], at(5)), (20, 49), LOST),
        (order(["1"], at(25)), (25, 49), None),
    ],
)
def test_what_lies_before_the_ledger_or_after_the_checkpoint_is_left_out_and_said(
    asked: ReplayOrder, expected: tuple[int, int], note: str | None
) -> None:
    ((one,), left_out) = ranges_of(asked, *REACH)
    assert (one.span.ends, one.note, left_out) == (expected, note, ())
    ranges, left_out = ranges_of(order(None, 60), *REACH)  # partition 1 has no event of this range
    why = "partition 1 is committed up to 49, and later events cannot be replayed yet"
    assert ([one.partition_id for one in ranges], [one.why for one in left_out]) == (["0"], [why])


REFUSED = {
    "backwards by number": (order(None, 30, 20), "to", "backwards"),
    "backwards by time": (order(None, at(30), at(20)), "to", "backwards"),
    "no time at all": (order(None, at(30), at(30)), "to", "backwards"),
    "10^12 events": (order(None, 0, 10**12), "to", "1000000000001 events"),
    "one event too many": (order(["0"], 0, 1_000), "to", "REPLAY_MOST_EVENTS allows 1000"),
    "a partition that is not committed": (order(["0", "2"]), "partitions", "no event of partition 2 is committed"),
    "a missing partition": (order(["99"]), "partitions", "no event of partition 99"),
    "after every checkpoint": (order(None, 91), "from", "committed up to 90"),
    "after the last event by time": (order(["0"], at(10**6)), "from", "committed up to 90"),
    "an offset that is none": (order(["0"], "abc"), "from.offset", "the hub does not accept the offset abc"),
    "an offset after the end": (order(["0"], None, "999999"), "to.offset", "the hub does not accept the offset 999999"),
    "an offset of all partitions": (order(None, "64"), "from", "belongs to one partition"),
    "an offset of two partitions": (order(["0", "1"], None, "64"), "to", "belongs to one partition"),
    "between two events": (order(["0"], "1281", "1283"), "from", "partition 0 has no event in the range"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_replayed_is_refused_by_the_field_that_says_it(case: str) -> None:
    asked, field, said = REFUSED[case]
    with pytest.raises(RequestRefused) as refusal:
        ranges_of(asked, *REACH)
    assert refusal.value.field == field
    assert said in refusal.value.why


def test_more_events_than_are_allowed_and_a_stream_without_a_commit_are_refused() -> None:
    with pytest.raises(RequestRefused, match="131 events, but REPLAY_MOST_EVENTS allows 130"):
        ranges_of(order(), *REACH[:3], 130)
    with pytest.raises(RequestRefused, match="no event is committed yet"):
        ranges_of(order(), STREAM, (), HUB, 1_000)
