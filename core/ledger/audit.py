"""The audit: check every partition that any table names: its ranges, its letters, and all records of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from core.ledger.balance import READS
from core.ledger.books import PartitionLedger
from core.ledger.comparison import compare_tables, find_faults
from core.ledger.faults import FAULT_LIMIT, NO_PARTITION, LedgerFault
from core.ledger.ranges import WHOLE, RangeAudit, Reading, pieces
from core.ledger.store.audit import AuditStore
from core.ledger.sums import COUNTS, Commits, RangeSum
from core.model.events import PartitionId
from core.model.spans import SequenceNumber

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
    """READ the ledgers, and the faults of those that do not balance; DECIDE what to report."""
    traces = store.find_traces()
    chosen = [id for id, tables in traces.items() if partition_id in (None, id) and tables != ONLY_ANCHORED]
    audited = tuple(_audited(store, id, traces[id], reading) for id in chosen)
    return Audit(audited, tuple(stream_faults(store)))


def _audited(store: AuditStore, id: PartitionId, tables: tuple[str, ...], reading: Reading) -> AuditedPartition:
    """Audit a partition, and once more if a purge has deleted ledger rows meanwhile."""
    for _ in range(READS):
        purged = store.read_purged(id)
        found = _read(store, id, tables, reading)
        if not found.faults or store.read_purged(id) == purged:
            break
    return found


def _read(store: AuditStore, id: PartitionId, tables: tuple[str, ...], reading: Reading) -> AuditedPartition:
    ranges = RangeAudit(store, id, reading, partial(_faults_of_piece, store, id))
    ends = store.read_ledger_ends(id)
    ranges.read(ends.last_commit)
    ledger, until = ends.ledger(ranges.summed), ranges.summed.commit_number
    if not {CHECKPOINTS, LEDGER} & set(tables):
        text = f"{', '.join(tables)} name the partition, but it has neither a checkpoint nor a ledger"
        return AuditedPartition(ledger, (LedgerFault(id, "partition", ledger.first, ledger.first, text),))
    faults = [*ranges.faults, *_purge_faults(store, id, ranges.purged)]
    complete = until == ends.last_commit
    if complete:
        faults += [] if CHECKPOINTS in tables else [_without_checkpoint(id, ledger)]
        faults += _faults(store, ledger, ranges.faults, reading)
    return AuditedPartition(ledger, tuple(faults), until, complete)


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
    """Name the faults of some commits; their sum shows which faults are possible."""
    if piece.holes:
        yield from find_faults(store, id, "find_range_faults", **commits.ends, previous_last=commits.previous_last)
    if piece.rows != commits.last - commits.after:
        yield from _missing_commits(store, id, commits, piece)
    if piece.lettered:
        yield from find_faults(store, id, "find_letter_faults", **commits.ends, at_least=1)
    if piece.absent:
        yield from find_faults(store, id, "find_absent_faults", **commits.ends)
    sums = {f"{name}_before": getattr(before, name) for name in COUNTS}  # where the commit before has no row
    yield from find_faults(store, id, "find_total_faults", **commits.ends, **sums)


def _without_checkpoint(id: PartitionId, ledger: PartitionLedger) -> LedgerFault:
    text = f"the ledger ends at {ledger.last}, but the partition has no checkpoint"
    return LedgerFault(id, "checkpoint", ledger.first, ledger.last, text)


def stream_faults(store: AuditStore) -> Iterator[LedgerFault]:
    """Yield the faults of the stream's incarnations."""
    count, first, last = store.count_incarnations()
    if count and (first, last) != (1, count):
        text = f"the stream has {count} incarnations, but they are numbered from {first} to {last}"
        yield LedgerFault(NO_PARTITION, "stream", SequenceNumber(0), SequenceNumber(0), text)


def _faults(
    store: AuditStore, ledger: PartitionLedger, found: Sequence[LedgerFault], reading: Reading
) -> Iterator[LedgerFault]:
    """Name the faults of a ledger that was read to its end, besides those that were found in its ranges."""
    id = ledger.partition.partition_id
    if ledger.commits:
        yield from _fault_of_beginning(id, ledger, store.ledger.find_anchor(id))
    yield from _fault_of_ends(id, ledger)
    yield from _uncounted_commits(ledger)
    if ledger.letters != ledger.lettered and not any(one.kind == "letters" for one in found):
        yield from _letters_outside(store, ledger, reading)
    yield from _replay_letters(store, ledger)
    yield from compare_tables(store, id)


