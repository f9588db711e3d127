"""Audit a stream: walk the ranges of each partition and compare them with its totals, letters, rows and gaps."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from core.audit.faults import (
    COUNTS,
    FAULT_LIMIT,
    NO_PARTITION,
    NO_TOTALS,
    CheckpointTotals,
    Commits,
    FaultKind,
    LedgerFault,
    PartitionLedger,
    RangeSum,
)
from core.audit.store import AuditStore, compare_tables, find_faults
from core.model.events import PartitionId, SequenceNumber, Span
from core.model.ports import Clock

PIECE = 50_000  # commits that one statement reads


@dataclass(frozen=True, slots=True)
class Reading:
    """The limits of an audit: one statement reads `piece` commits, and between two pieces the audit ends if its time
    is over."""

    is_over: Callable[[], bool] = lambda: False
    piece: int = PIECE


WHOLE = Reading()


def commit_pieces(
    store: AuditStore, id: PartitionId, commits: Commits, most: int = PIECE, stops: tuple[int, ...] = ()
) -> Iterator[tuple[int, int]]:
    """Yield commits in pieces of up to `most`, each of which ends at the next stop at the latest.

    A piece ends at a commit that has a row, so missing commits that follow each other are in one piece.
    """
    after, last = commits.after, commits.last
    while after < last:
        end = store.find_piece_end(id, after, after + most) or last
        end = min([end, last, *(stop for stop in stops if stop > after)])
        yield after, end
        after = end


CHECKPOINTS, LEDGER, ONLY_ANCHORED = "event_hub_checkpoint", "batch_ledger", ("partition_anchor",)


@dataclass(frozen=True, slots=True)
class AuditedPartition:
    """The ledger of a partition up to commit `until`, and its faults. An audit whose time is over is not `complete`:
    nothing was compared but these ranges."""

    ledger: PartitionLedger
    faults: tuple[LedgerFault, ...]
    until: int = 0
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit of a stream, or of one partition of it."""

    partitions: tuple[AuditedPartition, ...]
    stream_faults: tuple[LedgerFault, ...] = ()

    @property
    def faults(self) -> tuple[LedgerFault, ...]:
        return (*self.stream_faults, *(fault for one in self.partitions for fault in one.faults))

    @property
    def balanced(self) -> bool:
        return not self.faults

    @property
    def complete(self) -> bool:
        return all(one.complete for one in self.partitions)


def audit(store: AuditStore, partition_id: PartitionId | None, reading: Reading = WHOLE) -> Audit:
    """READ the ledgers, and the faults of unbalanced ones. DECIDE what to report."""
    traces = store.find_traces()
    chosen = [id for id, tables in traces.items() if partition_id in (None, id) and tables != ONLY_ANCHORED]
    audited = tuple(_audited(store, id, traces[id], reading) for id in chosen)
    return Audit(audited, tuple(stream_faults(store)))


def verify_partition(store: AuditStore, clock: Clock, id: PartitionId, until: datetime) -> tuple[int, int]:
    """Audit a partition until a time, and return the number of faults and the last commit that was read."""
    done = audit(store, id, Reading(lambda: clock.now() >= until))
    return len(done.faults), done.partitions[0].until if done.partitions else 0


READS = 5  # the most audits of a partition while purges go on


def _audited(store: AuditStore, id: PartitionId, tables: tuple[str, ...], reading: Reading) -> AuditedPartition:
    """Audit a partition, and once more if a purge has deleted ledger rows meanwhile."""
    for _ in range(READS):
        purged = store.read_purged(id)
        found = _read_partition(store, id, tables, reading)
        if not found.faults or store.read_purged(id) == purged:
            break
    return found


def _read_partition(store: AuditStore, id: PartitionId, tables: tuple[str, ...], reading: Reading) -> AuditedPartition:
    totals = store.read_totals(id) or NO_TOTALS
    ends = store.read_ledger_ends(id)
    summed, found = _read_ranges(store, id, totals, ends.last_commit, reading)
    ledger, until = ends.ledger(summed), summed.commit_number
    if not {CHECKPOINTS, LEDGER} & set(tables):
        text = f"{', '.join(tables)} name the partition, but it has neither a checkpoint nor a ledger"
        return AuditedPartition(ledger, (LedgerFault(id, "partition", ledger.first, ledger.first, text),))
    faults = [*found, *_purge_faults(store, id, totals.purged)]
    complete = until == ends.last_commit
    if complete:
        if CHECKPOINTS not in tables:
            text = f"the ledger ends at {ledger.last}, but the partition has no checkpoint"
            faults.append(LedgerFault(id, "checkpoint", ledger.first, ledger.last, text))
        faults += _faults_of_ledger(store, ledger, found, reading)
    return AuditedPartition(ledger, tuple(faults), until, complete)


