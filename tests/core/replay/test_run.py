"""core/replay/task.py: a job is worked through piece by piece, by whomever, however often, until it is stopped."""

from collections.abc import Callable, Generator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from core.errors import DataRefused, HubUnreachable, VersionChanged
from core.model.events import Event, Partition, PartitionId, SequenceNumber
from core.replay.pieces import ReplayCommit, ReplayCounts, ReplayJob
from core.tasks.run import VERSION_PATIENCE, note_fault, open_parts, work_on
from core.tasks.statuses import TaskMove, TaskVerb
from tests.fakes.builders import event
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.fakes.replaying import World, log_of, order

ZERO = PartitionId("0")


class Small(World):
    """A world of partition 0 whose pieces are small, and which does something before and after a piece is committed."""

    def __init__(self, logs: list[Event] | None = None, hub: type[MemoryHub] = MemoryHub) -> None:
        self.before: Callable[[ReplayCommit], object] = lambda commit: None
        self.after: Callable[[ReplayCommit], object] = lambda commit: None
        self.spans: list[tuple[int, int]] = []
        small = self

        class Watched(MemoryStore):
            def commit_replay(self, commit: ReplayCommit) -> ReplayCounts:
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
def test_a_driver_of_a_different_version_leaves_a_task_alone_until_it_is_resumed_with_that_version(
    dry_run: bool,
) -> None:
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
    small.move(job, "resume", "plain/2")
    small.transform = old
    with pytest.raises(VersionChanged):
        small.slice(job, seconds=60)
    small.transform = new
    step()
    assert now() == ("done", None, 35)
    assert small.find(job.task.task_id).partitions[0].report.transform_versions == ("plain/1", "plain/2")


def test_two_who_work_on_one_partition_do_each_piece_once() -> None:
    small = Small()
    job = small.begun()
    others = iter([False, True, False, True, False, False])
    small.before = lambda commit: next(others, False) and small.slice(job)
    small.slice(job, seconds=60)
    numbers = [number for first, last in small.spans for number in range(first, last + 1)]
    assert sorted(numbers) == list(range(35))
    assert small.find(job.task.task_id).counts.events == 35


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
    """A hub whose line is cut behind some events of each read."""

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
def test_a_replay_by_key_that_finds_nothing_advances_when_its_time_or_that_of_a_piece_is_up(
    dry_run: bool, seconds: float, places: list[int]
) -> None:
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
