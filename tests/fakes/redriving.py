"""Redrives over any store, on a fake clock whose rests pass at once, and letters that a person moves at once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import cast
from uuid import UUID

from core.errors import RequestRefused
from core.letters.listing import LetterChoice, LetterListing
from core.letters.redrive import LetterOrder, Redrive, RedriveKind, redrive_of, redrive_task
from core.letters.retry import Keeper
from core.model.events import SequenceNumber
from core.model.letters import MOVES, LetterPosition, OrderedMove, Selection
from core.model.ports import Clock
from core.store.columns import numbers_json
from core.store.database import OneStream
from core.tasks.run import SliceReport, open_task, work_on
from core.tasks.statuses import TaskMove, TaskVerb
from core.tasks.task import TaskOrder
from tests.fakes.builders import STREAM, FakeClock, ids, keep_letters
from tests.fakes.store import Store

ALL = LetterChoice()


def request_redrive(
    wanted: LetterOrder, means: RedriveKind, by: str = "somebody", why: str = "because"
) -> Redrive | int:
    """Open the redrive that somebody orders, or return how many letters there are.

    A refused one takes no id: the ids of a seeded world stay as they are.
    """
    now, stream_id = means.clock.now(), means.listing.find_stream()
    if stream_id is None:
        return 0
    order = TaskOrder(UUID(int=0), stream_id, by, why, now)
    try:
        found = redrive_task(order, wanted, means.listing)
    except RequestRefused as refused:
        return refused.more["count"]
    named = replace(found, order=replace(order, task_id=means.clock.new_id()))
    return redrive_of(open_task(named, means.tasks))


@dataclass
class Redriving:
    """A person and a driver of redrives over one store."""

    store: Store
    clock: FakeClock = field(default_factory=FakeClock)
    rests: list[timedelta] = field(default_factory=list)
    seed: int = 0

    def __post_init__(self) -> None:
        source = iter(ids(self.seed + 1_000))
        clock = Clock(self.clock.now, lambda: next(source))
        listing = LetterListing(OneStream(self.store.database, STREAM))
        self.means = RedriveKind(STREAM, self.store, listing, clock, self._rest)

    def _rest(self, seconds: float) -> None:
        self.rests.append(timedelta(seconds=seconds))
        self.clock.advance(seconds)

    def ask(
        self, count: int, chosen: LetterChoice | Selection = ALL, move: OrderedMove = "requeue", rate: int | None = None
    ) -> Redrive:
        job = request_redrive(LetterOrder(move, chosen, count, rate), self.means)
        assert isinstance(job, Redrive), job
        return job

    def slice(self, job: Redrive, seconds: float = 3_600) -> SliceReport:
        until = self.clock.now() + timedelta(seconds=seconds)
        return work_on(job.task.task_id, None, self.means, until)

    def move(self, job: Redrive, verb: TaskVerb) -> bool:
        return self.store.tasks.move(TaskMove(job.task.task_id, verb, "somebody", "why", self.clock.now()))

    def now(self, job: Redrive | UUID) -> Redrive:
        found = self.store.tasks.find(job if isinstance(job, UUID) else job.task.task_id)
        assert found is not None
        return redrive_of(found)

    def moved(self, job: Redrive) -> list[tuple[str, int]]:
        found, own = [], str(job.task.task_id)
        for part in job.task.parts:
            assert part.span is not None
            numbers = numbers_json([*map(SequenceNumber, range(part.span.first, part.span.last + 1))])
            place = {"stream_id": job.task.stream_id, "partition_id": part.name}
            rows = self.store.database.ask("find_moved", **place, sequence_numbers=numbers, move_id=own)
            found += [(part.name, number) for number, _, touched_by in rows if touched_by == own]
        return found


def with_exhausted_letters(store: Store, letters: Mapping[int, str]) -> Redriving:
    """Return a person and a driver an hour later than these exhausted letters of the partitions 0 and 1."""
    for place in ("0", "1"):
        keep_letters(store, letters, place, status="exhausted", due_at=None)
    made = Redriving(store)
    made.clock.advance(3_600)
    return made


EVER = datetime.max.replace(tzinfo=UTC)


def redriving(keeper: Keeper) -> RedriveKind:
    store = cast(Store, keeper.store)  # the stores of tests have the verbs of all rooms
    listing = LetterListing(OneStream(store.database, keeper.stream, lambda: keeper.clock.now().timestamp()))
    return RedriveKind(keeper.stream, store, listing, keeper.clock, _rest)


def discard(
    positions: Iterable[LetterPosition], keeper: Keeper, by: str = "somebody", why: str = "because"
) -> tuple[LetterPosition, ...]:
    return _move("discard", positions, keeper, by, why)


def requeue(
    positions: Iterable[LetterPosition], keeper: Keeper, by: str = "somebody", why: str = "because"
) -> tuple[LetterPosition, ...]:
    return _move("requeue", positions, keeper, by, why)


def drive(keeper: Keeper) -> None:
    kind = redriving(keeper)
    for task_id, name, _ in kind.tasks.read_open(keeper.store.partitions.open_stream(keeper.stream)):
        if name == "redrive":
            work_on(task_id, None, kind, EVER)


def _move(
    move: OrderedMove, positions: Iterable[LetterPosition], keeper: Keeper, by: str, why: str
) -> tuple[LetterPosition, ...]:
    kind, chosen = redriving(keeper), tuple(dict.fromkeys(positions))
    movable = kind.listing.find_selected(chosen, MOVES[move].sources)
    job = request_redrive(LetterOrder(move, chosen, len(movable)), kind, by, why)
    if isinstance(job, int):
        return ()
    work_on(job.task.task_id, None, kind, EVER)
    return tuple(one for one in movable if _was_moved(one, job, kind))


def _was_moved(one: LetterPosition, job: Redrive, kind: RedriveKind) -> bool:
    place = {"stream_id": job.task.stream_id, "partition_id": one.partition_id, "move_id": str(job.task.task_id)}
    database = cast(Store, kind.store).database
    found = database.ask("find_moved", **place, sequence_numbers=numbers_json([one.sequence_number]))
    return [touched_by for _, _, touched_by in found] == [place["move_id"]]


def _rest(seconds: object) -> None:
    raise AssertionError("a redrive without a rate does not rest")
