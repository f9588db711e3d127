"""core/audit/audit.py: what an audit and a recount make of what they read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from core.audit.audit import LAST_NUMBER, AuditedPartition, RowRecount, audit, recount_rows, window
from core.audit.faults import (
    COUNTS,
    CheckpointTotals,
    CommitRows,
    Commits,
    LedgerEnds,
    LetteredRow,
    PartitionLedger,
    RangeSum,
    RowCount,
)
from core.audit.store import AuditStore
from core.ledger.store import Ledger as StoredLedger
from core.ledger.totals import NOT_PURGED, Purged
from core.model.events import PartitionId, SequenceNumber, Span
from tests.fakes.builders import partition

N = SequenceNumber
EVEN = PartitionLedger(
    partition=partition(), checkpoint=N(19), first=N(10), last=N(19), commits=2, written=6, filtered=2, dead_lettered=2,
    held=0, absent=0, letters=2, counted_commits=2, newest_commit=2,
)  # fmt: skip
COUNTED = RangeSum(6, 2, 2, 0, 0, 2, N(10), N(19), 2)


class Anchored(StoredLedger):
    """A ledger whose partitions are anchored at a number."""

    def __init__(self, anchor: SequenceNumber | None) -> None:
        self._anchor = anchor

    def find_anchor(self, partition_id: PartitionId) -> SequenceNumber | None:
        return self._anchor


@dataclass
class Ledger(AuditStore):
    """A ledger and the rows of one partition, with what is wrong with them."""

    held: PartitionLedger = EVEN
    found: Mapping[str, Sequence[tuple[Any, ...]]] = field(default_factory=dict)  # by statement
    counted: RangeSum | None = None
    anchor: SequenceNumber | None = EVEN.first
    replay_letters: tuple[int, int, int | None] = (2, 2, 2)
    tables: tuple[str, ...] = ("event_hub_checkpoint", "batch_ledger", "partition_anchor")
    incarnations: tuple[int, int, int] = (1, 1, 1)
    rows: tuple[RowCount, ...] = (RowCount("sensor_reading", 6, 0), RowCount("home", 1, 0))
    commits: tuple[CommitRows, ...] = ()
    lettered: tuple[LetteredRow, ...] = ()
    asked: Span | None = None

    def __post_init__(self) -> None:
        self.ledger = Anchored(self.anchor)

    def read_purged(self, partition_id: PartitionId) -> Purged:
        return NOT_PURGED

    def count_incarnations(self) -> tuple[int, int, int]:
        return self.incarnations

    def find_traces(self) -> Mapping[PartitionId, tuple[str, ...]]:
        return {self.held.partition.partition_id: self.tables}

    def count_replay_letters(self, partition_id: PartitionId) -> tuple[int, int, int | None]:
        return self.replay_letters

    def read_ledger_ends(self, partition_id: PartitionId) -> LedgerEnds:
        own = self.held
        return LedgerEnds(own.partition, own.checkpoint, own.letters, own.counted_commits, own.newest_commit)

    def find_piece_end(self, partition_id: PartitionId, after: int, last: int) -> int | None:
        return self.held.newest_commit

    def sum_ranges(self, partition_id: PartitionId, commits: Commits) -> RangeSum:
        counts = {name: getattr(self.held, name) for name in (*COUNTS, "holes")}
        rows = commits.last - commits.after - len(self.found.get("find_missing_commits", ()))
        return RangeSum(**counts, commit_number=commits.last, first=self.held.first, last=self.held.last, rows=rows)

    def read_totals(self, partition_id: PartitionId) -> CheckpointTotals | None:
        return None if self.counted is None else CheckpointTotals(self.counted)

    def find_faults(self, statement: str, partition_id: PartitionId, **values: Any) -> list[tuple[Any, ...]]:
        at_least = values.get("at_least", 1)
        return list(self.found.get(statement if at_least else f"{statement} in ranges without any", ()))

    def count_rows(self, partition_id: PartitionId, span: Span) -> tuple[RowCount, ...]:
        self.asked = span
        return self.rows

    def find_row_faults(self, partition_id: PartitionId, span: Span, most: int) -> tuple[CommitRows, ...]:
        return self.commits

    def find_lettered_rows(self, partition_id: PartitionId, span: Span, most: int) -> tuple[LetteredRow, ...]:
        return self.lettered


def kinds(ledger: Ledger) -> list[tuple[str, int, int]]:
    return [(fault.kind, fault.first, fault.last) for fault in audit(ledger, None).faults]


def test_a_ledger_in_order_has_no_fault() -> None:
    assert audit(Ledger(), None).balanced
    assert audit(Ledger(replay_letters=(2, 2, None)), None).balanced
    assert audit(Ledger(counted=COUNTED), None).balanced


RANGES, LETTERS = "find_range_faults", "find_letter_faults"
WITHOUT_ANY = f"{LETTERS} in ranges without any"
GONE = ("batch_ledger", "partition_anchor")
FAULTS: dict[str, tuple[Ledger, tuple[str, int, int]]] = {
    "late": (Ledger(replace(EVEN, holes=1), {RANGES: [(2, 12, 15)]}), ("hole", 13, 14)),
    "early": (Ledger(replace(EVEN, holes=1), {RANGES: [(2, 15, 12)]}), ("overlap", 12, 15)),
    "ends early": (Ledger(replace(EVEN, checkpoint=N(25))), ("short", 20, 25)),
    "ends late": (Ledger(replace(EVEN, checkpoint=N(15))), ("beyond", 16, 19)),
    "begins after the anchor": (Ledger(anchor=N(7)), ("hole", 7, 9)),
    "begins before the anchor": (Ledger(anchor=N(12)), ("beyond", 10, 11)),
    "no anchor": (Ledger(anchor=None), ("anchor", 10, 19)),
    "no checkpoint": (
        Ledger(replace(EVEN, checkpoint=N(-1), counted_commits=0), tables=GONE),
        ("checkpoint", 10, 19),
    ),
    "outcomes that do not sum": (Ledger(replace(EVEN, written=7)), ("counts", 10, 19)),
    "sums of letters agree": (Ledger(found={LETTERS: [(1, 10, 14, 1, 0)]}), ("letters", 10, 14)),
    "a letter of a range without any": (
        Ledger(replace(EVEN, letters=3), {WITHOUT_ANY: [(1, 10, 14, 0, 1)]}),
        ("letters", 10, 14),
    ),
    "a letter of no range": (Ledger(replace(EVEN, letters=3)), ("letters_outside", 10, 19)),
    "held by no commit": (Ledger(found={"find_held_faults": [(13,)]}), ("held", 13, 13)),
    "letters of replays": (Ledger(replay_letters=(2, 1, 2)), ("replay_letters", 10, 19)),
    "totals of letters": (Ledger(replay_letters=(2, 2, 3)), ("totals", 10, 19)),
    "totals": (Ledger(counted=RangeSum(7, 2, 1, 0, 0, 2, N(10), N(19), 2)), ("totals", 10, 19)),
    "older totals": (Ledger(counted=RangeSum(6, 2, 2, 0, 0, 0, N(10), N(19), 2)), ("totals", 10, 19)),
    "a retry": (Ledger(found={"find_retry_faults": [(4, 11, 12, 2, 1, 1, 1)]}), ("attempts", 11, 12)),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_named_with_its_numbers(case: str) -> None:
    ledger, fault = FAULTS[case]
    assert kinds(ledger) == [fault]


MOVED = [(11, "resolved", 0, 0, None), (12, "waiting", 2, 2, "resolved"), (13, "waiting", 2, 3, "waiting")]
DETAILS: dict[str, tuple[Ledger, list[str]]] = {
    "commits without a row": (
        Ledger(found={"find_missing_commits": [(4, 4), (7, 9)]}),
        ["the ledger has no row for commit 4", "the ledger has no row for commits 7 to 9"],
    ),
    "totals that do not follow": (
        Ledger(found={"find_total_faults": [(2, 15, 19)]}, counted=COUNTED),
        ["the totals of commit 2 are not those of the commit before it and its own counts"],
    ),
    "a commit that is not counted": (
        Ledger(replace(EVEN, counted_commits=1)),
        ["the ledger has a row for commit 2, but the checkpoint has counted 1 commits"],
    ),
    "attempts that do not lead to the status": (
        Ledger(found={"find_attempt_faults": MOVED}),
        [
            "letter 11 is resolved, but it has no attempt",
            "letter 12 is waiting, but its last attempt left it resolved",
            "letter 13 has 2 attempts, but the last one is attempt 3",
        ],
    ),
    "a replay of different events": (
        Ledger(found={"find_replay_faults": [("job-1", 10, 19, 9, 8, 5, 5, 3, 3)]}),
        [
            "replay job-1 counts 9 events written, 5 rows written and 3 retracted, but its commits count 8 and 5"
            " written, and 3 retracted rows exist"
        ],
    ),
}


@pytest.mark.parametrize("case", DETAILS)
def test_a_fault_is_told_with_what_differs(case: str) -> None:
    ledger, told = DETAILS[case]
    assert [fault.detail for fault in audit(ledger, None).faults] == told


def test_a_partition_of_which_only_letters_or_rows_are_left_is_named_and_an_anchor_alone_is_nothing() -> None:
    done = audit(Ledger(tables=("partition_anchor",)), None)
    assert (done.partitions, done.faults) == ((), ())
    (fault,) = audit(Ledger(tables=("event_hub_dead_letter", "sensor_reading")), None).faults
    assert (fault.kind, fault.partition_id) == ("partition", "0")
    assert fault.detail.startswith("event_hub_dead_letter, sensor_reading name the partition")


def test_incarnations_that_are_not_numbered_from_one_are_a_fault_of_the_stream() -> None:
    assert audit(Ledger(incarnations=(2, 1, 2)), None).balanced
    for numbered in ((1, 2, 2), (2, 1, 3)):
        (fault,) = audit(Ledger(incarnations=numbered), None).faults
        assert (fault.kind, fault.partition_id) == ("stream", "")


def test_absent_numbers_and_gaps_that_differ_are_named_from_both_sides() -> None:
    found: dict[str, Any] = {"find_absent_faults": [(3, 12, 14, 2, 1)], "find_stray_gaps": [(17, 18)]}
    holding = replace(EVEN, written=4, absent=2)
    assert kinds(Ledger(holding, found)) == [("absent", 12, 14), ("absent", 17, 18)]


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
    found = window(EVEN, None if first is None else N(first), None if last is None else N(last), most)
    assert (None if found is None else found.ends) == expected


def recount(store: Ledger, first: int = 10, last: int = 19) -> RowRecount:
    return recount_rows(AuditedPartition(EVEN, ()), Span(N(first), N(last)), store)


def test_rows_that_commits_account_for_are_no_fault() -> None:
    done = recount(Ledger())
    assert (done.rows, done.faults) == (7, ())


@pytest.mark.parametrize(
    ("store", "named"),
    [
        pytest.param(
            Ledger(rows=(RowCount("sensor_reading", 6, 2),)),
            [("rows", 10, 19, "2 of 6 rows in sensor_reading")],
            id="rows that no commit accounts for",
        ),
        pytest.param(
            Ledger(
                commits=(
                    CommitRows(4, "batch", N(10), N(14), 3, 2),
                    CommitRows(5, "replay", N(15), N(19), 3, 4),
                )
            ),
            [
                ("rows_missing", 10, 14, "commit 4 (batch) appended 3 rows, but the tables hold 2"),
                ("rows_added", 15, 19, "commit 5 (replay) appended 3 rows, but the tables hold 4"),
            ],
            id="commits with missing and with added rows",
        ),
        pytest.param(
            Ledger(lettered=(LetteredRow(N(12), "waiting", "sensor_reading"),)),
            [("letters", 12, 12, "letter 12 is waiting, but sensor_reading has rows of its event")],
            id="a letter that is open although its rows stand",
        ),
    ],
)
def test_rows_that_differ_are_named_by_their_numbers(store: Ledger, named: list[tuple[str, int, int, str]]) -> None:
    faults = recount(store).faults
    assert [(one.kind, one.first, one.last) for one in faults] == [one[:3] for one in named]
    assert all(words in fault.detail for fault, (*_, words) in zip(faults, named, strict=True))


def test_rows_outside_of_the_ledger_are_looked_for_at_its_ends_only() -> None:
    for asked, looked in (
        ((10, 19), (0, LAST_NUMBER)),
        ((12, 19), (12, LAST_NUMBER)),
        ((10, 15), (0, 15)),
        ((12, 15), (12, 15)),
    ):
        store = Ledger()
        recount(store, *asked)
        assert store.asked is not None
        assert store.asked.ends == looked
