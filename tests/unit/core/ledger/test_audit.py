"""core/ledger/audit.py: what an audit makes of what it reads."""

from dataclasses import dataclass, field, replace

from core.ledger.audit import LetterFault, RangeFault, RememberedSum, audit
from core.ledger.books import PartitionLedger
from core.model.events import PartitionId
from core.model.spans import SequenceNumber
from tests.fakes.builders import partition

N = SequenceNumber
EVEN = PartitionLedger(partition(), N(19), N(10), N(19), 2, 0, 6, 2, 2, 0, 0, 2)


@dataclass
class Ledger:
    """An AuditStore that holds one partition, with what is wrong with it."""

    ledger: PartitionLedger = EVEN
    ranges: tuple[RangeFault, ...] = ()
    letters: dict[int, tuple[LetterFault, ...]] = field(default_factory=dict)
    stale: RememberedSum | None = None
    anchor: SequenceNumber | None = EVEN.first
    missing: tuple[tuple[int, int], ...] = ()
    replay_letters: tuple[int, int] = (2, 2)

    def find_missing_commits(self, partition_id: PartitionId, most: int) -> tuple[tuple[int, int], ...]:
        return self.missing[:most]

    def count_replay_letters(self, partition_id: PartitionId) -> tuple[int, int]:
        return self.replay_letters

    def find_anchor(self, partition_id: PartitionId) -> SequenceNumber | None:
        return self.anchor

    def audit_ledgers(self, partition_id: PartitionId | None) -> tuple[PartitionLedger, ...]:
        return (self.ledger,)

    def find_range_faults(self, partition_id: PartitionId, most: int) -> tuple[RangeFault, ...]:
        return self.ranges

    def find_letter_faults(self, partition_id: PartitionId, at_least: int, most: int) -> tuple[LetterFault, ...]:
        return self.letters.get(at_least, ())

    def find_stale_sum(self, partition_id: PartitionId) -> RememberedSum | None:
        return self.stale


def kinds(ledger: Ledger) -> list[tuple[str, int, int]]:
    return [(fault.kind, fault.first, fault.last) for fault in audit(ledger, None).faults]


def test_a_ledger_in_order_has_no_fault() -> None:
    assert audit(Ledger(), None).balanced


def test_a_range_that_begins_too_late_leaves_a_hole() -> None:
    assert kinds(Ledger(replace(EVEN, holes=1), (RangeFault(2, N(12), N(15)),))) == [("hole", 13, 14)]


def test_a_range_that_begins_too_early_overlaps() -> None:
    assert kinds(Ledger(replace(EVEN, holes=1), (RangeFault(2, N(15), N(12)),))) == [("overlap", 12, 15)]


def test_a_ledger_that_ends_before_the_checkpoint_is_short() -> None:
    assert kinds(Ledger(replace(EVEN, checkpoint=N(25)))) == [("short", 20, 25)]


def test_a_ledger_that_ends_beyond_the_checkpoint_is_told() -> None:
    assert kinds(Ledger(replace(EVEN, checkpoint=N(15)))) == [("beyond", 16, 19)]


def test_outcomes_that_do_not_sum_to_the_numbers_are_told() -> None:
    assert kinds(Ledger(replace(EVEN, written=7))) == [("counts", 10, 19)]


def test_a_range_with_another_number_of_letters_is_told_even_where_the_sums_agree() -> None:
    wrong = (LetterFault(1, N(10), N(14), 1, 0),)
    assert kinds(Ledger(letters={1: wrong})) == [("letters", 10, 14)]


def test_letters_of_a_range_that_has_none_are_looked_for_where_the_sums_differ() -> None:
    more = replace(EVEN, letters=3)
    assert kinds(Ledger(more, letters={0: (LetterFault(1, N(10), N(14), 0, 1),)})) == [("letters", 10, 14)]
    assert kinds(Ledger(more)) == [("letters_outside", 10, 19)]


def test_a_commit_without_a_row_in_the_ledger_is_told_by_its_number() -> None:
    found = audit(Ledger(missing=((4, 4), (7, 9))), None).faults
    assert [(fault.kind, fault.detail) for fault in found] == [
        ("commits", "the ledger has no row for commit 4"),
        ("commits", "the ledger has no row for commits 7 to 9"),
    ]


def test_letters_of_replays_are_held_against_what_the_replays_counted() -> None:
    assert kinds(Ledger(replay_letters=(2, 1))) == [("replay_letters", 10, 19)]


def test_a_remembered_sum_that_differs_is_told() -> None:
    assert kinds(Ledger(stale=RememberedSum(2, 2, 11))) == [("remembered_sum", 10, 19)]


def test_a_ledger_that_does_not_begin_at_the_anchor_is_told() -> None:
    assert kinds(Ledger(anchor=N(7))) == [("hole", 7, 9)]
    assert kinds(Ledger(anchor=N(12))) == [("beyond", 10, 11)]


def test_a_store_that_is_older_than_anchors_has_none_to_begin_at() -> None:
    assert kinds(Ledger(anchor=None)) == []
