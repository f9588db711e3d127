import json
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from core import errors
from core.errors import DataRefused, HubUnreachable, TaskConflict, TaskDiffers, TaskOverlap, VersionChanged
from core.model.commits import ROWS_AT_ONCE, PartitionState
from core.model.events import Event, Partition, PartitionId, SequenceNumber, span
from core.model.rows import ReferenceKey
from core.replay import pieces
from core.replay.pieces import MOST_OPEN, LeftOut, RehearsedPiece, ReplayCommit, ReplayJob, StandingState
from core.store.database import write
from core.tasks.run import VERSION_PATIENCE, note_fault, open_parts, work_on
from core.tasks.statuses import TASK_MOVES, TaskMove, TaskStatus, TaskVerb
from core.tasks.task import TaskRequest
from examples.home_security.transform import Home
from tests.fakes.builders import EPOCH, commit, event, events, home, ids, letter, partition, reading, settled
from tests.fakes.kept import Engine
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.plain_transform import ROW_CLASSES
from tests.fakes.replaying import World, log_of, opened, order, replay_asked
from tests.fakes.store import MemoryStore, Store

P = partition()
JOB, OTHER, THIRD = (UUID(int=number, version=4) for number in (1, 2, 3))


def request(
    job_id: UUID = JOB, first: int = 0, last: int = 9, *, ids: tuple[str, ...] = ("0",), dry_run: bool = False
) -> TaskRequest:
    ranges = tuple(pieces.PartitionRange(PartitionId(id), span(first, last), "a note\n'; --") for id in ids)
    left_out = (LeftOut(PartitionId("7"), 'nothing "there"'),)
    return replay_asked(job_id, ranges, left_out, dry_run=dry_run)


def move(name: TaskVerb, job_id: UUID = JOB, *, fault: str | None = None) -> TaskMove:
    return TaskMove(job_id, name, "somebody\n", "why not?", EPOCH + timedelta(hours=1), fault)


def found(store: Store) -> ReplayJob:
    job = store.find_replay(JOB)
    assert job is not None
    return job


def progress_of(store: Store, id: str) -> pieces.PartitionProgress:
    (one,) = [one for one in found(store).partitions if one.range.partition_id == id]
    return one


@pytest.fixture
def ingested(store: Store) -> Store:
    for id in ("0", "1"):
        placed = {number: [reading(f"{id}-{number}")] for number in range(10) if number not in (3, 5)}
        outcome = settled({**placed, 3: [home(f"h-{id}")]}, letters=[letter(event(5, "kept"))])
        store.commit_batch(commit(store.read_partition(partition(id)), 0, 9, outcome))
    return store


@pytest.fixture
def running(ingested: Store) -> Store:
    opened(ingested, request())
    assert ingested.tasks.move(move("begin"))
    return ingested


def piece_of(store: Store, first: int, last: int, *, progress: pieces.PartitionProgress | None = None) -> ReplayCommit:
    state = store.read_partition(P)
    own = progress or progress_of(store, "0")
    outcome = settled({number: [reading("again")] for number in range(first, last + 1)})
    piece = pieces.Piece(span(first, last), events(first, last))
    return ReplayCommit(JOB, state, piece, outcome, {}, ROW_CLASSES, own, "test/1", EPOCH + timedelta(days=2))


def test_a_request_opens_one_job(ingested: Store, make_store: Callable[[], Store]) -> None:
    def with_digest(digest: str) -> TaskRequest:
        asked = request(dry_run=True)
        return replace(asked, order=replace(asked.order, digest=digest))

    with ThreadPoolExecutor(4) as pool:
        jobs = list(pool.map(lambda store: opened(store, with_digest("a")), [make_store() for _ in range(4)]))
    assert {job.task.requested_at for job in jobs} == {jobs[0].task.requested_at}
    for _ in range(2):
        with pytest.raises(TaskDiffers, match=str(JOB)):
            opened(ingested, with_digest("b"))
        ingested.tasks.move(move("cancel"))
        assert opened(ingested, with_digest("a")).task.status == "cancelled"
    assert len(ingested.read_replays(jobs[0].task.stream, 9)) == 1


