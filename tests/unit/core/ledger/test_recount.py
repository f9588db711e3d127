"""core/ledger/recount.py: the rows and the hub beside the ledger."""

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from core.ledger.audit import AuditedPartition
from core.ledger.books import PartitionLedger
from core.ledger.faults import ChangedCommit, CommitRows, LetteredRow, RowCount
from core.ledger.hub_comparison import PAGE, find_unbooked
from core.ledger.recount import LAST_NUMBER, HubRecount, RowRecount, recount_hub, recount_rows, window
from core.ledger.store.ledger import Ledger
from core.ledger.whereabouts import LetterEvent
from core.model.events import Event, Incarnation, Partition, PartitionId
from core.model.spans import SequenceNumber, Span
from tests.fakes.builders import EPOCH, event, partition
from tests.fakes.memory_hub import MemoryHub

N = SequenceNumber
EVEN = AuditedPartition(PartitionLedger(partition(), N(19), N(10), N(19), 2, 0, 6, 2, 2, 0, 0, 2), ())
WHOLE = Span(N(10), N(19))


@dataclass
class Store(Ledger):
    """The rows of one partition."""

    counts: tuple[RowCount, ...] = (RowCount("sensor_reading", 6, 0), RowCount("home", 1, 0))
    commits: tuple[CommitRows, ...] = ()
    absent: tuple[Span, ...] = ()
    asked: Span | None = None
    changed: list[tuple[ChangedCommit, ...]] = field(default_factory=list)
    lettered: tuple[LetteredRow, ...] = ()
    letters: tuple[LetterEvent, ...] = ()

    def count_rows(self, partition_id: PartitionId, span: Span) -> tuple[RowCount, ...]:
        self.asked = span
        return self.counts

    def find_row_faults(self, partition_id: PartitionId, span: Span, most: int) -> tuple[CommitRows, ...]:
        return self.commits

    def find_changed_commits(self, partition_id: PartitionId, span: Span, most: int) -> tuple[ChangedCommit, ...]:
        return self.changed.pop(0) if self.changed else ()

    def find_lettered_rows(self, partition_id: PartitionId, span: Span, most: int) -> tuple[LetteredRow, ...]:
        return self.lettered

    def read_letter_events(
        self, partition_id: PartitionId, after: SequenceNumber, last: SequenceNumber, most: int
    ) -> tuple[LetterEvent, ...]:
        return tuple(one for one in self.letters if after < one.sequence_number <= last)[:most]

    def find_absent(self, partition_id: PartitionId, span: Span, most: int) -> tuple[Span, ...]:
        return tuple(one for one in self.absent if one.last >= span.first and one.first <= span.last)


def told(recount: RowRecount | HubRecount) -> list[tuple[str, int, int]]:
    return [(fault.kind, fault.first, fault.last) for fault in recount.faults]


@pytest.mark.parametrize(
    ("first", "last", "most", "expected"),
    [
        (None, None, 100, (10, 19)),
        (None, None, 4, (16, 19)),
        (None, 15, 4, (12, 15)),
        (None, 12, 4, (10, 12)),
        (12, None, 4, (12, 15)),
        (12, 14, 4, (12, 14)),
        (0, 99, 100, (10, 19)),
        (20, None, 4, None),
        (None, 9, 4, None),
    ],
)
def test_what_is_recounted_at_once_has_a_limit(
    first: int | None, last: int | None, most: int, expected: tuple[int, int] | None
) -> None:
    asked = (None if first is None else N(first), None if last is None else N(last))
    found = window(EVEN.ledger, *asked, most)
    assert (None if found is None else found.ends) == expected


class Cutting(MemoryHub):
    """A hub whose retention goes on while it is read."""

    def read_range(
        self, partition: Partition, first: SequenceNumber, last: SequenceNumber, deadline: datetime
    ) -> Generator[Event, None, None]:
        for read in super().read_range(partition, first, last, deadline):
            yield read
            self.expire_before("0", 14)