def _read_ranges(
    store: AuditStore, id: PartitionId, totals: CheckpointTotals, last: int, reading: Reading
) -> tuple[RangeSum, list[LedgerFault]]:
    """Read the ranges after those that were purged, up to a commit or until the time is over. Return their sum and the
    first faults of each kind.

    The totals were read before the end of the ledger. So totals of a commit after that end are a fault, even while
    others add ranges.
    """
    counted, summed = totals.counted, totals.purged
    faults: list[LedgerFault] = []
    by_kind: Counter[str] = Counter()
    stops = (counted.commit_number,) if counted else ()
    for after, end in commit_pieces(store, id, Commits(summed.commit_number, last), reading.piece, stops):
        if counted and counted.commit_number <= after:
            faults += _compare(id, counted, summed)
            counted = None
        if reading.is_over():
            return summed, faults
        commits, before = Commits(after, end, summed.last), summed
        piece = store.sum_ranges(id, commits)
        summed = before.plus(piece)
        for fault in _faults_of_piece(store, id, commits, before, piece):
            by_kind[fault.kind] += 1
            if by_kind[fault.kind] <= FAULT_LIMIT:
                faults.append(fault)
    if counted:
        faults += _compare(id, counted, summed)
    return summed, faults


def _compare(id: PartitionId, counted: RangeSum, summed: RangeSum) -> list[LedgerFault]:
    """Compare the totals of the checkpoint with the sum of the same ranges."""
    if counted.equals(summed):
        return []
    text = f"the checkpoint counts {counted.accounted} numbers in {counted.commits} ranges up to commit"
    text = f"{text} {counted.commit_number}, but the ranges have a different sum"
    return [LedgerFault(id, "totals", counted.first, counted.last, text)]


def _purge_faults(store: AuditStore, id: PartitionId, purged: RangeSum) -> Iterator[LedgerFault]:
    """Name commits that are in the ledger although they were purged, and gaps that their totals do not count."""
    if not purged.commit_number:
        return
    oldest = store.find_piece_end(id, 0, purged.commit_number)
    if oldest is not None and oldest <= purged.commit_number:
        text = f"the ledger is purged up to commit {purged.commit_number}, but it has commit {oldest}"
        yield LedgerFault(id, "purged", purged.first, purged.last, text)
    absent = store.sum_absent_gaps(id, purged.last)
    if absent != purged.absent:
        text = f"the purged commits count {purged.absent} absent numbers, but the gaps up to their end have {absent}"
        yield LedgerFault(id, "absent", purged.first, purged.last, text)


def _faults_of_piece(
    store: AuditStore, id: PartitionId, commits: Commits, before: RangeSum, piece: RangeSum
) -> Iterator[LedgerFault]:
    """Name the faults of some commits. The sum of the commits shows which faults are possible."""
    if piece.holes:
        yield from find_faults(store, id, "find_range_faults", **commits.ends, previous_last=commits.previous_last)
    if piece.rows != commits.last - commits.after:
        for first, last in store.find_faults("find_missing_commits", id, **commits.ends):
            named = f"commit {first}" if first == last else f"commits {first} to {last}"
            text = f"the ledger has no row for {named}"
            yield LedgerFault(id, "commits", piece.first, max(piece.first, piece.last), text)
    if piece.lettered:
        yield from find_faults(store, id, "find_letter_faults", **commits.ends, at_least=1)
    if piece.absent:
        yield from find_faults(store, id, "find_absent_faults", **commits.ends)
    sums = {f"{name}_before": getattr(before, name) for name in COUNTS}  # where the commit before has no row
    yield from find_faults(store, id, "find_total_faults", **commits.ends, **sums)


def stream_faults(store: AuditStore) -> Iterator[LedgerFault]:
    """Yield the faults of the stream's incarnations."""
    count, first, last = store.count_incarnations()
    if count and (first, last) != (1, count):
        text = f"the stream has {count} incarnations, but they are numbered from {first} to {last}"
        yield LedgerFault(NO_PARTITION, "stream", SequenceNumber(0), SequenceNumber(0), text)


