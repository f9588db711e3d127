"""core/ledger/watch.py: the events that are gone by the hub, the forecast, and what is lost."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from core.ledger.store import BurnDowns, ForgottenKind, OpenCount, OpenGap
from core.ledger.watch import BurnDown, read_burn_down
from core.model.events import PartitionId, SequenceNumber
from tests.fakes.builders import EPOCH, STREAM, event
from tests.fakes.memory_hub import MemoryHub

DAY = timedelta(days=1)
P0, P1 = PartitionId("0"), PartitionId("1")


def hours(count: float) -> datetime:
    """The time so many hours after the first event."""
    return EPOCH + timedelta(hours=count)


@dataclass
class Open(BurnDowns):
    """The open letters and gaps of partition 0, with letters of these numbers by kind, one event an hour."""

    letters: dict[ForgottenKind, list[int]]
    gaps: tuple[OpenGap, ...] = ()

    def read_partition_ids(self) -> tuple[PartitionId, ...]:
        return (P0,)

    def count_open_letters(self, partition_id: PartitionId, beginning: SequenceNumber) -> tuple[OpenCount, ...]:
        found = []
        for kind, numbers in self.letters.items():
            held = [hours(one) for one in numbers if one >= beginning]
            found.append(OpenCount(partition_id, kind, len(numbers) - len(held), min(held, default=None)))
        return tuple(found) if partition_id == P0 else ()

    def read_open_gaps(self) -> tuple[OpenGap, ...]:
        return self.gaps


def hub_from(beginning: int = 0) -> MemoryHub:
    """A hub whose partition 0 holds the events of 40 hours, without those before a number."""
    hub = MemoryHub({"0": [event(number, at=hours(number)) for number in range(40)], "1": []})
    hub.expire_before("0", beginning)
    return hub


def read(store: Open, hub: MemoryHub, now: datetime, retention: timedelta | None = DAY) -> BurnDown:
    return read_burn_down(STREAM, store, hub, retention, now)


def facts(found: BurnDown) -> tuple[float, float, int]:
    return found.letters_expiring_hours, found.loss_hours, found.events_lost


def gap(first: int, after: float, partition_id: PartitionId = P0) -> OpenGap:
    return OpenGap(partition_id, SequenceNumber(first), hours(after))


def test_a_letter_loses_its_event_when_that_is_as_old_as_the_retention() -> None:
    assert facts(read(Open({"kept": [10, 12, 30]}), hub_from(), hours(32))) == (2.0, 24.0, 0)


def test_an_event_before_the_beginning_of_the_hub_is_gone_whatever_the_retention_says() -> None:
    found = read(Open({"unkept": [3, 9, 10]}), hub_from(10), hours(11), timedelta(days=90))
    assert facts(found) == (90 * 24 - 1, 90 * 24 - 1, 2)


def test_an_event_that_the_hub_holds_longer_than_its_retention_is_lost_now_and_not_in_the_past() -> None:
    assert facts(read(Open({"unkept": [3]}), hub_from(), hours(60))) == (0.0, 0.0, 0)


def test_without_a_retention_there_is_no_forecast_but_the_events_that_are_gone() -> None:
    assert facts(read(Open({"unkept": [3, 20]}), hub_from(10), hours(99), None)) == (-1.0, -1.0, 1)


def test_letters_with_a_body_are_no_loss_and_those_without_and_gaps_are() -> None:
    found = read(Open({"kept": [5], "unkept": [8, 9]}, (gap(20, 19),)), hub_from(), hours(24))
    assert facts(found) == (5.0, 8.0, 0)
    assert facts(read(Open({"kept": [5]}), hub_from(10), hours(24))) == (24.0, 24.0, 0)


def test_a_gap_is_as_old_as_its_first_event_in_the_hub_and_not_as_the_event_before_it() -> None:
    assert facts(read(Open({}, (gap(20, 2), gap(25, 2))), hub_from(), hours(40))) == (24.0, 4.0, 0)


def test_a_gap_whose_first_event_left_the_hub_is_gone_and_the_next_one_counts() -> None:
    assert facts(read(Open({}, (gap(5, 2), gap(25, 2))), hub_from(10), hours(30))) == (24.0, 19.0, 1)
    assert facts(read(Open({}, (gap(5, 2),)), hub_from(10), hours(30))) == (24.0, 24.0, 1)


def test_a_gap_of_a_partition_without_a_checkpoint_counts_too() -> None:
    assert facts(read(Open({}, (gap(0, 1, P1),)), hub_from(), hours(2))) == (24.0, 23.0, 0)


def test_a_hub_that_does_not_answer_leaves_the_forecast_and_shows_nothing_as_gone() -> None:
    hub = hub_from(10)
    hub.fails = lambda: True
    assert facts(read(Open({"unkept": [3]}, (gap(20, 19),)), hub, hours(20))) == (7.0, 7.0, 0)
    assert facts(read(Open({}, (gap(20, 19),)), hub, hours(20))) == (24.0, 23.0, 0)