@pytest.mark.parametrize(("first", "last"), [(0, 9), (9, 9), (4, 5), (0, 100)])
def test_a_second_job_over_a_part_is_refused_and_names_the_first(ingested: Store, first: int, last: int) -> None:
    opened(ingested, request())
    for name in ("begin", "pause", "cancel"):
        with pytest.raises(TaskOverlap) as overlap:
            opened(ingested, request(OTHER, first, last))
        assert overlap.value.task_id == JOB
        assert ingested.find_replay(OTHER) is None
        assert ingested.tasks.move(move(name))
    opened(ingested, request(OTHER, first, last))


def test_jobs_of_other_numbers_partitions_and_streams_and_dry_runs_do_not_overlap(ingested: Store) -> None:
    others = [UUID(int=number, version=4) for number in range(4, 8)]
    opened(ingested, request(others[0], dry_run=True))
    opened(ingested, request())
    opened(ingested, request(others[1], 10, 20))
    opened(ingested, request(others[2], ids=("1",)))
    opened(ingested, request(others[3]), partition(group="other").stream)
    opened(ingested, request(OTHER, dry_run=True))


def test_of_jobs_asked_for_at_once_one_gets_the_range(ingested: Store, make_store: Callable[[], Store]) -> None:
    stores, refused = [make_store() for _ in range(4)], []

    def ask(number: int) -> None:
        try:
            opened(stores[number], request(UUID(int=number + 10, version=4)))
        except TaskOverlap as overlap:
            refused.append(overlap.task_id)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
    (job,) = ingested.read_replays(P.stream, 10, None)
    assert refused == [job.task.task_id] * 3


WAYS: dict[TaskStatus, list[TaskVerb]] = {
    "planned": [],
    "running": ["begin"],
    "paused": ["pause"],
    "cancelled": ["cancel"],
    "failed": ["fail"],
}


@pytest.mark.parametrize("status", WAYS)
@pytest.mark.parametrize("name", TASK_MOVES)
def test_a_move_is_made_where_the_table_allows_it_only(ingested: Store, status: TaskStatus, name: TaskVerb) -> None:
    opened(ingested, request())
    for each in WAYS[status]:
        assert ingested.tasks.move(move(each))
    before = found(ingested)
    assert before.task.status == status
    allowed = status in TASK_MOVES[name].sources
    assert ingested.tasks.move(move(name, fault="why it ended")) == allowed
    after = found(ingested)
    assert after == before if not allowed else after.task.status == TASK_MOVES[name].target
    if allowed:
        assert after.task.fault == "why it ended"
        assert after.task.history.count("\n") == len(WAYS[status]) + 1
        assert '"by": "somebody\\n", "why": "why not?"' in after.task.history
        assert (after.task.ended_at is not None) == (after.task.status in ("cancelled", "failed"))


def test_the_fault_that_holds_up_a_job_is_stored_until_it_is_gone(running: Store) -> None:
    running.tasks.note_fault(JOB, "the hub does not answer", EPOCH)
    assert found(running).task.fault == "the hub does not answer"
    running.tasks.note_fault(JOB, "x" + "👩" * 2_000, EPOCH)  # two UTF-16 units each, as the server counts
    assert found(running).task.fault == "x" + "👩" * 999
    running.tasks.note_fault(JOB, None, EPOCH)
    assert found(running).task.fault is None
    running.tasks.move(move("pause", fault="Durable holds it"))
    running.tasks.note_fault(JOB, None, EPOCH)  # a step that was in hand has ended
    assert found(running).task.fault == "Durable holds it"
    running.tasks.move(move("cancel"))
    running.tasks.note_fault(JOB, "too late", EPOCH)
    assert found(running).task.fault is None


def everything(store: Store, engine: Engine) -> tuple[object, ...]:
    rows = [engine.rows(each) for each in ROW_CLASSES]
    return (*rows, engine.letters(), engine.replays(), engine.retracted(), found(store), store.read_partition(P))


