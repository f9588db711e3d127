"""A replay as a task: a part for each partition, whose pieces are one transaction each, or a rehearsal."""

from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import msgspec

from core.errors import CommitOutcomeUnknown, DataRefused, TaskConflict
from core.model.commits import OpenKeys, PartitionState
from core.model.events import BATCH_EVENTS, PartitionId, SequenceNumber, Span, Stream, order_key
from core.model.letters import LetterPolicy
from core.model.ports import Clock, HubReader
from core.model.rows import ReferenceKey, row_table
from core.model.shapes import Answered, shape_of, written
from core.model.transforms import Transform
from core.replay.diff import rehearsed_piece
from core.replay.pieces import (
    LeftOut,
    PartitionProgress,
    Piece,
    PieceReader,
    ReplayAsked,
    ReplayCommit,
    ReplayCounts,
    ReplayJob,
    StandingState,
    progress_of,
    replay_of,
    standing_after,
)
from core.replay.plan import ReplayReferences, ReplayTrial, plan_replay
from core.replay.request import ReplayOrder, ReplayShape, order_of, ranges_of, replay_request
from core.replay.store import Replays, rehearsed_key
from core.settle.erased_subjects import Erased
from core.settle.isolate import NOT_JOURNALED, AttemptRequest, Isolation, Journal, RunChanged
from core.settle.settle import KeyOrder, reference_keys
from core.tasks.run import Done, TaskKind
from core.tasks.store import Tasks
from core.tasks.task import Task, TaskAnswer, TaskOrder, TaskPart, TaskRequest

LONGEST_READ = timedelta(seconds=5)  # for a piece by key: what was read is lost if the process dies
CRASHED = "the process died while this version of the transform tried the event; deploy a new one"
READ_MARGIN = timedelta(seconds=2)  # before the end of a slice, for a piece by key: a read that lasts longer is a fault


_Span: Any = shape_of(Span)


class SpanAnswer(_Span):
    """Sequence numbers, both ends included."""


_Counts: Any = shape_of(ReplayCounts, hidden=("states_rewritten", "states_lowered"))


class CountsAnswer(_Counts):
    """The work so far. A dry run counts the work that a replay would do. Only dry runs count `rows_added`,
    `rows_removed`, `rows_changed` and `events_changed`. `held` events wait for an earlier letter of their partition
    key. `gone` numbers are neither in the hub nor in a letter, nor staged. A replay by key counts all gone numbers of
    its range, whatever their keys were. `states_left` are states that their event did not write again, or wrote with an
    older value of `newest_by`. A replay by key counts only the latter."""


class PartitionAnswer(Answered):
    """The progress of a job in a partition. `next` is the first number of its next piece. `note` says which numbers
    of the request are left out. `transform_versions` did its pieces, in order."""

    partition_id: str
    first: str
    last: str
    next: str
    closed_at: datetime | None
    note: str | None
    counts: CountsAnswer
    gone: list[SpanAnswer]
    transform_versions: list[str]


_LeftOut: Any = shape_of(LeftOut)


class LeftOutAnswer(_LeftOut):
    """A partition in which nothing can be replayed."""


class ReplayAnswer(TaskAnswer, tag_field="kind", tag="replay", omit_defaults=True):
    """A replay. Only apps with its `transform_version` do its pieces. `app_transform_version` is the version of the app
    that answers. Only a replay by key has the last two fields: the number of its partition `keys`, and the events of
    `other_keys` that were read and left alone. The diff, which reveals events, names the keys."""

    asked: dict[str, Any]
    counts: CountsAnswer
    partitions: list[PartitionAnswer]
    left_out: list[LeftOutAnswer]
    transform_version: str
    app_transform_version: str
    keys: int | None = None
    other_keys: int | None = None


