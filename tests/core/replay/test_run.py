"""core/replay/task.py: a job is worked through piece by piece, by whomever, however often, until it is stopped."""

from collections.abc import Callable, Generator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from core.errors import DataRefused, HubUnreachable, StreamIncarnationChanged, VersionChanged
from core.model.events import Event, Partition, PartitionId, SequenceNumber, Span
from core.replay.pieces import ReplayCommit, ReplayCounts, ReplayJob
from core.tasks.run import VERSION_PATIENCE, note_fault, open_parts, work_on
from core.tasks.statuses import TaskMove, TaskVerb
from tests.fakes.builders import FakeClock, event
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.fakes.replaying import World, log_of, order

ZERO = PartitionId("0")


class Watched(MemoryStore):
    """A store that does something before it commits a piece, and fails on request."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[ReplayCommit], object] = lambda commit: None
        self.after: Callable[[ReplayCommit], object] = lambda commit: None
        self.pieces: list[Span] = []

    def commit_replay(self, commit: ReplayCommit) -> ReplayCounts:
        self.before(commit)
        counts = super().commit_replay(commit)
        self.pieces.append(commit.piece.span)
        self.after(commit)
        return counts


def world(*bodies: str, piece: int = 10) -> "Small":
    return Small(Watched(), {"0": log_of(*(bodies or ["reading a"] * 35))}, piece=piece)


class Small(World):
    """A world whose pieces are small."""

    def __init__(self, store: MemoryStore, logs: dict[str, list[Event]], piece: int) -> None:
        super().__init__(store, logs, piece=piece)

    @property
    def watched(self) -> Watched:
        assert isinstance(self.store, Watched)
        return self.store

    def slice(self, job: ReplayJob, seconds: float = 0) -> Any:
        return work_on(job.task.task_id, ZERO, self.means, self.clock.now() + timedelta(seconds=seconds))

    def move(self, job: ReplayJob, move: TaskVerb) -> None:
        assert self.store.tasks.move(TaskMove(job.task.task_id, move, "somebody", "", self.clock.now()))


def begun(small: Small, *, dry_run: bool = False) -> ReplayJob:
    job = small.ask(order(dry_run=dry_run))
    assert open_parts(job.task.task_id, small.means) == (ZERO,)
    return small.find(job.task.task_id)


def spans(small: Small) -> list[tuple[int, int]]:
    return [(one.first, one.last) for one in small.watched.pieces]


def test_a_range_is_one_transaction_a_piece() -> None:
    small = world()
    report = small.slice(begun(small), seconds=60)
    assert spans(small) == [(0, 9), (10, 19), (20, 29), (30, 34)]
    assert (report.is_over, report.pieces, report.looked_at) == (True, 4, 35)


def test_a_job_that_is_planned_begins_once_and_tells_the_partitions_with_work_left() -> None:
    small = world()
    job = begun(small)
    assert job.task.status == "running"
    assert job.task.history.count("begin") == 1
    assert open_parts(job.task.task_id, small.means) == (ZERO,)
    small.slice(job, seconds=60)
    assert open_parts(job.task.task_id, small.means) == ()


@pytest.mark.parametrize("move", ["pause", "cancel"])
def test_a_job_stops_between_two_pieces_and_what_was_replayed_stays(move: TaskVerb) -> None:
    small = world()
    job = begun(small)
    small.watched.after = lambda commit: small.move(job, move) if commit.piece.span.first == 10 else None
    report = small.slice(job, seconds=60)
    assert (report.is_over, spans(small)) == (True, [(0, 9), (10, 19)])
    assert small.find(job.task.task_id).partitions[0].next_number == 20
    assert open_parts(job.task.task_id, small.means) == ()


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_driver_of_a_different_version_leaves_a_task_alone_until_it_is_resumed_with_that_version(
    dry_run: bool,
) -> None:
    small = world()
    job = begun(small, dry_run=dry_run)
    small.slice(job)
    old, new = small.transform, replace(small.transform, version="plain/2")

    def now() -> tuple[str, str | None, int]:
        found = small.find(job.task.task_id)
        return found.task.status, found.task.fault, found.partitions[0].next_number

    def step(seconds: float = 60) -> None:
        """Do as a driver of this version does."""
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
    assert small.store.tasks.move(
        TaskMove(job.task.task_id, "resume", "somebody", "", small.clock.now(), transform_version="plain/2")
    )
    small.transform = old
    with pytest.raises(VersionChanged):
        small.slice(job, seconds=60)
    small.transform = new
    step()
    assert now() == ("done", None, 35)
    assert small.find(job.task.task_id).partitions[0].report.transform_versions == ("plain/1", "plain/2")


def test_a_planned_task_waits_for_its_version_too() -> None:
    small = world()
    job = small.ask(order(dry_run=False))
    small.transform = replace(small.transform, version="plain/2")
    with pytest.raises(VersionChanged):
        open_parts(job.task.task_id, small.means)
    assert small.find(job.task.task_id).task.status == "planned"


def test_two_who_work_on_one_partition_do_each_piece_once() -> None:
    small = world()
    job = begun(small)
    others = iter([False, True, False, True, False, False])
    small.watched.before = lambda commit: next(others, False) and small.slice(job)
    small.slice(job, seconds=60)
    numbers = [number for span in small.watched.pieces for number in range(span.first, span.last + 1)]
    assert sorted(numbers) == list(range(35))
    assert small.find(job.task.task_id).counts.events == 35


def test_a_refused_letter_is_no_fault_of_the_rows_and_goes_to_the_caller() -> None:
    small = world(*["reading a"] * 4)

    def refuse(commit: ReplayCommit) -> None:
        if any(number == 2 for number in commit.numbers):
            raise DataRefused("no such table")

    small.watched.before = refuse
    job = begun(small)
    with pytest.raises(DataRefused):
        small.slice(job, seconds=60)
    assert small.find(job.task.task_id).partitions[0].next_number == 2  # what was before it stands


def test_an_event_of_another_hub_holds_the_job_where_it_is() -> None:
    small = world()
    late = small.hub.held["0"][SequenceNumber(12)]
    small.hub.held["0"][SequenceNumber(12)] = structs.replace(late, enqueued_at=late.enqueued_at + timedelta(days=99))
    job = begun(small)
    with pytest.raises(StreamIncarnationChanged):
        small.slice(job, seconds=60)
    held = small.find(job.task.task_id)
    assert (held.task.status, held.partitions[0].next_number) == ("running", 10)


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
    while open_parts(job.task.task_id, small.means):
        try:
            small.slice(job, seconds=60)
        except HubUnreachable:
            faults += 1
    ended = small.find(job.task.task_id)
    assert (faults, ended.counts.events, ended.counts.gone) == (2, 35, 0)


def keyed(small: Small, *keys: str, dry_run: bool = False) -> ReplayJob:
    """Begin a replay by key in a partition whose events have the keys a, b and c in turn."""
    job = small.ask(order(dry_run=dry_run, keys=keys))
    open_parts(job.task.task_id, small.means)
    return small.find(job.task.task_id)


def world_of_keys(events: int = 90) -> Small:
    return Small(Watched(), {"0": [event(n, "reading a", key="abc"[n % 3]) for n in range(events)]}, piece=10)


def test_a_replay_by_key_has_a_piece_s_worth_of_its_events_in_a_transaction() -> None:
    small = world_of_keys()
    report = small.slice(keyed(small, "b"), seconds=60)
    assert spans(small) == [(0, 29), (30, 59), (60, 89)]
    assert (report.is_over, report.looked_at) == (True, 30)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_replay_by_key_that_finds_nothing_advances_when_its_time_is_up(dry_run: bool) -> None:
    small = world_of_keys()
    small.hub = Slow(small.logs, small.clock)
    job, places = keyed(small, "nobody", dry_run=dry_run), []
    while open_parts(job.task.task_id, small.means):
        small.slice(job, seconds=4.5)
        places.append(small.find(job.task.task_id).partitions[0].next_number)
    assert places == [30, 60, 90]
    ended = small.find(job.task.task_id)
    assert (ended.task.status, ended.counts.events, ended.counts.gone, ended.others) == ("done", 0, 0, 90)


def test_a_piece_by_key_is_not_read_for_longer_than_its_time() -> None:
    small = world_of_keys()
    small.hub = Slow(small.logs, small.clock)
    small.slice(keyed(small, "nobody"), seconds=60)
    assert spans(small) == [(0, 49), (50, 89)]


def test_a_replay_by_key_that_is_paused_or_dies_in_a_piece_begins_that_piece_again() -> None:
    small = world_of_keys()
    job, stops = keyed(small, "b"), iter([False, True])
    small.watched.before = lambda commit: small.move(job, "pause") if next(stops, False) else None
    small.slice(job, seconds=60)
    assert (spans(small), small.find(job.task.task_id).partitions[0].next_number) == ([(0, 29)], 30)
    small.move(job, "resume")
    small.slice(job, seconds=60)
    assert spans(small) == [(0, 29), (30, 59), (60, 89)]
    assert small.find(job.task.task_id).counts.events == 30


class Slow(MemoryHub):
    """A hub that needs a tenth of a second for each event."""

    def __init__(self, logs: dict[str, list[Event]], clock: FakeClock) -> None:
        super().__init__(logs)
        self.clock = clock

    def read_range(
        self, partition: Partition, first: SequenceNumber, last: SequenceNumber, deadline: datetime
    ) -> Generator[Event, None, None]:
        for one in super().read_range(partition, first, last, deadline):
            self.clock.advance(0.1)
            if self.clock.now() >= deadline:
                raise HubUnreachable("late")
            yield one
