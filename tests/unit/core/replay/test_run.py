"""core/replay/run.py: a job is worked through piece by piece, by whomever, however often, until it is stopped."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from core.errors import (
    CommitOutcomeUnknown,
    DataRefused,
    HubUnreachable,
    ReplayConflict,
    StoreUnavailable,
    StreamIncarnationChanged,
)
from core.model.commits import PartitionState
from core.model.events import Event, Partition, PartitionId
from core.model.jobs import JobMove, JobVerb
from core.model.rows import References, Row
from core.model.spans import SequenceNumber, Span
from core.replay.job import ReplayJob
from core.replay.pieces import ReplayCommit
from core.replay.run import CONFLICT_LIMIT, ReplayMeans, note_fault, open_partitions, replay_slice, request_replay
from examples.home_security.transform import SensorReading
from tests.fakes.builders import event, events
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.fakes.replaying import MOST, World, changed, log_of, order

ZERO = PartitionId("0")


class Watched(MemoryStore):
    """A store that does something before it commits a piece, and fails on request."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[ReplayCommit], object] = lambda commit: None
        self.after: Callable[[ReplayCommit], object] = lambda commit: None
        self.pieces: list[Span] = []

    def commit_replay(self, commit: ReplayCommit) -> int:
        self.before(commit)
        number = super().commit_replay(commit)
        self.pieces.append(commit.piece.span)
        self.after(commit)
        return number


def world(*bodies: str, piece: int = 10) -> "Small":
    return Small(Watched(), {"0": log_of(*(bodies or ["reading a"] * 35))}, piece=piece)


class Small(World):
    """A world whose pieces are small."""

    def __init__(self, store: MemoryStore, logs: dict[str, list[Event]], piece: int) -> None:
        super().__init__(store, logs)
        self.piece = piece

    @property
    def means(self) -> ReplayMeans:
        return replace(super().means, piece=self.piece)

    @property
    def watched(self) -> Watched:
        assert isinstance(self.store, Watched)
        return self.store

    def slice(self, job: ReplayJob, seconds: float = 0) -> Any:
        return replay_slice(job.request.job_id, ZERO, self.means, self.clock.now() + timedelta(seconds=seconds))

    def move(self, job: ReplayJob, move: JobVerb) -> None:
        assert self.store.move_replay(JobMove(job.request.job_id, move, "somebody", "", self.clock.now()))


def begun(small: Small, *, dry_run: bool = False) -> ReplayJob:
    job = small.ask(order(dry_run=dry_run))
    assert open_partitions(job.request.job_id, small.means) == (ZERO,)
    return small.find(job.request.job_id)


def spans(small: Small) -> list[tuple[int, int]]:
    return [(one.first, one.last) for one in small.watched.pieces]


def test_a_range_is_one_transaction_a_piece() -> None:
    small = world()
    report = small.slice(begun(small), seconds=60)
    assert spans(small) == [(0, 9), (10, 19), (20, 29), (30, 34)]
    assert (report.is_over, report.pieces, report.events) == (True, 4, 35)


def test_a_slice_whose_time_is_up_does_one_piece_and_the_next_continues_after_it() -> None:
    small = world()
    job = begun(small)
    reports = [small.slice(job) for _ in range(4)]
    assert [one.is_over for one in reports] == [False, False, False, True]
    assert spans(small) == [(0, 9), (10, 19), (20, 29), (30, 34)]
    assert small.find(job.request.job_id).status == "done"


def test_a_job_that_is_planned_begins_once_and_tells_the_partitions_with_work_left() -> None:
    small = world()
    job = begun(small)
    assert job.status == "running"
    assert job.history.count("begin") == 1
    assert open_partitions(job.request.job_id, small.means) == (ZERO,)
    small.slice(job, seconds=60)
    assert open_partitions(job.request.job_id, small.means) == ()


