from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from core.audit.faults import PartitionLedger
from core.errors import HubUnreachable, StopReason
from core.ledger import watch
from core.ledger.store import BurnDowns, ForgottenKind, Ledger, OpenCount, OpenGap, StreamStop
from core.ledger.totals import Books, LetterBooks, Minute, PartitionBooks, lag_of, lag_time, rates
from core.ledger.watch import ABSENT_WITHIN, READ_FROM, STOPPED_AFTER, Pipeline, Watching, find_standing, observe
from core.model.commits import PartitionStop
from core.model.events import Incarnation, PartitionId, SequenceNumber
from core.model.letters import LetterKey
from tests.fakes.builders import EPOCH, STREAM, event, partition
from tests.fakes.memory_hub import MemoryHub

NOW = EPOCH + timedelta(days=1)
DAY = timedelta(days=1)
P0, P1 = PartitionId("0"), PartitionId("1")
FIRST, LAST = SequenceNumber(10), SequenceNumber(19)
EVEN = PartitionBooks(4, 4, 2, 0, 0, P0, LAST, EPOCH, 3, FIRST, 3, 2)


def test_books_that_are_even_balance_and_count_the_letters_of_replays_beside_those_of_the_ledger() -> None:
    books = Books((EVEN, EVEN), LetterBooks({"waiting": 1}, 4, settled=3))
    assert (books.numbers, books.accounted, books.balanced) == (20, 20, True)
    replayed = [Books((EVEN,), LetterBooks({"waiting": 5}, 2, count)).balanced for count in (3, 4, 2)]
    assert replayed == [True, False, False]
    late = replace(EVEN, anchor=SequenceNumber(8))
    assert (late.numbers, late.balanced, replace(EVEN, anchor=FIRST).balanced) == (12, False, True)


OFF = (("checkpoint", 20), ("checkpoint", 18), ("written", 5), ("absent", 1), ("first", 11), ("is_recorded", False))


@pytest.mark.parametrize(("name", "value"), OFF)
def test_anything_that_is_off_shows(name: str, value: int) -> None:
    assert not replace(EVEN, **{name: value}).balanced  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("hub_end", "lag", "waited"), [(None, None, None), (-1, 0, 0), (19, 0, 0), (25, 6, 90), (5, 0, 0)]
)
def test_lag_is_what_the_hub_has_beyond_the_checkpoint_and_waits_at_most_since_its_event(
    hub_end: int | None, lag: int | None, waited: float | None
) -> None:
    assert lag_of(EVEN, hub_end) == lag
    found = lag_time(EVEN, lag, EPOCH + timedelta(seconds=90))
    assert found == (None if waited is None else timedelta(seconds=waited))
    assert lag_time(EVEN, 3, EPOCH - timedelta(seconds=5)) == timedelta()
    assert (lag_of(None, 4), lag_of(None, -1)) == (5, 0), "without a commit: all that the hub ever had"
    assert (lag_time(None, 5, EPOCH), lag_time(None, 0, EPOCH)) == (None, timedelta())


COUNTS: Any = {"written": 90, "filtered": 4, "dead_lettered": 3, "held": 2, "absent": 1, "letters": 5}
ENDS: Any = {"checkpoint": SequenceNumber(109), "first": FIRST, "last": SequenceNumber(109)}
LEDGER = PartitionLedger(partition=partition(), commits=4, holes=0, **ENDS, **COUNTS)


@pytest.mark.parametrize("name", ["holes", "checkpoint", "last", "first", *COUNTS])
@pytest.mark.parametrize("by", [1, -1])
def test_a_ledger_that_does_not_account_for_every_number_is_not_balanced(name: str, by: int) -> None:
    changed: dict[str, Any] = {name: getattr(LEDGER, name) + by}
    assert (LEDGER.accounted, LEDGER.balanced) == (100, True)
    assert not replace(LEDGER, **changed).balanced