def test_a_piece_of_a_different_version_writes_nothing(running: Store, engine: Engine) -> None:
    before = everything(running, engine)
    later = replace(piece_of(running, 0, 3), transform_version="test/2")
    with pytest.raises(TaskConflict):
        running.commit_replay(later)
    with pytest.raises(TaskConflict):
        running.note_rehearsal(RehearsedPiece(later, later.counts, ()))
    assert everything(running, engine) == before
    running.commit_replay(piece_of(running, 0, 1))
    running.tasks.move(move("pause"))
    running.tasks.move(replace(move("resume"), transform_version="test/2"))
    assert found(running).task.transform_version == "test/2"
    with pytest.raises(TaskConflict):
        running.commit_replay(piece_of(running, 2, 3))
    running.commit_replay(replace(piece_of(running, 2, 3), transform_version="test/2"))
    (progress,) = found(running).partitions
    assert (progress.next_number, progress.report.transform_versions) == (4, ("test/1", "test/2"))


def test_a_piece_that_another_one_did_first_writes_nothing(running: Store, engine: Engine) -> None:
    late, after_the_checkpoint = piece_of(running, 0, 3), piece_of(running, 0, 10)
    with pytest.raises(TaskConflict):
        running.commit_replay(after_the_checkpoint)
    running.commit_replay(piece_of(running, 0, 3))
    before = everything(running, engine)
    for again in (late, piece_of(running, 4, 5, progress=late.progress)):
        with pytest.raises(TaskConflict):
            running.commit_replay(again)
        with pytest.raises(TaskConflict):
            running.note_rehearsal(RehearsedPiece(again, again.counts, ()))
    assert everything(running, engine) == before


@pytest.mark.parametrize("name", ["pause", "cancel", "fail"])
def test_a_piece_of_a_job_that_does_not_run_writes_nothing(running: Store, engine: Engine, name: TaskVerb) -> None:
    piece = piece_of(running, 0, 3)
    running.tasks.move(move(name))
    before = everything(running, engine)
    with pytest.raises(TaskConflict):
        running.commit_replay(piece)
    with pytest.raises(TaskConflict):
        running.note_rehearsal(RehearsedPiece(piece, piece.counts, ()))
    with pytest.raises(TaskConflict):
        running.close_replay(found(running), piece.progress, ROW_CLASSES, EPOCH)
    assert everything(running, engine) == before


def test_a_partition_is_closed_when_it_is_through_and_the_job_with_its_last(ingested: Store) -> None:
    opened(ingested, request(ids=("0", "1")))
    ingested.tasks.move(move("begin"))
    ingested.commit_replay(piece_of(ingested, 0, 5))
    job = found(ingested)
    ingested.commit_replay(piece_of(ingested, 6, 9))
    with pytest.raises(TaskConflict):  # the progress is of the time before the last piece
        ingested.close_replay(job, job.partitions[0], ROW_CLASSES, EPOCH)
    assert [one.closed_at for one in found(ingested).partitions] == [None, None]
    job = found(ingested)
    ingested.close_replay(job, job.partitions[0], ROW_CLASSES, EPOCH)
    job = found(ingested)
    assert ([one.closed_at for one in job.partitions], job.task.status) == ([EPOCH, None], "running")
    assert job.partitions[0].report.states_left == 1
    last = replace(piece_of(ingested, 0, 9, progress=job.partitions[1]), state=ingested.read_partition(partition("1")))
    ingested.commit_replay(last)
    job = found(ingested)
    ingested.close_replay(job, job.partitions[1], ROW_CLASSES, EPOCH + timedelta(days=3))
    job = found(ingested)
    assert (job.task.status, job.task.ended_at) == ("done", EPOCH + timedelta(days=3))


def test_a_standing_state_says_which_event_of_the_partition_wrote_it(ingested: Store) -> None:
    keys = [ReferenceKey(Home, (f"h-{id}",)) for id in ("0", "1", "2")]
    states = [ingested.read_partition(partition(id)) for id in ("0", "1")]

    def standing(state: PartitionState) -> dict[ReferenceKey, StandingState]:
        return dict(ingested.read_standing_states(state, keys))

    mine, others = SequenceNumber(3), None
    assert standing(states[0]) == {
        keys[0]: StandingState(home("h-0"), mine),
        keys[1]: StandingState(home("h-1"), others),
    }
    assert standing(states[1]) == {
        keys[0]: StandingState(home("h-0"), others, comes_first=True),
        keys[1]: StandingState(home("h-1"), mine),
    }