@pytest.mark.parametrize("move", ["pause", "cancel"])
def test_a_job_stops_between_two_pieces_and_what_was_replayed_stays(move: JobVerb) -> None:
    small = world()
    job = begun(small)
    small.watched.after = lambda commit: small.move(job, move) if commit.piece.span.first == 10 else None
    report = small.slice(job, seconds=60)
    assert (report.is_over, spans(small)) == (True, [(0, 9), (10, 19)])
    assert small.find(job.request.job_id).partitions[0].next_number == 20
    assert open_partitions(job.request.job_id, small.means) == ()


def test_a_piece_that_is_being_made_while_the_job_is_paused_is_rolled_back() -> None:
    small = world()
    job = begun(small)
    small.watched.before = lambda commit: small.move(job, "pause")
    small.slice(job, seconds=60)
    assert small.watched.replays() == []


def test_a_paused_job_goes_on_where_it_stopped() -> None:
    small = world()
    job = begun(small)
    small.slice(job)
    small.move(job, "pause")
    assert small.slice(job, seconds=60).pieces == 0
    small.move(job, "resume")
    small.slice(job, seconds=60)
    assert spans(small) == [(0, 9), (10, 19), (20, 29), (30, 34)]


def test_two_who_work_on_one_partition_do_each_piece_once() -> None:
    small = world()
    job = begun(small)
    others = iter([False, True, False, True, False, False])
    small.watched.before = lambda commit: next(others, False) and small.slice(job)
    small.slice(job, seconds=60)
    numbers = [number for span in small.watched.pieces for number in range(span.first, span.last + 1)]
    assert sorted(numbers) == list(range(35))
    assert small.find(job.request.job_id).counts.events == 35


@pytest.mark.parametrize("stands", [True, False])
def test_a_piece_whose_answer_was_lost_is_looked_for_and_done_once(stands: bool) -> None:
    small, lost = world(), iter([True])

    def lose(commit: ReplayCommit) -> None:
        if next(lost, False):
            raise CommitOutcomeUnknown("not answered")

    if stands:
        small.watched.after = lose
    else:
        small.watched.before = lose
    job = begun(small)
    small.slice(job, seconds=60)
    assert spans(small) == [(0, 9), (10, 19), (20, 29), (30, 34)]
    assert small.find(job.request.job_id).counts.events == 35


def test_conflicts_without_end_are_for_the_caller() -> None:
    small, tries = world(), []

    def conflict(commit: ReplayCommit) -> None:
        tries.append(commit)
        raise ReplayConflict(commit.partition, commit.job_id)

    small.watched.before = conflict
    with pytest.raises(ReplayConflict):
        small.slice(begun(small), seconds=60)
    assert len(tries) == CONFLICT_LIMIT


def test_a_refused_letter_is_no_fault_of_the_rows_and_goes_to_the_caller() -> None:
    small = world(*["reading a"] * 4)

    def refuse(commit: ReplayCommit) -> None:
        if any(number == 2 for number in commit.numbers):
            raise DataRefused("no such table")

    small.watched.before = refuse
    job = begun(small)
    with pytest.raises(DataRefused):
        small.slice(job, seconds=60)
    assert small.find(job.request.job_id).partitions[0].next_number == 2  # what was before it stands


def test_an_event_of_another_hub_ends_the_job_as_failed() -> None:
    small = world()
    late = small.hub.held["0"][SequenceNumber(12)]
    small.hub.held["0"][SequenceNumber(12)] = structs.replace(late, enqueued_at=late.enqueued_at + timedelta(days=99))
    job = begun(small)
    with pytest.raises(StreamIncarnationChanged):
        small.slice(job, seconds=60)
    ended = small.find(job.request.job_id)
    assert (ended.status, ended.partitions[0].next_number) == ("failed", 10)
    assert "incarnation" in (ended.fault or "")


class Cutting(MemoryHub):
    """A hub whose line is cut behind some events of each read."""

    def read_range(
        self, partition: Partition, first: SequenceNumber, last: SequenceNumber, deadline: datetime
    ) -> Generator[Event, None, None]:
        for count, one in enumerate(super().read_range(partition, first, last, deadline)):
            if count == 15:
                raise HubUnreachable("cut")
            yield one


