"""Compare the tables of the books with each other: gaps, held letters, attempts and replays with the ledger."""

from collections.abc import Iterator

from core.ledger.faults import FAULT_LIMIT, AbsentFault, AttemptFault, LedgerFault, ReplayFault, RetryFault
from core.ledger.store.ledger import Ledger
from core.ledger.sums import Commits
from core.model.events import PartitionId


def compare_tables(store: Ledger, id: PartitionId) -> Iterator[LedgerFault]:
    """Yield the faults of a partition's gaps, letters, attempts and replays, besides those of absent numbers."""
    for gap in store.find_stray_gaps(id, FAULT_LIMIT):
        text = f"the gap from {gap.first} to {gap.last} is absent, but no range counts its numbers as absent"
        yield LedgerFault(id, "absent", gap.first, gap.last, text)
    for number in store.find_held_faults(id, FAULT_LIMIT):
        text = f"letter {number} is held, but no commit of its number held any event"
        yield LedgerFault(id, "held", number, number, text)
    yield from (_attempt_fault(id, one) for one in store.find_attempt_faults(id, FAULT_LIMIT))
    yield from (_retry_fault(id, one) for one in store.find_retry_faults(id, FAULT_LIMIT))
    yield from (_replay_fault(id, one) for one in store.find_replay_faults(id, FAULT_LIMIT))


def absent_faults(store: Ledger, id: PartitionId, commits: Commits) -> Iterator[LedgerFault]:
    """Yield the faults of the absent numbers of some commits."""
    yield from (_absent_fault(id, one) for one in store.find_absent_faults(id, commits, FAULT_LIMIT))


def _absent_fault(id: PartitionId, one: AbsentFault) -> LedgerFault:
    text = f"commit {one.commit_number} counts {one.absent} absent numbers, but the gaps that begin in its range have"
    return LedgerFault(id, "absent", one.first, one.last, f"{text} {one.in_gaps}")


def _attempt_fault(id: PartitionId, one: AttemptFault) -> LedgerFault:
    number = one.sequence_number
    if one.attempts != one.newest:
        text = f"letter {number} has {one.attempts} attempts, but the last one is attempt {one.newest}"
    elif one.newest_status is None:
        text = f"letter {number} is {one.status}, but it has no attempt"
    else:
        text = f"letter {number} is {one.status}, but its last attempt left it {one.newest_status}"
    return LedgerFault(id, "attempts", number, number, text)


def _retry_fault(id: PartitionId, one: RetryFault) -> LedgerFault:
    text = (
        f"commit {one.commit_number} (retry) tried {one.tried} letters and resolved {one.succeeded}, but"
        f" {one.attempts} attempts name it, and {one.resolved} of them resolved a letter"
    )
    return LedgerFault(id, "attempts", one.first, one.last, text)


def _replay_fault(id: PartitionId, one: ReplayFault) -> LedgerFault:
    text = (
        f"replay {one.job_id} counts {one.written} events written, {one.rows_written} rows written and"
        f" {one.rows_retracted} retracted, but its commits count {one.written_of_commits} and {one.rows_of_commits}"
        f" written, and {one.retracted_rows} retracted rows exist"
    )
    return LedgerFault(id, "replays", one.first, one.last, text)