def _faults_of_ledger(
    store: AuditStore, ledger: PartitionLedger, found: Sequence[LedgerFault], reading: Reading
) -> Iterator[LedgerFault]:
    """Name the faults of a ledger that was read to its end, besides those that were found in its ranges."""
    id = ledger.partition.partition_id
    if ledger.commits:
        anchor = store.ledger.find_anchor(id)
        text = f"the ledger begins at {ledger.first}, but the partition is anchored at {anchor}"
        if anchor is None:
            text = f"the ledger begins at {ledger.first}, but the partition has no anchor"
            yield LedgerFault(id, "anchor", ledger.first, ledger.last, text)
        elif ledger.first > anchor:
            yield LedgerFault(id, "hole", anchor, SequenceNumber(ledger.first - 1), text)
        elif ledger.first < anchor:
            yield LedgerFault(id, "beyond", ledger.first, SequenceNumber(anchor - 1), text)
    if ledger.last < ledger.checkpoint:
        text = f"the ledger ends at {ledger.last}, before the checkpoint at {ledger.checkpoint}"
        yield LedgerFault(id, "short", SequenceNumber(ledger.last + 1), ledger.checkpoint, text)
    if ledger.last > ledger.checkpoint >= 0:
        text = f"the ledger ends at {ledger.last}, after the checkpoint at {ledger.checkpoint}"
        yield LedgerFault(id, "beyond", SequenceNumber(ledger.checkpoint + 1), ledger.last, text)
    if not ledger.holes and ledger.accounted != ledger.last - ledger.first + 1:
        text = f"the ledger has {ledger.accounted} outcomes for {ledger.last - ledger.first + 1} numbers"
        yield LedgerFault(id, "counts", ledger.first, ledger.last, text)
    if ledger.newest_commit > ledger.counted_commits and ledger.checkpoint >= 0:
        text = f"the ledger has a row for commit {ledger.newest_commit}, but the checkpoint has counted"
        text = f"{text} {ledger.counted_commits} commits"
        yield LedgerFault(id, "commits", ledger.first, ledger.last, text)
    if ledger.letters != ledger.lettered and not any(one.kind == "letters" for one in found):
        yield from _letters_outside(store, ledger, reading)
    made, exist, counted = store.count_replay_letters(id)
    new = f"replays made {made} letters from events that were no letters before"
    if made != exist:
        yield LedgerFault(id, "replay_letters", ledger.first, ledger.last, f"{new}, but {exist} of them exist")
    if counted not in (None, made):
        text = f"{new}, but the checkpoint counts {counted}"
        yield LedgerFault(id, "totals", ledger.first, ledger.last, text)
    yield from compare_tables(store, id)


def _letters_outside(store: AuditStore, ledger: PartitionLedger, reading: Reading) -> Iterator[LedgerFault]:
    """Name the ranges that have letters but count none. Without such a range, the letters lie outside of all ranges."""
    id = ledger.partition.partition_id
    faulty: list[LedgerFault] = []
    why = "some letters have numbers that no range covers"
    for after, last in commit_pieces(store, id, Commits(0, max(ledger.counted_commits, ledger.newest_commit))):
        if reading.is_over():
            why = "the time was over before the range of these letters was found"
            break
        ends = Commits(after, last).ends
        faulty += find_faults(store, id, "find_letter_faults", **ends, at_least=0, most=FAULT_LIMIT - len(faulty))
        if len(faulty) == FAULT_LIMIT:
            break
    if not faulty:
        text = f"there are {ledger.letters} letters, but the ledger counts {ledger.lettered}: {why}"
        yield LedgerFault(id, "letters_outside", ledger.first, ledger.last, text)
    yield from faulty


MOST_NUMBERS = 10_000_000  # numbers of a partition whose rows one recount counts
LAST_NUMBER = SequenceNumber(2**63 - 1)


@dataclass(frozen=True, slots=True)
class RowRecount:
    """The number of rows in a range, and the faults."""

    span: Span
    rows: int
    faults: tuple[LedgerFault, ...]


def window(
    ledger: PartitionLedger, first: SequenceNumber | None, last: SequenceNumber | None, most: int
) -> Span | None:
    """Return up to `most` numbers to recount: those from `first` on if it is given, else those that end at `last`.

    None when the ledger has none of these numbers.
    """
    until = ledger.checkpoint if last is None else min(last, ledger.checkpoint)
    since = SequenceNumber(until - most + 1) if first is None else first
    begin = SequenceNumber(max(since, ledger.first))
    end = SequenceNumber(min(until, begin + most - 1))
    return Span(begin, end) if begin <= end else None


def recount_rows(audited: AuditedPartition, span: Span, store: AuditStore) -> RowRecount:
    """Find rows that no commit accounts for, and commits with missing or additional rows.

    For states, only the first check is possible: newer states replace them without a trace.
    """
    ledger = audited.ledger
    id = ledger.partition.partition_id
    # Beyond the ends of the ledger no commit has written rows, so a span that reaches one of them goes on from there.
    first = SequenceNumber(0) if span.first == ledger.first else span.first
    reach = Span(first, LAST_NUMBER if span.last == ledger.checkpoint else span.last)
    counts = store.count_rows(id, reach)
    faults: list[LedgerFault] = []
    for table in counts:
        if table.unaccounted:
            text = f"{table.unaccounted} of {table.rows} rows in {table.table} are not from a commit that covers"
            faults.append(LedgerFault(id, "rows", span.first, span.last, f"{text} their number"))
    for one in store.find_row_faults(id, reach, FAULT_LIMIT):
        kind: FaultKind = "rows_missing" if one.rows < one.appended else "rows_added"
        text = f"commit {one.commit_number} ({one.kind}) appended {one.appended} rows, but the tables hold {one.rows}"
        faults.append(LedgerFault(id, kind, one.first, one.last, text))
    for letter in store.find_lettered_rows(id, reach, FAULT_LIMIT):
        text = f"letter {letter.sequence_number} is {letter.status}, but {letter.table} has rows of its event"
        faults.append(LedgerFault(id, "letters", letter.sequence_number, letter.sequence_number, text))
    return RowRecount(span, sum(one.rows for one in counts), tuple(faults))