def test_the_rate_is_the_numbers_accounted_for_in_the_seconds_between_two_looks_and_never_below_zero() -> None:
    def looks(*given: tuple[float, int]) -> list[Minute]:
        return [Minute(EPOCH + timedelta(seconds=seconds), 0, accounted) for seconds, accounted in given]

    assert rates(looks((0, 100), (60, 160), (120.5, 160), (720.5, 6_160))) == [None, 1.0, 0.0, 10.0]
    assert rates(looks((0, 100), (60, 90), (60, 95))) == [None, 0.0, 5.0]


CALM = LetterBooks({}, 3, settled=3)
LONG = STOPPED_AFTER + timedelta(seconds=1)
HOUR = timedelta(hours=1)


def books(checkpoint: int, ago: timedelta) -> PartitionBooks:
    at, first = NOW - ago, SequenceNumber(0)
    return PartitionBooks(checkpoint + 1, 0, 0, 0, 0, P0, SequenceNumber(checkpoint), at, 1, first, 1, 0)


@dataclass
class FakeLedger(Ledger):
    """A ledger with these books."""

    books: tuple[PartitionBooks, ...] = ()
    moved: dict[PartitionId, datetime] = field(default_factory=dict)
    anchors: dict[PartitionId, SequenceNumber] = field(default_factory=dict)
    absent: dict[datetime, int] = field(default_factory=dict)
    held_up: int = 0
    stops: tuple[StreamStop, ...] = ()
    opened_at: datetime | None = NOW - timedelta(days=9)
    letters: LetterBooks = CALM

    def count_letters(self) -> LetterBooks:
        return self.letters

    def read_incarnation(self) -> Incarnation | None:
        return None if self.opened_at is None else Incarnation(1, 1, self.opened_at, None)

    def read_books(self) -> tuple[PartitionBooks, ...]:
        return self.books

    def find_anchor(self, partition_id: PartitionId) -> SequenceNumber | None:
        return self.anchors.get(partition_id)

    def read_last_batches(self) -> Mapping[PartitionId, datetime]:
        return self.moved

    def read_stops(self) -> tuple[StreamStop, ...]:
        return self.stops

    def count_absent(self, since: datetime) -> int:
        return sum(count for at, count in self.absent.items() if at >= since)

    def count_tasks_held_up(self) -> int:
        return self.held_up


def hub_of(waits: timedelta) -> MemoryHub:
    return MemoryHub({"0": [event(number, at=NOW - waits) for number in range(15)]})


def watching(store: FakeLedger, hub: MemoryHub, letter_at: datetime | None = None, **own: Any) -> Watching:
    ends: Callable[[], Any] = lambda: {PartitionId(id): last for id, last in hub.last.items()}  # noqa: E731
    return Watching(STREAM, store, hub, lambda key: letter_at, ends, faults={P0: "StoreUnavailable"}, **own)


def sight(store: FakeLedger, hub: MemoryHub | None = None, **own: Any) -> watch.Observation:
    return observe(watching(store, hub or MemoryHub({"0": []}), **own), NOW)


def seen(store: FakeLedger, hub: MemoryHub | None = None, **own: Any) -> dict[str, Any]:
    return dict(sight(store, hub, **own).facts())


def test_where_all_is_accounted_for_nothing_waits_and_the_hub_is_not_asked() -> None:
    hub = hub_of(DAY)
    facts = seen(FakeLedger((books(14, DAY),)), hub)
    stream = {"action": "watch", "event_hub": "namespace/telemetry", "consumer_group": "hubledger"}
    unknown = {"letters_expiring_hours": -1.0, "loss_hours": -1.0}
    assert {name: fact for name, fact in facts.items() if fact} == {**stream, **unknown, "ledger_balanced": True}
    assert len(facts) == 19
    assert hub.asked == []


