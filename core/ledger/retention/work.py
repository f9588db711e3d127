"""Work on the open purge, piece by piece: each is one transaction that also moves the job."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import accumulate

from core.errors import InfrastructureFault
from core.ledger.retention.chain import LedgerRow, PurgeLink, SettledLetter, linked, with_ledger_rows, with_letters
from core.ledger.retention.pieces import LedgerPiece, LetterPiece, PurgeConflict, PurgeReach
from core.ledger.retention.purge import NOTHING_FOUND, Found, PurgeJob, Task, tasks_of
from core.ledger.store.purges import Purges
from core.model.events import PartitionId
from core.model.locks import ROWS_AT_ONCE

LEASE = timedelta(minutes=10)  # of a process that works on a job: if it dies, another one goes on after that
DEADLINE = timedelta(days=2)  # of a job: an open one keeps all others out
LEDGER_ROW, LETTER, ATTEMPT = 289, 530, 310  # bytes of a row, a letter without its body: docs/capacity.md measures them
ROW_BYTES = {  # the last four are assumed
    "retracted_row": 340,
    "staged_event": 230,
    "replay_diff": 550,
    "redrive_piece": 4_000,
    "audit_job": 3_000,
    "purge_job": 3_000,
    "aggregation_failure": 3_000,
}

Verify = Callable[[PartitionId, datetime], int | None]  # the faults of an audit; None: its time was over


@dataclass(frozen=True, slots=True)
class PurgeMeans:
    """The parts of a purge. `jobs` are the aggregates that the app runs; `now` is the clock. A transaction has at most
    `rows_of_piece` rows of a table, attempts included, and at most `letters_of_piece` letters."""

    store: Purges
    verify: Verify
    jobs: tuple[str, ...]
    now: Callable[[], datetime]
    rows_of_piece: int = ROWS_AT_ONCE
    letters_of_piece: int = ROWS_AT_ONCE


def work_on_purge(means: PurgeMeans, until: datetime) -> PurgeJob | None:
    """Work on the open job until a time; return it, or None when there is nothing to do.

    Each step is stored. After a fault, the job waits for the next call; at its deadline, it fails.
    """
    following = means.store.claim_purge(means.now(), means.now() + LEASE)
    while (job := following) is not None and job.status == "open":
        if means.now() >= job.request.requested_at + DEADLINE:
            return _stored(means, replace(job, fault=_late(job), status="failed", ended_at=means.now()))
        if means.now() >= until:
            return _stored(means, job, claim_for=timedelta())
        try:
            following = _step(means, job)
        except PurgeConflict:
            return means.store.find_purge(job.request.purge_id)  # the next call continues, unless the job is over
        except InfrastructureFault as fault:
            return _stored(means, replace(job, fault=str(fault)), claim_for=timedelta())
    return job


def _late(job: PurgeJob) -> str:
    return f"the purge was not done in {DEADLINE}" + (f": {job.fault}" if job.fault else "")


def _stored(means: PurgeMeans, job: PurgeJob, claim_for: timedelta = LEASE) -> PurgeJob | None:
    now = means.now()
    return replace(job, step=job.step + 1) if means.store.record_purge(job, now, now + claim_for) else None


def _step(means: PurgeMeans, job: PurgeJob) -> PurgeJob | None:
    """Find the tasks; then take one piece of the first task after the other; then end."""
    if job.tasks is None:
        return _stored(means, replace(job, tasks=tasks_of(means.store.read_purge_partitions()), fault=None))
    if not job.tasks:
        return _stored(means, replace(job, status="done", fault=None, ended_at=means.now()))
    task, id = job.tasks[0], job.tasks[0].partition_id
    if id is not None and task.table == "event_hub_checkpoint":
        return _stored(means, _verified(means, job, id))
    if id is not None and task.table == "batch_ledger":
        return _ledger(means, job, id)
    if id is not None and task.table == "event_hub_dead_letter":
        return _letters(means, job, id)
    return _rows(means, job, task)


def _verified(means: PurgeMeans, job: PurgeJob, id: PartitionId) -> PurgeJob:
    """Audit a partition; one with faults is left as it is, because what is purged can no longer be looked at."""
    tasks, faults = job.tasks or (), means.verify(id, means.now() + LEASE / 2)
    if faults is None:
        return job.after(NOTHING_FOUND, tasks)
    if not faults:
        return job.after(NOTHING_FOUND, tasks[1:])
    note = f"partition {id} has {faults} faults: nothing of it is purged until an audit finds none"
    left = tuple(one for one in tasks if one.partition_id != id)
    return job.after(Found(notes=(note,)), left)


def _ledger(means: PurgeMeans, job: PurgeJob, id: PartitionId) -> PurgeJob | None:
    reach = means.store.read_reach(id)
    last, why = ledger_limit(reach, means.store.read_cuts(id), means.jobs)
    before, after = _before(job, reach), reach.link.commit_number
    if job.request.is_dry_run or reach.audit_is_open or last <= after:
        found = means.store.count_ledger(id, after, last, before)[0] if last > after else NOTHING_FOUND
        wait = "an audit job is open" if reach.audit_is_open else why
        counted = replace(found, bytes=LEDGER_ROW * found.rows) if job.request.is_dry_run else NOTHING_FOUND
        return _stored(means, job.after(replace(counted, notes=(f"partition {id}: {wait}",)), _rest(job)))
    rows = _old_rows(means.store.read_ledger_rows(id, after, means.rows_of_piece), last, before)
    if not rows:
        return _stored(means, job.after(NOTHING_FOUND, _rest(job)))
    if changed := means.store.find_changed(rows):
        return _stored(means, _left(job, id, changed[0]))
    now = means.now()
    link = _linked(job, reach.link, with_ledger_rows(reach.link, rows), now)
    retracted = means.store.count_retracted(id, after, rows[-1].commit_number)
    piece = LedgerPiece(id, rows, link, retracted)
    times = [row.committed_at for row in rows]
    found = Found(len(rows), LEDGER_ROW * len(rows), min(times), max(times))
    following = job.after(found, job.tasks or () if len(rows) == means.rows_of_piece else _rest(job))
    means.store.purge_ledger(piece, following, now, now + LEASE)
    return replace(following, step=job.step + 1)


def _left(job: PurgeJob, id: PartitionId, commit: int) -> PurgeJob:
    """Leave a partition: an audit reads no range twice, and after a purge nobody could see the change."""
    note = f"partition {id}: commit {commit} has changed since it was written, so its ledger and its letters stay"
    return job.after(Found(notes=(note,)), tuple(one for one in job.tasks or () if one.partition_id != id))


def _letters(means: PurgeMeans, job: PurgeJob, id: PartitionId) -> PurgeJob | None:
    reach, before = means.store.read_reach(id), job.request.before("event_hub_dead_letter")
    if job.request.is_dry_run:
        link = _reached(means, job, id, reach)
        counted = means.store.count_letters(id, link, before)
        size = counted.bytes + (LETTER + ATTEMPT) * counted.rows  # one attempt each
        return _stored(means, job.after(replace(counted, bytes=size), _rest(job)))
    read = means.store.read_settled_letters(id, reach.link, before, means.letters_of_piece)
    letters = _within(read, means.rows_of_piece)
    if reach.audit_is_open or not letters:
        return _stored(means, job.after(NOTHING_FOUND, _rest(job)))
    now = means.now()
    link = _linked(job, reach.link, with_letters(reach.link, letters), now)
    times = [one.settled_at for one in letters]
    bytes_ = sum(LETTER + one.body_bytes + ATTEMPT * one.attempts for one in letters)
    found = Found(len(letters), bytes_, min(times), max(times))
    is_last = len(letters) == len(read) < means.letters_of_piece
    following = job.after(found, _rest(job) if is_last else job.tasks or ())
    means.store.purge_letters(LetterPiece(id, letters, link), following, now, now + LEASE)
    return replace(following, step=job.step + 1)


def _within(letters: tuple[SettledLetter, ...], most: int) -> tuple[SettledLetter, ...]:
    """Return the first of these letters that have no more attempts together than this number, and at least one."""
    sums = accumulate(one.attempts for one in letters)
    return letters[: max(1, sum(attempts <= most for attempts in sums))]


def _reached(means: PurgeMeans, job: PurgeJob, id: PartitionId, reach: PurgeReach) -> PurgeLink:
    """Return the link that the ledger of a dry run would reach."""
    last, _ = ledger_limit(reach, means.store.read_cuts(id), means.jobs)
    after = reach.link.commit_number
    return means.store.count_ledger(id, after, last, _before(job, reach))[1] if last > after else reach.link


def _rows(means: PurgeMeans, job: PurgeJob, task: Task) -> PurgeJob | None:
    before = job.request.before(task.table)
    if job.request.is_dry_run:
        counted = means.store.count_rows(task, before)
        size = max(counted.bytes, ROW_BYTES[task.table] * counted.rows)
        return _stored(means, job.after(replace(counted, bytes=size), _rest(job)))
    now = means.now()
    piece = means.store.find_rows(task, before, means.rows_of_piece)
    found = Found(piece.rows, ROW_BYTES[task.table] * piece.rows)
    following = job.after(found, _rest(job) if piece.is_last else job.tasks or ())
    means.store.purge_rows(piece, following, now, now + LEASE)
    return replace(following, step=job.step + 1)


def _linked(job: PurgeJob, before: PurgeLink, sums: PurgeLink, now: datetime) -> PurgeLink:
    return linked(before, sums, str(job.request.purge_id), job.request.requested_by, now)


def _rest(job: PurgeJob) -> tuple[Task, ...]:
    return (job.tasks or ())[1:]


def _before(job: PurgeJob, reach: PurgeReach) -> datetime:
    """Return the time before which ledger rows are old: those since the request of an open replay may be its own."""
    old = job.request.before("batch_ledger")
    return old if reach.replay_at is None else min(old, reach.replay_at)


def _old_rows(rows: tuple[LedgerRow, ...], last: int, before: datetime) -> tuple[LedgerRow, ...]:
    """Return the rows up to a commit, and before the first one that is not old."""
    old = []
    for row in rows:
        if row.commit_number > last or row.committed_at >= before:
            break
        old.append(row)
    return tuple(old)


def ledger_limit(reach: PurgeReach, cuts: Mapping[str, int], jobs: tuple[str, ...]) -> tuple[int, str]:
    """Return the last commit of a partition whose ledger row may go, and the reason why none after it may."""
    limits = [
        (reach.newest_batch - 1, "its newest batch stays"),
        (reach.verified_to, f"an audit has verified the ledger up to commit {reach.verified_to}"),
        *((cuts.get(job, 0), f"{job} has passed commit {cuts.get(job, 0)}") for job in {**dict.fromkeys(jobs), **cuts}),
    ]
    if reach.replay_from is not None:
        limits.append((reach.replay_from - 1, f"an open replay begins at commit {reach.replay_from}"))
    last, why = min(limits, key=lambda one: one[0])
    return last, f"{why}: its ledger rows after commit {last} stay"