def test_a_hub_that_is_cut_off_loses_no_event_and_names_none_as_gone() -> None:
    small = world()
    small.hub = Cutting(small.logs)
    job, faults = begun(small), 0
    while open_partitions(job.request.job_id, small.means):
        try:
            small.slice(job, seconds=60)
        except HubUnreachable:
            faults += 1
    ended = small.find(job.request.job_id)
    assert (faults, ended.counts.events, ended.counts.gone) == (2, 35, 0)


def test_the_fault_that_holds_a_job_up_is_told_until_it_is_over() -> None:
    small = world()
    job = begun(small)
    note_fault(job.request.job_id, HubUnreachable("cut"), small.means)
    assert small.find(job.request.job_id).fault == "cut"
    note_fault(job.request.job_id, None, small.means)
    assert small.find(job.request.job_id).fault is None


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_job_whose_making_was_not_answered_is_made_once(is_kept: bool) -> None:
    class Unanswering(MemoryStore):
        lost = 1

        def open_replay(self, request: Any) -> None:
            self.lost -= 1
            if self.lost < 0 or is_kept:
                super().open_replay(request)
            if self.lost == 0:
                raise CommitOutcomeUnknown("not answered")

    small = Small(Unanswering(), {"0": list(events(0, 9, "quiet"))}, piece=10)
    job = request_replay(order(), small.means, MOST)
    assert [one.request.job_id for one in small.store.read_replays(small.partition("0").stream, 10, None)] == [
        job.request.job_id
    ]


def test_a_job_that_cannot_be_read_after_it_was_made_is_for_the_caller() -> None:
    class Forgetful(MemoryStore):
        def find_replay(self, job_id: Any) -> None:
            return None

    with pytest.raises(CommitOutcomeUnknown, match="look for it in the list"):
        request_replay(order(), Small(Forgetful(), {"0": list(events(0, 9, "quiet"))}, piece=10).means, MOST)


def test_a_range_of_which_the_hub_has_nothing_left_is_told_as_gone_and_its_rows_stay() -> None:
    small = world()
    small.hub.expire_before("0", 35)
    job = begun(small)
    small.slice(job, seconds=60)
    ended = small.find(job.request.job_id)
    assert (ended.status, ended.counts.events, ended.counts.gone) == ("done", 0, 35)
    assert [(one.first, one.last) for one in ended.partitions[0].gone_ranges] == [(0, 34)]
    assert len(small.watched.rows(SensorReading)) == 35
    (kept,) = small.watched.replays()
    assert (kept.first, kept.last, kept.rows_written) == (0, 34, 0)


def test_a_transform_that_changes_between_two_pieces_is_named_by_each_commit() -> None:
    def other(event: Event, references: References) -> Iterable[Row]:
        return []

    small = world()
    job = begun(small)
    small.slice(job)
    small.transform = changed(other, "plain/2")
    small.slice(job, seconds=60)
    versions = [one.transform_version for one in small.watched.replays()]
    assert versions == ["plain/1", "plain/2", "plain/2", "plain/2"]
    assert len(small.watched.rows(SensorReading)) == 10


def test_what_one_piece_writes_of_a_state_the_next_one_sees() -> None:
    bodies = ["home h 0", *["look h"] * 8, "home h 1", "look h", "home h 0"]
    small = world(*bodies, piece=3)
    before = [one.row for one in small.watched.rows(SensorReading)]
    for dry_run in (True, False):
        job = begun(small, dry_run=dry_run)
        while not small.slice(job).is_over:
            pass
        assert small.find(job.request.job_id).counts.events_changed == 0
    assert [one.row for one in small.watched.rows(SensorReading)] == before


def test_a_store_that_does_not_answer_is_for_the_caller() -> None:
    class Away(MemoryStore):
        def read_kept_events(self, state: PartitionState, span: Span, most: int) -> tuple[Event, ...]:
            raise StoreUnavailable("away")

    small = Small(Away(), {"0": [event(0, "quiet")]}, piece=10)
    job = begun(small)
    with pytest.raises(StoreUnavailable):
        small.slice(job)
    assert small.find(job.request.job_id).status == "running"