@dataclass(frozen=True, slots=True)
class ReplayKind(TaskKind):
    """The replays of one stream. A piece has at most `piece` events, and a replay at most `most_events`."""

    stream: Stream
    store: Replays
    hub: HubReader
    transform: Transform
    clock: Clock
    letters: LetterPolicy = LetterPolicy()  # noqa: RUF009 - it is frozen
    piece: int = BATCH_EVENTS
    journal: Journal = NOT_JOURNALED
    most_events: int = 0

    name = "replay"
    asked = ReplayShape
    answer = ReplayAnswer
    fan_out = 8  # partitions

    @property
    def tasks(self) -> Tasks:
        return self.store.tasks

    @property
    def transform_version(self) -> str:
        return self.transform.version

    def request(self, order: TaskOrder, asked: ReplayShape) -> TaskRequest:
        """Return the task of a replay. Raises RequestRefused for a range that cannot be replayed."""
        return replay_task(order, order_of(asked), self, self.most_events)

    def advance(self, task: Task, part: TaskPart, until: datetime) -> Done:
        """Replay piece after piece until a time, and close the partition at its end."""
        partitions = self.store.partitions
        state = partitions.read_partition(self.stream.partition(PartitionId(part.name)))
        if self.letters.order == "hold_key":
            state = replace(state, open_keys=OpenKeys(None))
        erased = partitions.read_erased(state)
        work = _WorkSlice(self, replay_of(task), state, erased, until)
        try:
            work.go_on(progress_of(part))
        except (TaskConflict, CommitOutcomeUnknown):
            if not work.pieces:
                raise
        return Done(work.pieces, work.events, work.is_late)

    def report(self, task: Task, *, is_listed: bool) -> dict[str, Any]:
        """Return the counts so far, and the progress in each partition."""
        job = replay_of(task)
        counts, keys = job.counts, len(job.asked.keys)
        return {
            "done": counts.events + counts.gone + job.others,
            "asked": msgspec.json.decode(job.asked.asked),
            "counts": written(CountsAnswer, counts),
            "partitions": [_partition_answer(one) for one in job.partitions],
            "left_out": [written(LeftOutAnswer, one) for one in job.asked.left_out],
            "transform_version": task.transform_version or "",
            "app_transform_version": self.transform.version,
            "keys": keys or None,
            "other_keys": job.others if keys else None,
        }

    def over(self, task_id: UUID) -> None:
        """Delete the states that the task carried."""
        self.store.forget_states()


def replay_task(order: TaskOrder, wanted: ReplayOrder, kind: ReplayKind, most_events: int) -> TaskRequest:
    """Return the task of a replay, with its numbers and with the numbers that are left out.

    Raises RequestRefused for a range that cannot be replayed.
    """
    replayable = kind.store.read_replayable(kind.stream)
    ranges, left_out = ranges_of(wanted, kind.stream, replayable, kind.hub, most_events)
    asked = ReplayAsked(wanted.asked, left_out, wanted.keys)
    return replay_request(order, asked, ranges, kind.transform.version, is_dry_run=wanted.is_dry_run)