@pytest.mark.parametrize(
    ("ago", "waits", "lag", "is_asked"),
    [
        pytest.param(10 * HOUR, timedelta(seconds=2.5), 2.5, True, id="not the age of the checkpoint"),
        pytest.param(READ_FROM, timedelta(seconds=2), 2.0, True, id="it can be long, so the hub is read"),
        pytest.param(READ_FROM - timedelta(seconds=1), timedelta(seconds=1), 59.0, False, id="it cannot be long"),
        pytest.param(HOUR, timedelta(seconds=-5), 0.0, True, id="a clock that is ahead of ours"),
    ],
)
def test_lag_is_the_age_of_the_oldest_waiting(ago: timedelta, waits: timedelta, lag: float, is_asked: bool) -> None:
    hub = hub_of(waits)
    facts = seen(FakeLedger((books(9, ago),), {P0: NOW - ago}), hub)
    assert (facts["lag_seconds"], facts["partitions_stopped"], hub.asked != []) == (lag, 0, is_asked)


def test_the_longest_wait_of_all_partitions_counts() -> None:
    hub = hub_of(timedelta(minutes=3))
    hub.recreate("1")
    hub.publish("1", [event(0, at=NOW - timedelta(minutes=4))])
    assert seen(FakeLedger((books(9, HOUR),)), hub)["lag_seconds"] == 240.0
    hub.fails = lambda: True
    with pytest.raises(HubUnreachable):  # which fails the tick
        seen(FakeLedger((books(9, HOUR),)), hub)


@pytest.mark.parametrize(
    ("waits", "moved", "stopped"),
    [
        (LONG, LONG, 1),
        (LONG, STOPPED_AFTER, 1),
        (STOPPED_AFTER - timedelta(seconds=1), LONG, 0),  # its event has just come
        (LONG, timedelta(minutes=1), 0),  # behind, and on its way
    ],
)
def test_a_partition_has_stopped_when_events_wait_and_nothing_is_committed_for_long(
    waits: timedelta, moved: timedelta, stopped: int
) -> None:
    store = FakeLedger((books(9, HOUR),), {P0: NOW - moved})
    assert seen(store, hub_of(waits))["partitions_stopped"] == stopped
    assert find_standing(watching(store, hub_of(waits)), NOW) == ({P0: NOW - min(waits, moved)} if stopped else {})


def test_a_partition_whose_events_left_the_hub_while_they_waited_has_stopped() -> None:
    hub = hub_of(2 * DAY)
    hub.expire_before("0", 15)
    facts = seen(FakeLedger((books(9, 2 * DAY),), {P0: NOW - 2 * DAY}), hub)
    assert (facts["lag_seconds"], facts["partitions_stopped"], facts["standing"]) == (0.0, 1, "0 (StoreUnavailable)")


@pytest.mark.parametrize(
    ("anchor", "opened", "stopped"),
    [
        (None, STOPPED_AFTER, 1),
        (None, STOPPED_AFTER - timedelta(seconds=1), 0),
        (None, None, 0),
        (14, 9 * DAY, 1),
        (15, 9 * DAY, 0),
    ],
)
def test_a_partition_that_never_committed_waits_from_its_anchor_on_and_since_its_stream_was_opened(
    anchor: int | None, opened: timedelta | None, stopped: int
) -> None:
    store = FakeLedger(opened_at=None if opened is None else NOW - opened)
    if anchor is not None:
        store.anchors = {P0: SequenceNumber(anchor)}
    assert seen(store, hub_of(LONG))["partitions_stopped"] == stopped
    standing = find_standing(watching(store, hub_of(LONG)), NOW)
    assert standing == ({P0: NOW - min(opened, LONG)} if stopped and opened else {})