def _fault_of_beginning(
    id: PartitionId, ledger: PartitionLedger, anchor: SequenceNumber | None
) -> Iterator[LedgerFault]:
    where = f"the ledger begins at {ledger.first}, but the partition is anchored at {anchor}"
    if anchor is None:
        text = f"the ledger begins at {ledger.first}, but the partition has no anchor"
        yield LedgerFault(id, "anchor", ledger.first, ledger.last, text)
    elif ledger.first > anchor:
        yield LedgerFault(id, "hole", anchor, _before(ledger.first), where)
    elif ledger.first < anchor:
        yield LedgerFault(id, "beyond", ledger.first, _before(anchor), where)


def _fault_of_ends(id: PartitionId, ledger: PartitionLedger) -> Iterator[LedgerFault]:
    if ledger.last < ledger.checkpoint:
        text = f"the ledger ends at {ledger.last}, before the checkpoint at {ledger.checkpoint}"
        yield LedgerFault(id, "short", _next(ledger.last), ledger.checkpoint, text)
    if ledger.last > ledger.checkpoint >= 0:
        text = f"the ledger ends at {ledger.last}, after the checkpoint at {ledger.checkpoint}"
        yield LedgerFault(id, "beyond", _next(ledger.checkpoint), ledger.last, text)
    if not ledger.holes and ledger.accounted != ledger.last - ledger.first + 1:
        text = f"the ledger has {ledger.accounted} outcomes for {ledger.last - ledger.first + 1} numbers"
        yield LedgerFault(id, "counts", ledger.first, ledger.last, text)


def _letters_outside(store: AuditStore, ledger: PartitionLedger, reading: Reading) -> Iterator[LedgerFault]:
    """Name the ranges without letters in their counts that have some; else the letters lie outside of all ranges."""
    id = ledger.partition.partition_id
    faulty: list[LedgerFault] = []
    why = "some letters have numbers that no range covers"
    for after, last in pieces(store, id, 0, max(ledger.counted_commits, ledger.newest_commit)):
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


def _missing_commits(store: AuditStore, id: PartitionId, commits: Commits, piece: RangeSum) -> Iterator[LedgerFault]:
    """Yield the commits without a row. A missing batch is also a hole; a missing retry or replay shows only here."""
    for first, last in store.find_faults("find_missing_commits", id, **commits.ends):
        named = f"commit {first}" if first == last else f"commits {first} to {last}"
        yield LedgerFault(
            id, "commits", piece.first, max(piece.first, piece.last), f"the ledger has no row for {named}"
        )


def _uncounted_commits(ledger: PartitionLedger) -> Iterator[LedgerFault]:
    id = ledger.partition.partition_id
    if ledger.newest_commit > ledger.counted_commits and ledger.checkpoint >= 0:
        text = f"the ledger has a row for commit {ledger.newest_commit}, but the checkpoint has counted"
        text = f"{text} {ledger.counted_commits} commits"
        yield LedgerFault(id, "commits", ledger.first, ledger.last, text)


def _replay_letters(store: AuditStore, ledger: PartitionLedger) -> Iterator[LedgerFault]:
    id = ledger.partition.partition_id
    made, found, counted = store.count_replay_letters(id)
    if made != found:
        text = f"replays made {made} letters from events that were no letters before, but {found} of them exist"
        yield LedgerFault(id, "replay_letters", ledger.first, ledger.last, text)
    if counted not in (None, made):
        text = (
            f"replays made {made} letters from events that were no letters before, but the checkpoint counts {counted}"
        )
        yield LedgerFault(id, "totals", ledger.first, ledger.last, text)


def _next(number: SequenceNumber) -> SequenceNumber:
    return SequenceNumber(number + 1)


def _before(number: SequenceNumber) -> SequenceNumber:
    return SequenceNumber(number - 1)