class TestRows:
    def test_rows_that_commits_account_for_are_no_fault(self) -> None:
        done = recount_rows(EVEN, WHOLE, Store())
        assert (done.rows, done.faults) == (7, ())

    def test_rows_that_no_commit_accounts_for_are_told_by_their_table(self) -> None:
        done = recount_rows(EVEN, WHOLE, Store((RowCount("sensor_reading", 6, 2),)))
        assert told(done) == [("rows", 10, 19)]
        assert "2 of 6 rows in sensor_reading" in done.faults[0].detail

    def test_commits_with_missing_and_with_added_rows_are_told_by_their_numbers(self) -> None:
        fewer = CommitRows(4, "batch", N(10), N(14), 3, 2)
        more = CommitRows(5, "replay", N(15), N(19), 3, 4)
        done = recount_rows(EVEN, WHOLE, Store(commits=(fewer, more)))
        assert told(done) == [("rows_missing", 10, 14), ("rows_added", 15, 19)]
        assert done.faults[0].detail == "commit 4 (batch) appended 3 rows, but the tables hold 2"

    def test_rows_outside_of_the_ledger_are_looked_for_at_its_ends_only(self) -> None:
        for asked, looked in (
            ((10, 19), (0, LAST_NUMBER)),
            ((12, 19), (12, LAST_NUMBER)),
            ((10, 15), (0, 15)),
            ((12, 15), (12, 15)),
        ):
            store = Store()
            recount_rows(EVEN, Span(N(asked[0]), N(asked[1])), store)
            assert store.asked is not None
            assert store.asked.ends == looked

    def test_a_commit_that_changed_is_named_when_a_second_look_finds_it_too(self) -> None:
        rows, ledger = (ChangedCommit(number, "batch", N(10), N(14), rows=number == 4) for number in (4, 5))
        done = recount_rows(EVEN, WHOLE, Store(changed=[(rows, ledger), (rows,), (ledger,)]))
        assert told(done) == [("rows_changed", 10, 14), ("ledger_changed", 10, 14)]
        assert recount_rows(EVEN, WHOLE, Store(changed=[(rows, ledger), (), ()])).faults == ()

    def test_a_commit_with_missing_rows_is_not_named_twice(self) -> None:
        fewer, changed = CommitRows(4, "batch", N(10), N(14), 3, 2), ChangedCommit(4, "batch", N(10), N(14), rows=True)
        done = recount_rows(EVEN, WHOLE, Store(commits=(fewer,), changed=[(changed,), (changed,)]))
        assert told(done) == [("rows_missing", 10, 14)]

    def test_a_letter_that_is_open_although_its_rows_stand_is_named(self) -> None:
        done = recount_rows(EVEN, WHOLE, Store(lettered=(LetteredRow(N(12), "waiting", "sensor_reading"),)))
        assert told(done) == [("letters", 12, 12)]
        assert done.faults[0].detail == "letter 12 is waiting, but sensor_reading has rows of its event"


def letter_event(number: int, **changed: Any) -> LetterEvent:
    """The event of a letter as the store has it."""
    sent = event(number, "body")
    return replace(LetterEvent(N(number), sent.enqueued_at, None, {}, b"body"), **changed)


class TestLetters:
    """Letters beside the hub's events."""

    def details(self, *letters: LetterEvent, properties: dict[str, object] | None = None) -> list[str]:
        sent = [
            structs.replace(event(number, "body"), properties=properties or {})
            for number in range(10, 26)
            if number != 13
        ]
        done = recount_hub(EVEN, WHOLE, MemoryHub({"0": sent}), Store(letters=letters), EPOCH)
        assert {fault.kind for fault in done.faults} <= {"letter_changed"}
        return [fault.detail.removesuffix(" than the hub's event") for fault in done.faults]

    def test_letters_as_the_hub_has_them_are_no_fault(self) -> None:
        assert self.details(*map(letter_event, range(10, 20))) == []

    def test_each_part_that_differs_is_named(self) -> None:
        given = [
            letter_event(10, body=b"other"),
            letter_event(12, enqueued_at=EPOCH),
            letter_event(14, partition_key="key"),
            letter_event(15, properties={"a": 1}),
        ]
        assert self.details(*given) == [
            "letter 10 has a different body",
            "letter 12 has a different enqueued time",
            "letter 14 has a different partition key",
            "letter 15 has different properties",
        ]

    def test_a_body_that_is_not_stored_and_an_event_that_is_gone_are_not_compared(self) -> None:
        assert self.details(letter_event(10, body=None), letter_event(13, body=b"other")) == []

    def test_values_of_one_type_are_compared_and_those_of_two_are_not(self) -> None:
        given = [letter_event(10, properties={"a": "1"}), letter_event(11, properties={"a": 2})]
        assert self.details(*given, properties={"a": 1}) == ["letter 11 has different properties"]

    def test_letters_are_read_in_pages(self) -> None:
        sent = [event(number, "body") for number in range(PAGE + 50)]
        letters = tuple(letter_event(number, body=b"other") for number in range(PAGE + 50))
        ledger = replace(EVEN.ledger, first=N(0), last=N(PAGE + 49), checkpoint=N(PAGE + 49))
        span = Span(N(0), N(PAGE + 49))
        done = recount_hub(AuditedPartition(ledger, ()), span, MemoryHub({"0": sent}), Store(letters=letters), EPOCH)
        assert len(done.faults) == PAGE + 50


