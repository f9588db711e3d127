"""core/ledger/retention/burn_down.py: the events that are gone by the hub, the forecast, and what is lost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.ledger.retention.burn_down import ONLY_IN_HUB, BurnDown, BurnDownMeans, read_burn_down
from core.ledger.retention.open_counts import LETTERS, Kind, OpenCount, OpenGap
from core.ledger.store.burn_down import BurnDowns
from core.model.events import PartitionId
from core.model.spans import SequenceNumber
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

    letters: dict[Kind, list[int]]
    gaps: tuple[OpenGap, ...] = ()

    def read_partition_ids(self) -> tuple[PartitionId, ...]:
        return (P0,)

    def count_open_letters(
        self, partition_id: PartitionId, beginning: SequenceNumber, cuts: Sequence[datetime]
    ) -> tuple[OpenCount, ...]:
        found = []
        for kind, numbers in self.letters.items():
            held = [hours(one) for one in numbers if one >= beginning]
            by_cut = tuple(sum(at <= cut for at in held) for cut in cuts)
            found.append(
                OpenCount(partition_id, kind, len(numbers), len(numbers) - len(held), min(held, default=None), by_cut)
            )
        return tuple(found) if partition_id == P0 else ()

    def read_open_gaps(self) -> tuple[OpenGap, ...]:
        return self.gaps


def hub_from(beginning: int = 0) -> MemoryHub:
    """A hub whose partition 0 holds the events of 40 hours, without those before a number."""
    hub = MemoryHub({"0": [event(number, at=hours(number)) for number in range(40)], "1": []})
    hub.expire_before("0", beginning)
    return hub


def read(store: Open, hub: MemoryHub, now: datetime, retention: timedelta | None = DAY) -> BurnDown:
    return read_burn_down(BurnDownMeans(STREAM, store, hub, retention), now)


def gap(first: int, after: float, partition_id: PartitionId = P0) -> OpenGap:
    return OpenGap(partition_id, SequenceNumber(first), hours(after))


def test_a_letter_loses_its_event_when_that_is_as_old_as_the_retention() -> None:
    found = read(Open({"kept": [10, 12, 30]}), hub_from(), hours(32))
    share = found.share()
    assert (share.open, share.gone, share.first_lost_at) == (3, 0, hours(34))
    assert (found.hours_left(share), share.within) == (2.0, (0, 2, 3))


def test_the_last_moment_of_an_hour_is_within_it() -> None:
    for minute, within in ((1, (0, 1, 1)), (0, (1, 1, 1))):
        found = read(Open({"kept": [10]}), hub_from(), hours(33) - timedelta(minutes=minute))
        assert found.share().within == within


def test_an_event_before_the_beginning_of_the_hub_is_gone_whatever_the_retention_says() -> None:
    share = read(Open({"kept": [3, 9, 10]}), hub_from(10), hours(11), timedelta(days=90)).share()
    assert (share.open, share.gone, share.first_lost_at) == (3, 2, hours(10) + timedelta(days=90))


def test_an_event_that_the_hub_holds_longer_than_its_retention_is_lost_now_and_not_in_the_past() -> None:
    found = read(Open({"kept": [3]}), hub_from(), hours(60))
    share = found.share()
    assert (share.gone, found.hours_left(share), share.within) == (0, 0.0, (1, 1, 1))


def test_without_a_retention_there_is_no_forecast_but_the_events_that_are_gone() -> None:
    found = read(Open({"kept": [3, 20]}), hub_from(10), hours(99), None)
    share = found.share()
    assert (share.open, share.gone, share.first_lost_at, share.within) == (2, 1, None, (0, 0, 0))
    assert found.hours_left(share) is None


def test_letters_with_a_body_are_no_loss_and_those_without_and_gaps_are() -> None:
    found = read(Open({"kept": [5], "unkept": [8, 9]}, (gap(20, 19),)), hub_from(), hours(24))
    assert [found.share([kind]).open for kind in ("kept", "unkept", "gap")] == [1, 2, 1]
    assert (found.share(LETTERS).first_lost_at, found.share(ONLY_IN_HUB).first_lost_at) == (hours(29), hours(32))


def test_a_gap_is_as_old_as_its_first_event_in_the_hub_and_not_as_the_event_before_it() -> None:
    found = read(Open({}, (gap(20, 2), gap(25, 2))), hub_from(), hours(40))
    share = found.share()
    assert (share.open, share.gone, share.first_lost_at, share.within) == (2, 0, hours(44), (0, 2, 2))


def test_a_gap_whose_first_event_left_the_hub_is_gone_and_the_next_one_counts() -> None:
    share = read(Open({}, (gap(5, 2), gap(25, 2))), hub_from(10), hours(30)).share()
    assert (share.open, share.gone, share.first_lost_at, share.within) == (2, 1, hours(49), (0, 0, 1))
    assert read(Open({}, (gap(5, 2),)), hub_from(10), hours(30)).share().first_lost_at is None


def test_a_gap_of_a_partition_without_a_checkpoint_counts_too() -> None:
    found = read(Open({}, (gap(0, 1, P1),)), hub_from(), hours(2))
    assert found.partition_ids == (P0, P1)
    assert (found.share(partition_id=P1).open, found.share(partition_id=P0).open) == (1, 0)
    assert found.share(partition_id=P1).first_lost_at == hours(25)


def test_a_hub_that_does_not_answer_leaves_the_forecast_and_shows_nothing_as_gone() -> None:
    hub = hub_from(10)
    hub.fails = lambda: True
    found = read(Open({"unkept": [3]}, (gap(20, 19),)), hub, hours(20))
    share = found.share()
    assert (share.open, share.gone, share.first_lost_at) == (2, 0, hours(27))
    assert found.share(["gap"]).first_lost_at == hours(43)
    assert found.hub_fault


def test_nothing_open_has_no_hours() -> None:
    found = read(Open({}), hub_from(), hours(1))
    assert (found.share().open, found.hours_left(found.share()), found.hub_fault) == (0, None, None)
