"""core/incarnations/hub_check.py: where a partition begins, once and for good."""

from datetime import timedelta

import pytest

from core.errors import HubUnreachable
from core.incarnations.hub_check import choose_anchor
from core.ingest.gaps import GapReading
from core.ingest.ingest import Ingestion, ingest_batch
from core.model.commits import PartitionState
from core.model.events import Event, Partition
from core.model.policies import Anchoring
from core.model.ports import Extent, Place
from tests.fakes.builders import EPOCH, batch, event, events, partition, stamps
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.fakes.plain_transform import PLAIN


def at(second: int) -> Anchoring:
    return EPOCH + timedelta(seconds=second)


def hub(last: int = 20, first: int = 0) -> MemoryHub:
    """Event n was enqueued n seconds after EPOCH."""
    made = MemoryHub({"0": events(0, last, "quiet")})
    made.expire_before("0", first)
    return made


def state(opened: int = 12) -> PartitionState:
    return PartitionState(partition(), 1, None, None, EPOCH + timedelta(seconds=opened))


@pytest.mark.parametrize(
    ("anchoring", "given", "anchor"),
    [
        ("first", hub(first=3), 3),
        ("first", hub(last=-1), 0),
        ("first", hub(first=21), 21),
        ("latest", hub(), 12),
        ("latest", hub(last=8), 9),
        ("latest", hub(first=15), 15),
        (at(5), hub(), 5),
        (at(0), hub(first=7), 7),
        (at(99), hub(), 21),
        (at(99), hub(last=-1), 0),
    ],
)
def test_a_partition_begins_at_the_first_event_that_counts(anchoring: Anchoring, given: MemoryHub, anchor: int) -> None:
    assert choose_anchor(state(), anchoring, given) == anchor


def test_an_event_that_was_delivered_counts_although_retention_cut_it_meanwhile() -> None:
    assert choose_anchor(state(), "first", hub(first=9), event(6)) == 6


def test_no_number_is_before_zero_so_the_hub_need_not_be_asked() -> None:
    asked = hub()
    assert choose_anchor(state(), "first", asked, event(0)) == 0
    assert asked.asked == []


class GrowingHub(MemoryHub):
    """A hub that gets an event after each answer."""

    def extent(self, partition: Partition) -> Extent:
        found = super().extent(partition)
        self.grow()
        return found

    def first_at(self, partition: Partition, place: Place) -> Event | None:
        found = super().first_at(partition, place)
        self.grow()
        return found

    def grow(self) -> None:
        self.publish("0", [event(self.last["0"] + 1)])


def test_an_event_that_comes_in_between_two_questions_is_not_left_out() -> None:
    assert choose_anchor(state(opened=99), "latest", GrowingHub({"0": events(0, 8)})) == 9


class TestInTheStore:
    def ingest(self, store: MemoryStore, first: int, last: int, anchoring: Anchoring, seed: int = 0) -> int:
        """Return the count of the batch's dropped events."""
        gap_reading = GapReading(hub(last=40), anchoring)
        return ingest_batch(
            batch(events(first, last, "quiet")), Ingestion(store, PLAIN, stamps(seed), gap_reading)
        ).redelivered

    def test_events_before_the_anchor_are_dropped_and_another_setting_later_moves_none(self) -> None:
        store = MemoryStore()
        assert self.ingest(store, 0, 4, at(7)) == 5
        assert self.ingest(store, 5, 9, "first", seed=1) == 2
        assert [(kept.first, kept.last) for kept in store.ledger()] == [(7, 9)]
        assert [books.balanced for books in store.read_ledgers()] == [True]

    def test_a_hub_that_cannot_be_asked_leaves_the_partition_without_a_beginning(self) -> None:
        store, away = MemoryStore(), MemoryHub({"0": events(0, 9)}, fails=lambda: True)
        with pytest.raises(HubUnreachable):
            ingest_batch(batch(events(0, 4)), Ingestion(store, PLAIN, stamps(), GapReading(away, "latest")))
        assert store.read_partition(partition()).anchor is None
