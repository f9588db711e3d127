"""The faults that statements find in a partition: each row of a statement is a fault, and this module has its words."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from core.ledger.faults import FaultKind, LedgerFault
from core.ledger.store.audit import AuditStore
from core.model.events import PartitionId
from core.model.spans import SequenceNumber

Told = tuple[FaultKind, SequenceNumber, SequenceNumber, str]  # the kind, the numbers that it concerns, and the words

_COMPARED = ("find_stray_gaps", "find_held_faults", "find_attempt_faults", "find_retry_faults", "find_replay_faults")


def find_faults(store: AuditStore, id: PartitionId, statement: str, **values: Any) -> Iterator[LedgerFault]:
    """Yield the first faults of a partition that a statement finds."""
    yield from (LedgerFault(id, *_TOLD[statement](*row)) for row in store.find_faults(statement, id, **values))


def compare_tables(store: AuditStore, id: PartitionId) -> Iterator[LedgerFault]:
    """Yield the faults of a partition's gaps, letters, attempts and replays, besides those of absent numbers."""
    for statement in _COMPARED:
        yield from find_faults(store, id, statement)


def _range(commit: int, previous_last: SequenceNumber, first: SequenceNumber) -> Told:
    where = f"commit {commit} begins at {first}, but the range before it ends at {previous_last}"
    if first > previous_last:
        return "hole", SequenceNumber(previous_last + 1), SequenceNumber(first - 1), where
    return "overlap", first, previous_last, where


def _letters(commit: int, first: SequenceNumber, last: SequenceNumber, dead_lettered: int, letters: int) -> Told:
    return "letters", first, last, f"commit {commit} dead-lettered {dead_lettered} events, but has {letters} letters"


def _totals(commit: int, first: SequenceNumber, last: SequenceNumber) -> Told:
    text = f"the totals of commit {commit} are not those of the commit before it and its own counts"
    return "totals", first, last, text


def _absent(commit: int, first: SequenceNumber, last: SequenceNumber, absent: int, in_gaps: int) -> Told:
    text = f"commit {commit} counts {absent} absent numbers, but the gaps that begin in its range have {in_gaps}"
    return "absent", first, last, text


def _stray_gap(first: SequenceNumber, last: SequenceNumber) -> Told:
    text = f"the gap from {first} to {last} is absent, but no range counts its numbers as absent"
    return "absent", first, last, text


def _held(number: SequenceNumber) -> Told:
    return "held", number, number, f"letter {number} is held, but no commit of its number held any event"


def _attempts(number: SequenceNumber, status: str, attempts: int, newest: int, newest_status: str | None) -> Told:
    """Tell of a letter whose attempts do not lead to its status; `newest_status` is that of the last one, if any."""
    text = f"letter {number} is {status}, but its last attempt left it {newest_status}"
    if attempts != newest:
        text = f"letter {number} has {attempts} attempts, but the last one is attempt {newest}"
    elif newest_status is None:
        text = f"letter {number} is {status}, but it has no attempt"
    return "attempts", number, number, text


def _retry(commit: int, first: SequenceNumber, last: SequenceNumber, *counts: int) -> Told:
    tried, succeeded, attempts, resolved = counts
    text = (
        f"commit {commit} (retry) tried {tried} letters and resolved {succeeded}, but {attempts} attempts name it, and"
        f" {resolved} of them resolved a letter"
    )
    return "attempts", first, last, text


def _replay(job_id: str, first: SequenceNumber, last: SequenceNumber, *counts: int) -> Told:
    written, written_of_commits, rows, rows_of_commits, retracted, retracted_rows = counts
    text = (
        f"replay {job_id} counts {written} events written, {rows} rows written and {retracted} retracted, but its"
        f" commits count {written_of_commits} and {rows_of_commits} written, and {retracted_rows} retracted rows exist"
    )
    return "replays", first, last, text


_TOLD: Mapping[str, Callable[..., Told]] = {
    "find_range_faults": _range,
    "find_letter_faults": _letters,
    "find_total_faults": _totals,
    "find_absent_faults": _absent,
    "find_stray_gaps": _stray_gap,
    "find_held_faults": _held,
    "find_attempt_faults": _attempts,
    "find_retry_faults": _retry,
    "find_replay_faults": _replay,
}