@dataclass(slots=True)
class _WorkSlice:
    """The work on one partition. `refused` maps each refused event to the database's error."""

    kind: ReplayKind
    job: ReplayJob
    state: PartitionState
    erased: Erased
    until: datetime
    pieces: int = 0
    events: int = 0
    is_late: bool = False
    refused: dict[SequenceNumber, str] = field(default_factory=dict)

    def go_on(self, progress: PartitionProgress) -> None:
        """Replay piece after piece until the time is up, and close the partition at its end."""
        kind, state = self.kind, self.state
        last, keys = progress.range.span.last, frozenset(self.job.asked.keys)
        events = kind.hub.read_range(state.partition, progress.next_number, last, self.until)
        if keys:
            self.until -= READ_MARGIN

        def is_past(moment: datetime) -> bool:
            return kind.clock.now() >= moment

        with closing(PieceReader(kind.store.read_kept_events, state, events, kind.piece, keys)) as reader:
            while not progress.is_through:
                if self.pieces and is_past(self.until):
                    self.is_late = True
                    return
                must_end = partial(is_past, min(kind.clock.now() + LONGEST_READ, self.until))
                progress = self._settle(reader.next_piece(Span(progress.next_number, last), must_end), progress)
        kind.store.close_replay(self.job, progress, kind.transform.row_classes, kind.clock.now())

    def _settle(self, piece: Piece, progress: PartitionProgress) -> PartitionProgress:
        """Settle a piece, in parts if the database refuses it, and return the progress after the piece."""
        kind, task_id, isolation = self.kind, self.job.task.task_id, Isolation(refused=self.refused)
        settle = self._rehearse if self.job.task.is_dry_run else kind.store.commit_replay
        left: Piece | None = piece
        while left is not None:
            part, rest = left.cut(len(isolation.next_run(left.events)))
            look_again = partial(self._look_again, progress)
            asked = AttemptRequest("replay", self.state, part.span, isolation, str(task_id), look_again=look_again)
            try:
                with kind.journal.attempt(asked, kind.transform) as attempt:
                    commit = self._plan(part, progress, isolation.around(attempt.transform))
                    counts = settle(commit)
                    attempt.done_to = part.span.last
            except RunChanged:
                continue
            except DataRefused as fault:
                isolation.note_refusal(part.events, fault)
                continue
            isolation.note_commit(part.events)
            self.pieces += 1
            self.events += len(part.events)
            progress, left = commit.progress_after(counts), rest
        return progress

    def _look_again(self, progress: PartitionProgress) -> None:
        """Raise TaskConflict when another driver was first, or when the task does not run any more."""
        task = self.kind.tasks.find(self.job.task.task_id)
        own = None if task is None else task.part(progress.range.partition_id)
        if task is None or task.status != "running" or own is None or own.step != progress.step:
            raise TaskConflict("replay", self.job.task.task_id)

    def _plan(self, part: Piece, progress: PartitionProgress, transform: Transform) -> ReplayCommit:
        """READ the states that the events refer to, and DECIDE."""
        store, state, job_id = self.kind.store, self.state, self.job.task.task_id
        crashed = store.find_crashed(state, part.span, transform.version)
        transform = self.erased.around(Isolation(killed=dict.fromkeys(crashed, CRASHED)).around(transform))
        keys = reference_keys(part.events, transform, state.partition)
        place = (job_id, state.partition.partition_id)
        known = (self._standing(keys), store.read_carried(*place, keys)) if keys else ({}, {})
        order = self._order(part, progress) if state.open_keys else None
        trial = ReplayTrial(job_id, state, transform, self.kind.letters, order)
        commit = plan_replay(part, progress, ReplayReferences(*known), trial, self.kind.clock)
        ordered = commit.new_states(ordered=True)
        if not ordered:
            return commit
        earlier = store.read_carried(*place, commit.carried) if commit.carried else {}
        carried = {
            key: one for key, one in commit.carried.items() if key not in earlier or not earlier[key].is_newer(one)
        }
        return replace(commit, standing=self._standing(ordered), carried=carried)

    def _standing(self, keys: Collection[ReferenceKey]) -> Mapping[ReferenceKey, StandingState]:
        """Read the current states. A dry run sees those that a column orders as its earlier pieces would leave them."""
        store, task, state = self.kind.store, self.job.task, self.state
        standing = dict(store.read_standing_states(state, keys))
        ordered = [key for key in keys if row_table(key.row_class).newest_by] if task.is_dry_run else []
        if ordered:
            left = store.read_carried(task.task_id, state.partition.partition_id, ordered, rehearsed_key)
            standing.update({key: standing_after(one, standing.get(key)) for key, one in left.items()})
        return standing

    def _order(self, part: Piece, progress: PartitionProgress) -> KeyOrder:
        """Read the open letters before a piece, and those in it whose events are gone.

        A dry run leaves no letters: its own are stored with the job.
        """
        store, state, task = self.kind.store, self.state, self.job.task
        keys = frozenset([key for key in map(order_key, part.events) if key is not None])
        if not keys:
            return KeyOrder({})
        find, before = store.partitions.find_open_letters, part.span.first
        found = dict(find(state, keys, progress.range.span.first if task.is_dry_run else before))
        if task.is_dry_run:
            found.update(store.find_opened(task.task_id, state.partition.partition_id, keys))
        gone = [
            (key, letter)
            for span in part.gone
            for key, letter in find(state, keys, SequenceNumber(span.last + 1)).items()
            if letter.sequence_number >= span.first
        ]
        return KeyOrder(found, store.find_discarded(state, part.span), gone)

    def _rehearse(self, commit: ReplayCommit) -> ReplayCounts:
        """Run a commit, roll it back, and store the changes that it would make."""
        store = self.kind.store
        keys = [key for key in commit.new_states() if not row_table(key.row_class).newest_by]
        standing = store.read_standing_states(commit.state, keys) if keys else {}
        rehearsed = rehearsed_piece(commit, store.rehearse_replay(commit), {**standing, **commit.standing})
        store.note_rehearsal(rehearsed)
        return rehearsed.counts


def _partition_answer(one: PartitionProgress) -> PartitionAnswer:
    span = one.range.span
    return PartitionAnswer(
        partition_id=one.range.partition_id,
        first=str(span.first),
        last=str(span.last),
        next=str(one.next_number),
        closed_at=one.closed_at,
        note=one.range.note,
        counts=written(CountsAnswer, one.report),
        gone=[written(SpanAnswer, each) for each in one.report.gone_ranges],
        transform_versions=list(one.report.transform_versions),
    )