def test_the_minute_counts_the_events_after_the_checkpoints_and_none_before_an_anchor() -> None:
    hub = MemoryHub({id: [event(number, at=NOW) for number in range(15)] for id in ("0", "1", "2")} | {"3": []})
    anchors = {P1: SequenceNumber(12), PartitionId("2"): SequenceNumber(15)}
    minute = sight(FakeLedger((books(9, timedelta()),), anchors=anchors), hub).minute
    assert (minute.at, minute.lag, minute.accounted) == (NOW, 5 + 3, 10)
    assert sight(FakeLedger((books(20, timedelta()),)), hub_of(timedelta())).minute.lag == 0


def test_letters_stops_tasks_and_absent_numbers_are_counted_as_long_as_the_alert_on_silence_waits() -> None:
    reasons: list[tuple[PartitionId, StopReason]] = [(P0, "incarnation"), (P0, "outage"), (P1, "incarnation")]
    stops = tuple(StreamStop(id, 0, PartitionStop(reason, "why", 1, NOW)) for id, reason in reasons)
    oldest = LetterKey(NOW - HOUR, P0, SequenceNumber(3))
    store = FakeLedger(
        (books(14, timedelta()),),
        stops=stops,
        held_up=2,
        absent={NOW - ABSENT_WITHIN: 5, NOW - ABSENT_WITHIN - timedelta(seconds=1): 7},
        letters=LetterBooks({"waiting": 2, "exhausted": 1}, 7, settled=4, oldest=oldest),
    )
    facts = seen(store, hub_of(timedelta()), letter_at=NOW - 2 * HOUR)
    assert (facts["stops_recorded"], facts["partitions_stopped"], facts["tasks_held_up"]) == (3, 0, 2)
    assert (facts["letters_open"], facts["oldest_letter_seconds"], facts["absent_new"]) == (3, 7200.0, 5)


def test_the_aggregation_lags_by_the_age_of_the_oldest_commit_that_waits_or_of_the_first_stale_table() -> None:
    asked, stale = list[datetime](), dict[str, datetime]()

    def look(since: datetime) -> Pipeline:
        asked.append(since)
        return Pipeline(NOW - 2 * HOUR, 3, 2, stale)

    facts = seen(FakeLedger((books(14, DAY),)), hub_of(DAY), pipeline=look)
    assert (facts["aggregation_lag_seconds"], facts["aggregation_failures"]) == (7200.0, 3)
    assert (facts["aggregation_faults"], asked, facts["stale"]) == (2, [NOW - ABSENT_WITHIN], "")
    stale |= {"gold/home_activity": NOW - 3 * HOUR, "silver/sensor_reading (files)": NOW - HOUR}
    facts = seen(FakeLedger((books(14, DAY),)), hub_of(DAY), pipeline=look)
    named = [f"{table} since {at:%Y-%m-%dT%H:%M:%SZ}" for table, at in stale.items()]
    assert (facts["aggregation_lag_seconds"], facts["stale"]) == (10_800.0, ", ".join(named))


KEPT = OpenCount(P0, "kept", 1, NOW - timedelta(hours=22), SequenceNumber(9))
BARE, GONE = (
    OpenCount(P0, "unkept", 2, NOW - timedelta(hours=14), SequenceNumber(9)),
    OpenCount(P0, "gap", 1, None, SequenceNumber(9)),
)


@pytest.mark.parametrize(
    ("counts", "retention", "hours"),
    [
        ((KEPT,), DAY, (2.0, 24.0, 0)),  # a letter with a body is no loss
        ((KEPT, BARE, GONE), DAY, (2.0, 10.0, 3)),
        ((), DAY, (24.0, 24.0, 0)),
        ((), None, (-1.0, -1.0, 0)),
    ],
)
def test_the_hours_are_those_of_the_first_event(
    counts: tuple[OpenCount, ...], retention: timedelta | None, hours: tuple[float, float, int]
) -> None:
    found = watch.BurnDown(NOW, retention, counts)
    facts = seen(FakeLedger((books(14, timedelta()),)), hub_of(timedelta()), burn_down=lambda now: found)
    assert (facts["letters_expiring_hours"], facts["loss_hours"], facts["events_lost"]) == hours