def test_what_can_be_replayed_reaches_from_the_ledgers_beginning_to_the_checkpoint(store: Store) -> None:
    assert store.read_replayable(P.stream) == ()
    store.commit_batch(commit(store.read_partition(partition("10")), 7, 9))
    store.commit_batch(commit(store.read_partition(partition("10")), 10, 12))
    store.commit_batch(commit(store.read_partition(partition("2")), 0, 0))
    store.commit_batch(commit(store.read_partition(partition("0", group="other")), 0, 0))
    reach = [(one.partition_id, *one.span.ends) for one in store.read_replayable(P.stream)]
    assert reach == [("2", 0, 0), ("10", 7, 12)]


def test_jobs_are_listed_the_newest_first_in_pages_that_leave_none_out(ingested: Store) -> None:
    made = [next(iter(ids(number))) for number in range(7)]
    for number, job_id in enumerate(made):
        asked = request(job_id, dry_run=True)
        order = replace(asked.order, at=EPOCH + timedelta(seconds=number // 2))
        opened(ingested, replace(asked, order=order))
    opened(ingested, request(OTHER, dry_run=True), partition(group="other").stream)
    listed: list[tuple[datetime, UUID]] = []
    while page := ingested.read_replays(P.stream, 2, listed[-1] if listed else None):
        listed += [(job.task.requested_at, job.task.task_id) for job in page]
    assert listed == sorted(listed, key=lambda one: (one[0], str(one[1])), reverse=True)
    assert {job_id for _, job_id in listed} == set(made)


def test_diffs_are_read_in_order_of_partition_and_number_after_any_of_them(ingested: Store) -> None:
    places = [("2", 5), ("2", 9), ("10", 1), ("10", 100), ("10", 2**62)]
    opened(ingested, request(ids=("2", "10"), last=9, dry_run=True))
    ingested.tasks.move(move("begin"))
    for id in ("10", "2"):
        piece = replace(
            piece_of(ingested, 0, 9, progress=progress_of(ingested, id)), state=ingested.read_partition(partition(id))
        )
        diffs = tuple(
            pieces.EventDiff(PartitionId(p), SequenceNumber(n), f'{{"ß": {n}}}') for p, n in places if p == id
        )
        ingested.note_rehearsal(RehearsedPiece(piece, piece.counts, diffs))
    every = ingested.read_replay_diffs(JOB, None, 100)
    assert [(one.partition_id, one.sequence_number, one.diff) for one in every] == [
        (id, number, f'{{"ß": {number}}}') for id, number in places
    ]
    for at, one in enumerate(every):
        assert ingested.read_replay_diffs(JOB, (one.partition_id, one.sequence_number), 2) == every[at + 1 : at + 3]


def test_no_more_replays_are_open_than_the_limit_dry_runs_included(ingested: Store) -> None:
    jobs = [UUID(int=number, version=4) for number in range(MOST_OPEN)]
    for number, job_id in enumerate(jobs):
        opened(ingested, request(job_id, dry_run=number > 0))
    over = UUID(int=MOST_OPEN, version=4)
    assert ingested.tasks.move(move("pause", jobs[1]))
    assert ingested.tasks.move(move("begin", jobs[2]))
    assert set(ingested.read_open_tasks(P.stream)) == {*jobs} - {jobs[1]}
    assert ingested.read_open_tasks(partition(group="other").stream) == ()
    for ended in jobs:  # one holds the range, one is paused, and one runs
        with pytest.raises(errors.TooManyTasks, match=f"{MOST_OPEN} replays are open"):
            opened(ingested, request(over, dry_run=True))
        assert ingested.find_replay(over) is None
        assert ingested.tasks.move(move("cancel", ended))
        opened(ingested, request(over, dry_run=True))
        over = UUID(int=over.int + 1)
    opened(ingested, request(over, dry_run=True), partition(group="other").stream)


def test_a_replay_that_ends_leaves_none_of_its_many_states_and_none_of_a_job_that_ended_before(store: Store) -> None:
    """States are deleted after the end of their job, a part at a time. The next job deletes the rest of a
    process that died."""
    keys = [f"key {number}" for number in range(2 * ROWS_AT_ONCE + 1)]
    places = [{"task_id": str(job_id), "partition_id": "0"} for job_id in (JOB, OTHER)]
    opened(store, request(THIRD, dry_run=True))
    for job_id, place in zip((JOB, OTHER), places, strict=True):
        opened(store, request(job_id, dry_run=True))
        carried = json.dumps([[key, 4, "{}"] for key in keys])
        write(store.database, "a replay", "carry_states", **place, carried=carried)

    def left() -> list[int]:
        asked = json.dumps([[key] for key in keys])
        return [len(store.database.ask("read_carried", **place, keys=asked)) for place in places]

    store.tasks.move(move("cancel"))  # the process dies right after
    assert left() == [len(keys), len(keys)]
    assert store.tasks.move(move("cancel", THIRD))
    store.forget_states()
    assert left() == [0, len(keys)]
    assert store.tasks.move(move("cancel", OTHER))
    store.forget_states()
    assert left() == [0, 0]


ZERO = PartitionId("0")


class Small(World):
    """A world of partition 0 whose pieces are small, and which does something before and after a piece is committed."""

    def __init__(self, logs: list[Event] | None = None, hub: type[MemoryHub] = MemoryHub) -> None:
        self.before: Callable[[ReplayCommit], object] = lambda commit: None
        self.after: Callable[[ReplayCommit], object] = lambda commit: None
        self.spans: list[tuple[int, int]] = []
        small = self

        class Watched(MemoryStore):
            def commit_replay(self, commit: ReplayCommit) -> pieces.ReplayCounts:
                small.before(commit)
                counts = super().commit_replay(commit)
                small.spans.append(commit.piece.span.ends)
                small.after(commit)
                return counts

        super().__init__(Watched(), {"0": logs or log_of(*["reading a"] * 35)}, piece=10)
        self.hub = hub(self.logs)

    def begun(self, *keys: str, dry_run: bool = False) -> ReplayJob:
        job = self.ask(order(dry_run=dry_run, keys=keys))
        assert open_parts(job.task.task_id, self.means) == (ZERO,)
        return self.find(job.task.task_id)

    def slice(self, job: ReplayJob, seconds: float = 0) -> Any:
        return work_on(job.task.task_id, ZERO, self.means, self.clock.now() + timedelta(seconds=seconds))

    def move(self, job: ReplayJob, move: TaskVerb, version: str | None = None) -> None:
        moved = TaskMove(job.task.task_id, move, "somebody", "", self.clock.now(), transform_version=version)
        assert self.store.tasks.move(moved)


def test_a_job_begins_once_and_its_range_is_one_transaction_a_piece() -> None:
    small = Small()
    job = small.begun()
    assert (job.task.status, job.task.history.count("begin")) == ("running", 1)
    assert open_parts(job.task.task_id, small.means) == (ZERO,)
    report = small.slice(job, seconds=60)
    assert small.spans == [(0, 9), (10, 19), (20, 29), (30, 34)]
    assert (report.is_over, report.pieces, report.looked_at) == (True, 4, 35)
    assert open_parts(job.task.task_id, small.means) == ()


@pytest.mark.parametrize("move", ["pause", "cancel"])
def test_a_job_stops_between_two_pieces_and_what_was_replayed_stays(move: TaskVerb) -> None:
    small = Small()
    job = small.begun()
    small.after = lambda commit: small.move(job, move) if commit.piece.span.first == 10 else None
    report = small.slice(job, seconds=60)
    assert (report.is_over, small.spans) == (True, [(0, 9), (10, 19)])
    assert small.find(job.task.task_id).partitions[0].next_number == 20
    assert open_parts(job.task.task_id, small.means) == ()


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_driver_of_a_different_version_leaves_a_task_until_it_is_resumed_with_that_version(dry_run: bool) -> None:
    small = Small()
    old, new = small.transform, replace(small.transform, version="plain/2")
    job = small.ask(order(dry_run=dry_run))
    small.transform = new
    with pytest.raises(VersionChanged):
        open_parts(job.task.task_id, small.means)
    assert small.find(job.task.task_id).task.status == "planned"
    small.transform = old
    open_parts(job.task.task_id, small.means)
    small.slice(job)

    def now() -> tuple[str, str | None, int]:
        found = small.find(job.task.task_id)
        return found.task.status, found.task.fault, found.partitions[0].next_number

    def step(seconds: float = 60) -> None:
        try:
            if open_parts(job.task.task_id, small.means):
                small.slice(job, seconds)
        except VersionChanged as fault:
            note_fault(job.task.task_id, fault, small.means)

    fault = str(VersionChanged("plain/1", "plain/2"))
    small.transform = new
    small.clock.advance(3600)  # no driver ran
    for _ in range(2):
        step()
        assert now() == ("running", fault, 10)
        small.clock.advance(VERSION_PATIENCE.total_seconds() - 1)
        small.transform = old  # one still runs, in a rolling deployment
        note_fault(job.task.task_id, None, small.means)
        small.transform = new
    with pytest.raises(VersionChanged):
        small.slice(job)
    step()
    small.clock.advance(VERSION_PATIENCE.total_seconds())
    step()
    step()
    assert now() == ("paused", fault, 10)
    small.move(job, "resume", "plain/2")
    small.transform = old
    with pytest.raises(VersionChanged):
        small.slice(job, seconds=60)
    small.transform = new
    step()
    assert now() == ("done", None, 35)
    assert small.find(job.task.task_id).partitions[0].report.transform_versions == ("plain/1", "plain/2")


def test_a_refused_letter_is_no_fault_of_the_rows_and_goes_to_the_caller() -> None:
    small = Small(log_of(*["reading a"] * 4))

    def refuse(commit: ReplayCommit) -> None:
        if any(number == 2 for number in commit.numbers):
            raise DataRefused("no such table")

    small.before = refuse
    job = small.begun()
    with pytest.raises(DataRefused):
        small.slice(job, seconds=60)
    assert small.find(job.task.task_id).partitions[0].next_number == 2  # what was before it stands


class Cutting(MemoryHub):
    def read_range(
        self, partition: Partition, first: SequenceNumber, last: SequenceNumber, deadline: datetime
    ) -> Generator[Event, None, None]:
        for count, one in enumerate(super().read_range(partition, first, last, deadline)):
            if count == 15:
                raise HubUnreachable("cut")
            yield one


def test_a_hub_that_is_cut_off_loses_no_event_and_names_none_as_gone() -> None:
    small = Small(hub=Cutting)
    job, faults = small.begun(), 0
    while open_parts(job.task.task_id, small.means):
        try:
            small.slice(job, seconds=60)
        except HubUnreachable:
            faults += 1
    ended = small.find(job.task.task_id)
    assert (faults, ended.counts.events, ended.counts.gone) == (2, 35, 0)


@pytest.mark.parametrize(
    ("dry_run", "seconds", "places"), [(True, 4.5, [30, 60, 90]), (False, 4.5, [30, 60, 90]), (False, 60, [90])]
)
def test_a_replay_by_key_that_finds_nothing_advances(dry_run: bool, seconds: float, places: list[int]) -> None:
    small = Small([event(n, "reading a", key="abc"[n % 3]) for n in range(90)])

    class Slow(MemoryHub):
        """A hub that needs a tenth of a second for each event."""

        def read_range(
            self, partition: Partition, first: SequenceNumber, last: SequenceNumber, deadline: datetime
        ) -> Generator[Event, None, None]:
            for one in super().read_range(partition, first, last, deadline):
                small.clock.advance(0.1)
                if small.clock.now() >= deadline:
                    raise HubUnreachable("late")
                yield one

    small.hub = Slow(small.logs)
    job, found = small.begun("nobody", dry_run=dry_run), []
    while open_parts(job.task.task_id, small.means):
        small.slice(job, seconds)
        found.append(small.find(job.task.task_id).partitions[0].next_number)
    assert found == places
    if seconds == 60:
        assert small.spans == [(0, 49), (50, 89)]
    ended = small.find(job.task.task_id)
    assert (ended.task.status, ended.counts.events, ended.counts.gone, ended.others) == ("done", 0, 0, 90)
