"""core/ledger/watch.py: the facts of one moment for the alerts, and the reads of the hub for them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from core.errors import HubUnreachable
from core.ledger.store import Ledger, OpenCount
from core.ledger.totals import LetterBooks, PartitionBooks
from core.ledger.watch import (
    ABSENT_WITHIN,
    READ_FROM,
    STOPPED_AFTER,
    BurnDown,
    Observation,
    Pipeline,
    Watching,
    find_standing,
    observe,
)
from core.model.commits import PartitionStop
from core.model.events import Incarnation, PartitionId, SequenceNumber
from core.model.letters import LetterKey
from tests.fakes.builders import EPOCH, STREAM, event
from tests.fakes.memory_hub import MemoryHub

NOW = EPOCH + timedelta(days=1)
P0, P1 = PartitionId("0"), PartitionId("1")
CALM = LetterBooks({}, 3, settled=3)
LONG = STOPPED_AFTER + timedelta(seconds=1)


def books(checkpoint: int, ago: timedelta) -> PartitionBooks:
    """Balanced books of events 0 up to a checkpoint, whose event was enqueued so long ago."""
    return PartitionBooks(
        checkpoint + 1, 0, 0, 0, 0, P0, SequenceNumber(checkpoint), NOW - ago, 1, SequenceNumber(0), 1, 0
    )


@dataclass
class Books(Ledger):
    """A ledger with these books."""

    books: tuple[PartitionBooks, ...] = ()
    moved: dict[PartitionId, datetime] = field(default_factory=dict)
    anchors: dict[PartitionId, SequenceNumber] = field(default_factory=dict)
    absent: dict[datetime, int] = field(default_factory=dict)
    held_up: int = 0
    stops: dict[PartitionId, tuple[PartitionStop, ...]] = field(default_factory=dict)
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

    def read_stops(self) -> Mapping[PartitionId, tuple[PartitionStop, ...]]:
        return self.stops

    def count_absent(self, since: datetime) -> int:
        return sum(count for at, count in self.absent.items() if at >= since)

    def count_tasks_held_up(self) -> int:
        return self.held_up


def hub_of(waits: timedelta) -> MemoryHub:
    """A hub whose partition 0 has 15 events, of which each is so old."""
    return MemoryHub({"0": [event(number, at=NOW - waits) for number in range(15)]})


def watching(store: Books, hub: MemoryHub, letters: LetterBooks = CALM, letter_at: datetime | None = None) -> Watching:
    return Watching(
        STREAM,
        replace(store, letters=letters),
        hub,
        lambda key: letter_at,
        lambda: {PartitionId(id): last for id, last in hub.last.items()},
        faults={P0: "StoreUnavailable"},
    )


def sight(store: Books, hub: MemoryHub, letters: LetterBooks = CALM, letter_at: datetime | None = None) -> Observation:
    return observe(watching(store, hub, letters, letter_at), NOW)


def seen(store: Books, hub: MemoryHub, letters: LetterBooks = CALM, letter_at: datetime | None = None) -> dict:
    return sight(store, hub, letters, letter_at).facts()


def test_where_all_is_accounted_for_nothing_waits_and_the_hub_is_not_asked() -> None:
    hub = hub_of(timedelta(days=1))
    assert seen(Books((books(14, timedelta(days=1)),)), hub) == {
        "action": "watch",
        "event_hub": "namespace/telemetry",
        "consumer_group": "hubledger",
        "ledger_balanced": True,
        "lag_seconds": 0.0,
        "partitions_stopped": 0,
        "standing": "",
        "stops_recorded": 0,
        "tasks_held_up": 0,
        "letters_open": 0,
        "oldest_letter_seconds": 0.0,
        "letters_expiring_hours": -1.0,
        "loss_hours": -1.0,
        "events_lost": 0,
        "absent_new": 0,
        "aggregation_lag_seconds": 0.0,
        "aggregation_failures": 0,
        "aggregation_faults": 0,
    }
    assert hub.asked == []


def test_lag_is_the_age_of_the_oldest_event_that_waits_and_not_the_age_of_the_checkpoint() -> None:
    store = Books((books(9, timedelta(hours=10)),), {P0: NOW - timedelta(hours=10)})
    facts = seen(store, hub_of(timedelta(seconds=2.5)))
    assert (facts["lag_seconds"], facts["partitions_stopped"]) == (2.5, 0)


def test_a_lag_that_can_be_long_is_read_from_the_hub() -> None:
    hub = hub_of(timedelta(seconds=2))
    assert seen(Books((books(9, READ_FROM),)), hub)["lag_seconds"] == 2.0
    assert hub.asked != []


def test_a_lag_that_cannot_be_long_is_the_age_of_the_checkpoint_without_a_read_of_the_hub() -> None:
    hub = hub_of(timedelta(seconds=1))
    facts = seen(Books((books(9, READ_FROM - timedelta(seconds=1)),)), hub)
    assert (facts["lag_seconds"], hub.asked) == (59.0, [])


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
    store = Books((books(9, timedelta(hours=1)),), {P0: NOW - moved})
    assert seen(store, hub_of(waits))["partitions_stopped"] == stopped
    assert find_standing(watching(store, hub_of(waits)), NOW) == ({P0: NOW - min(waits, moved)} if stopped else {})


def test_a_partition_whose_events_left_the_hub_while_they_waited_has_stopped() -> None:
    hub = hub_of(timedelta(days=2))
    hub.expire_before("0", 15)
    facts = seen(Books((books(9, timedelta(days=2)),), {P0: NOW - timedelta(days=2)}), hub)
    assert (facts["lag_seconds"], facts["partitions_stopped"], facts["standing"]) == (0.0, 1, "0 (StoreUnavailable)")


def test_a_partition_that_never_committed_waits_from_its_anchor_on() -> None:
    hub = hub_of(LONG)
    assert seen(Books(), hub)["partitions_stopped"] == 1
    assert seen(Books(anchors={P0: SequenceNumber(14)}), hub)["partitions_stopped"] == 1
    assert seen(Books(anchors={P0: SequenceNumber(15)}), hub)["partitions_stopped"] == 0


@pytest.mark.parametrize(("opened", "stopped"), [(STOPPED_AFTER, 1), (STOPPED_AFTER - timedelta(seconds=1), 0)])
def test_a_partition_that_never_committed_has_the_same_time_since_its_stream_was_opened(
    opened: timedelta, stopped: int
) -> None:
    store = Books(opened_at=NOW - opened)
    assert seen(store, hub_of(LONG))["partitions_stopped"] == stopped
    assert find_standing(watching(store, hub_of(LONG)), NOW) == ({P0: NOW - opened} if stopped else {})
    assert find_standing(watching(Books(opened_at=None), hub_of(LONG)), NOW) == {}


def test_the_minute_counts_the_events_after_the_checkpoints_and_none_before_an_anchor() -> None:
    hub = MemoryHub({id: [event(number, at=NOW) for number in range(15)] for id in ("0", "1", "2")} | {"3": []})
    anchors = {P1: SequenceNumber(12), PartitionId("2"): SequenceNumber(15)}
    minute = sight(Books((books(9, timedelta()),), anchors=anchors), hub).minute
    assert (minute.at, minute.lag, minute.accounted) == (NOW, 5 + 3, 10)
    assert sight(Books((books(20, timedelta()),)), hub_of(timedelta())).minute.lag == 0


def test_the_longest_wait_of_all_partitions_counts() -> None:
    hub = hub_of(timedelta(minutes=3))
    hub.recreate("1")
    hub.publish("1", [event(0, at=NOW - timedelta(minutes=4))])
    facts = seen(Books((books(9, timedelta(hours=1)),)), hub)
    assert facts["lag_seconds"] == 240.0


def test_an_imbalance_of_a_partition_or_of_letters_shows() -> None:
    calm, hub = books(14, timedelta()), hub_of(timedelta())
    assert seen(Books((replace(calm, written=calm.written - 1),)), hub)["ledger_balanced"] is False
    assert seen(Books((calm,)), hub, LetterBooks({"waiting": 2}, 3))["ledger_balanced"] is False


def test_open_letters_and_the_age_of_the_oldest_ones_event_are_told() -> None:
    key = LetterKey(NOW - timedelta(hours=1), P0, SequenceNumber(3))
    letters = LetterBooks({"waiting": 2, "exhausted": 1}, 7, settled=4, oldest=key)
    facts = seen(Books(), MemoryHub({"0": []}), letters, NOW - timedelta(hours=2))
    assert (facts["letters_open"], facts["oldest_letter_seconds"]) == (3, 7200.0)


def test_an_event_of_a_clock_that_is_ahead_of_ours_is_not_younger_than_now() -> None:
    facts = seen(Books((books(9, timedelta(hours=1)),)), hub_of(timedelta(seconds=-5)))
    assert facts["lag_seconds"] == 0.0


def test_what_was_found_absent_is_told_for_as_long_as_the_alert_on_silence_waits() -> None:
    absent = {NOW - ABSENT_WITHIN: 5, NOW - ABSENT_WITHIN - timedelta(seconds=1): 7}
    assert seen(Books(absent=absent), MemoryHub({"0": []}))["absent_new"] == 5


def test_a_hub_that_does_not_answer_fails_the_tick() -> None:
    hub = hub_of(LONG)
    hub.fails = lambda: True
    with pytest.raises(HubUnreachable):
        seen(Books((books(9, timedelta(hours=1)),)), hub)


def burning(*counts: OpenCount, retention: timedelta | None = timedelta(hours=24)) -> dict:
    """Return the facts of a burn-down."""
    sources = (STREAM, Books((books(14, timedelta()),)), hub_of(timedelta()), lambda key: None)
    found = BurnDown(NOW, retention, counts)
    own = Watching(*sources, lambda: {P0: 14}, burn_down=lambda now: found)
    facts = observe(own, NOW).facts()
    return {name: facts[name] for name in ("letters_expiring_hours", "loss_hours", "events_lost")}


def test_the_hours_are_those_of_the_first_event_and_a_letter_with_a_body_is_no_loss() -> None:
    kept = OpenCount(P0, "kept", 1, NOW - timedelta(hours=22))
    bare = OpenCount(P0, "unkept", 2, NOW - timedelta(hours=14))
    gap = OpenCount(P0, "gap", 1, None)
    assert burning(kept) == {"letters_expiring_hours": 2.0, "loss_hours": 24.0, "events_lost": 0}
    assert burning(kept, bare, gap) == {"letters_expiring_hours": 2.0, "loss_hours": 10.0, "events_lost": 3}


def test_nothing_open_has_the_whole_retention_left_and_without_a_retention_nothing_is_said() -> None:
    assert burning() == {"letters_expiring_hours": 24.0, "loss_hours": 24.0, "events_lost": 0}
    assert burning(retention=None) == {"letters_expiring_hours": -1.0, "loss_hours": -1.0, "events_lost": 0}


def test_every_recorded_stop_is_counted_at_once() -> None:
    stops = [PartitionStop(reason, "why", 1, NOW) for reason in ("incarnation", "outage")]
    store = Books((books(14, timedelta()),), stops={P0: tuple(stops), P1: tuple(stops[:1])})
    facts = seen(store, hub_of(timedelta()))
    assert (facts["stops_recorded"], facts["partitions_stopped"]) == (3, 0)


def test_every_task_that_a_fault_holds_up_is_counted() -> None:
    assert seen(Books((books(14, timedelta()),), held_up=2), hub_of(timedelta()))["tasks_held_up"] == 2


def test_the_aggregation_lags_by_the_age_of_the_oldest_commit_that_waits_for_it() -> None:
    asked: list[datetime] = []

    def look(since: datetime) -> Pipeline:
        asked.append(since)
        return Pipeline(NOW - timedelta(hours=2), 3, 2)

    hub = hub_of(timedelta(days=1))
    sources = (STREAM, Books((books(14, timedelta(days=1)),)), hub, lambda key: None)
    facts = observe(Watching(*sources, lambda: {P0: 14}, look), NOW).facts()
    assert (facts["aggregation_lag_seconds"], facts["aggregation_failures"]) == (7200.0, 3)
    assert facts["aggregation_faults"] == 2
    assert asked == [NOW - ABSENT_WITHIN]