def hours(count: float) -> datetime:
    return EPOCH + timedelta(hours=count)


@dataclass
class Open(BurnDowns):
    letters: dict[ForgottenKind, list[int]]
    gaps: tuple[OpenGap, ...] = ()

    def read_partition_ids(self) -> tuple[PartitionId, ...]:
        return (P0,)

    def count_open_letters(self, partition_id: PartitionId, beginning: SequenceNumber) -> tuple[OpenCount, ...]:
        found = []
        for kind, numbers in self.letters.items():
            held = [hours(one) for one in numbers if one >= beginning]
            found.append(OpenCount(partition_id, kind, len(numbers) - len(held), min(held, default=None), beginning))
        return tuple(found) if partition_id == P0 else ()

    def read_open_gaps(self) -> tuple[OpenGap, ...]:
        return self.gaps


def gap(first: int, after: float, partition_id: PartitionId = P0) -> OpenGap:
    return OpenGap(partition_id, SequenceNumber(first), hours(after))


@pytest.mark.parametrize(
    ("letters", "gaps", "beginning", "now", "retention", "facts"),
    [
        pytest.param({"kept": [10, 12, 30]}, (), 0, 32, DAY, (2.0, 24.0, 0), id="as old as the retention"),
        pytest.param({"unkept": [3, 9, 10]}, (), 10, 11, 90 * DAY, (2159, 2159, 2), id="before the hub's beginning"),
        pytest.param({"unkept": [3]}, (), 0, 60, DAY, (0.0, 0.0, 0), id="held longer: lost now, not in the past"),
        pytest.param({"unkept": [3, 20]}, (), 10, 99, None, (-1.0, -1.0, 1), id="no retention, no forecast"),
        pytest.param(
            {"kept": [5], "unkept": [8, 9]}, (gap(20, 19),), 0, 24, DAY, (5.0, 8.0, 0), id="with a body: none"
        ),
        pytest.param({"kept": [5]}, (), 10, 24, DAY, (24.0, 24.0, 0), id="gone, but with a body"),
        pytest.param({}, (gap(20, 2), gap(25, 2)), 0, 40, DAY, (24.0, 4.0, 0), id="a gap is as old as its first event"),
        pytest.param({}, (gap(5, 2), gap(25, 2)), 10, 30, DAY, (24.0, 19.0, 1), id="a gap is gone, the next counts"),
        pytest.param({}, (gap(5, 2),), 10, 30, DAY, (24.0, 24.0, 1), id="a gap is gone"),
        pytest.param({}, (gap(0, 1, P1),), 0, 2, DAY, (24.0, 23.0, 0), id="a gap without a checkpoint"),
        pytest.param({"unkept": [3]}, (gap(20, 19),), None, 20, DAY, (7.0, 7.0, 0), id="no answer: nothing is gone"),
        pytest.param({}, (gap(20, 19),), None, 20, DAY, (24.0, 23.0, 0), id="no answer: a gap is as old as before it"),
    ],
)
def test_the_burn_down_tells_when_letters_and_gaps_lose_their_events_and_what_is_lost(
    letters: dict[ForgottenKind, list[int]],
    gaps: tuple[OpenGap, ...],
    beginning: int | None,
    now: float,
    retention: timedelta | None,
    facts: tuple[float, float, int],
) -> None:
    hub = MemoryHub({"0": [event(number, at=hours(number)) for number in range(40)], "1": []})
    hub.expire_before("0", beginning or 0)
    hub.fails = lambda: beginning is None
    found = watch.read_burn_down(STREAM, Open(letters, gaps), hub, retention, hours(now))
    assert (found.letters_expiring_hours, found.loss_hours, found.events_lost) == facts
    assert {one.before for one in found.lost} == ({beginning} if facts[2] else set()), "where the hub begins"