class TestUnbooked:
    """Partitions of the hub that the books do not name."""

    HUB = MemoryHub({"0": [event(0)], "1": [event(0), event(1)], "2": []})
    OPENED = Incarnation(1, 1, EPOCH, None)

    def test_one_with_events_is_named(self) -> None:
        (fault,) = find_unbooked(self.HUB, [PartitionId("0")], self.OPENED, EPOCH + timedelta(hours=1))
        assert (fault.kind, fault.partition_id, fault.first, fault.last) == ("partition", "1", 0, 1)

    def test_a_stream_that_was_just_opened_has_not_read_all_yet(self) -> None:
        assert list(find_unbooked(self.HUB, [], self.OPENED, EPOCH + timedelta(minutes=9))) == []

    def test_without_a_stream_every_partition_with_events_is_named(self) -> None:
        assert [one.partition_id for one in find_unbooked(self.HUB, [], None, EPOCH)] == ["0", "1"]


class TestHub:
    def hub(self, first: int, last: int) -> MemoryHub:
        return MemoryHub({"0": [event(number) for number in range(first, last + 1)]})

    def recount(self, hub: MemoryHub, store: Store | None = None, span: Span = WHOLE) -> HubRecount:
        return recount_hub(EVEN, span, hub, store or Store(), EPOCH)

    def test_the_events_that_it_holds_are_read_and_counted(self) -> None:
        whole, part = self.recount(self.hub(0, 25)), self.recount(self.hub(15, 19))
        assert (whole.span, whole.held, whole.lag, whole.faults, whole.not_held) == (WHOLE, 10, 6, (), ())
        assert part.span is not None
        assert (part.span.ends, part.held, part.lag) == ((15, 19), 5, 0)

    def test_one_that_holds_nothing_of_it_is_read_no_further(self) -> None:
        hub = self.hub(0, 39)
        hub.expire_before("0", 30)
        done = self.recount(hub)
        assert (done.span, done.held, done.lag, done.faults) == (None, 0, 20, ())
        assert "read_range" not in hub.asked

    def test_one_that_ends_before_the_checkpoint_is_another_one(self) -> None:
        assert told(self.recount(self.hub(0, 12))) == [("hub", 13, 19)]

    def test_a_number_that_is_called_absent_and_is_in_the_hub_is_told(self) -> None:
        store = Store(absent=(Span(N(11), N(14)),))
        done = self.recount(self.hub(13, 25), store)
        assert (told(done), done.absent) == ([("hub", 13, 14)], 2)
        assert self.recount(self.hub(15, 25), store).faults == ()

    def test_absent_numbers_account_for_holes_and_others_are_told_as_not_held(self) -> None:
        hub = self.hub(10, 25)
        hub.lose("0", 12, 13, 17)
        done = self.recount(hub, Store(absent=(Span(N(12), N(13)),)))
        assert (done.held, done.absent, done.faults) == (7, 2, ())
        assert [hole.ends for hole in done.not_held] == [(17, 17)]

    def test_what_retention_takes_while_it_is_read_is_no_hole(self) -> None:
        hub = Cutting({"0": [event(number) for number in range(10, 26)]})
        done = self.recount(hub)
        assert done.span is not None
        assert (done.span.ends, done.held, done.not_held) == ((14, 19), 6, ())
