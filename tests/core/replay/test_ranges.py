"""core/replay/request.py: which numbers a request means, what is left out of it and why, and what is refused."""

from datetime import timedelta

import pytest

from core.errors import RequestRefused
from core.model.events import PartitionId, span
from core.model.ports import Place
from core.replay.pieces import PartitionRange
from core.replay.request import ReplayOrder, ranges_of
from tests.fakes.builders import EPOCH, STREAM, events
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.replaying import order

HUB = MemoryHub({"0": events(0, 99), "1": events(0, 49), "2": []})
HUB.expire_before("1", 20)


def replayable(id: str, first: int, checkpoint: int) -> PartitionRange:
    return PartitionRange(PartitionId(id), span(first, checkpoint))


REACH = (STREAM, [replayable("0", 10, 90), replayable("1", 0, 49)], HUB, 1_000)


def spans(asked: ReplayOrder) -> dict[str, tuple[int, int]]:
    return {one.partition_id: (one.span.first, one.span.last) for one in ranges_of(asked, *REACH)[0]}


def at(second: int) -> Place:
    return EPOCH + timedelta(seconds=second)


def test_without_a_range_it_is_all_that_is_committed_and_nothing_is_asked_of_the_hub() -> None:
    HUB.asked.clear()
    assert spans(order()) == {"0": (10, 90), "1": (0, 49)}
    assert spans(order(["0", "0"])) == {"0": (10, 90)}
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
    assert spans(order(["0"], start, end)) == {"0": expected}


def note_of(asked: ReplayOrder) -> str | None:
    ((one,), _) = ranges_of(asked, *REACH)
    assert isinstance(one, PartitionRange)
    return one.note


def test_what_lies_before_the_ledger_or_after_the_checkpoint_is_left_out_and_said() -> None:
    assert spans(order(["0"], 0, 95)) == {"0": (10, 90)}
    assert note_of(order(["0"], 0, 95)) == "the ledger begins at 10; events after the checkpoint at 90 are left out"
    assert note_of(order(["0"], 10, 90)) is None


def test_a_time_before_the_hub_begins_is_said_for_what_was_there_is_gone() -> None:
    assert spans(order(["1"], at(5))) == {"1": (20, 49)}
    assert note_of(order(["1"], at(5))) == (
        "the hub begins at 20: the time of earlier events is lost, so only a number can select them"
    )
    assert note_of(order(["1"], at(25))) is None


def test_a_partition_without_an_event_in_the_range_is_left_out_and_said() -> None:
    ranges, left_out = ranges_of(order(None, 60), *REACH)
    assert [one.partition_id for one in ranges] == ["0"]
    assert [(one.partition_id, one.why) for one in left_out] == [
        ("1", "partition 1 is committed up to 49, and later events cannot be replayed yet")
    ]


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
