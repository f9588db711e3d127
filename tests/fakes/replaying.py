"""Worlds for tests of replays and of redrives: an ingested stream, its hub, and tasks to work through.

The clock of a redrive is a fake one, whose rests pass at once. Flights are states that a column orders.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, cast
from uuid import UUID

from core.errors import RequestRefused
from core.ingest.ingest import Ingestion, ingest_batch
from core.letters.listing import LetterChoice, LetterListing
from core.letters.redrive import LetterOrder, Redrive, RedriveKind, redrive_of, redrive_task
from core.letters.retry import Keeper
from core.model.events import BATCH_EVENTS, Event, Partition, PartitionId, SequenceNumber, Stream
from core.model.letters import MOVES, LetterPolicy, LetterPosition, OrderedMove, Selection
from core.model.ports import Clock, Place
from core.model.rows import ReferenceKey, References, Row
from core.model.transforms import Transform
from core.replay.pieces import LeftOut, PartitionRange, ReplayAsked, ReplayJob, replay_of
from core.replay.request import ReplayOrder, replay_request
from core.replay.store import Replays
from core.replay.task import ReplayKind, replay_task
from core.settle.isolate import NOT_JOURNALED, Journal
from core.store.columns import numbers_json
from core.store.database import OneStream
from core.tasks.run import SliceReport, open_parts, open_task, work_on
from core.tasks.statuses import TaskMove, TaskVerb
from core.tasks.task import TaskOrder, TaskRequest
from examples.flight_info.transform import FlightChange, FlightStatus
from examples.home_security.transform import SensorReading
from tests.fakes.builders import EPOCH, STREAM, FakeClock, batch, event, ids, keep_letters, partition, stamps
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import Store

MOST = 1_000_000


def order(
    partitions: Sequence[str] | None = None,
    start: Place | int | None = None,
    end: Place | int | None = None,
    *,
    dry_run: bool = False,
    keys: Iterable[str] = (),
) -> ReplayOrder:
    """Return a person's order: by default a replay for good of everything committed in all partitions."""
    ids = None if partitions is None else tuple(map(PartitionId, partitions))
    return ReplayOrder(ids, start, end, "{}", dry_run, tuple(keys))  # type: ignore[arg-type]


def request_replay(
    asked: ReplayOrder, means: ReplayKind, most: int, why: str = "the transform was mended"
) -> ReplayJob:
    refused = TaskOrder(UUID(int=0), 0, "somebody", why, EPOCH)
    made = replay_task(refused, asked, means, most)
    task_id, stream_id = means.clock.new_id(), means.store.partitions.open_stream(means.stream)
    order = replace(refused, task_id=task_id, stream_id=stream_id, at=means.clock.now())
    return replay_of(open_task(replace(made, order=order, key=str(task_id)), means.tasks))


def replay_asked(
    job_id: UUID, ranges: tuple[PartitionRange, ...], left_out: tuple[LeftOut, ...] = (), *, dry_run: bool = True
) -> TaskRequest:
    asked = ReplayAsked('{"from": null}', left_out)
    order = TaskOrder(job_id, 1, "somebody", "because", EPOCH)
    return replay_request(order, asked, ranges, "test/1", is_dry_run=dry_run)


def opened(store: Replays, asked: TaskRequest, stream: Stream = STREAM) -> ReplayJob:
    order = replace(asked.order, stream_id=store.partitions.open_stream(stream))
    return replay_of(open_task(replace(asked, order=order), store.tasks))


def log_of(*bodies: str, first: int = 0) -> list[Event]:
    return [event(first + place, body) for place, body in enumerate(bodies)]


def changed(rows_of: Callable[[Event, References], Iterable[Row]], version: str = "plain/2") -> Transform:
    return replace(PLAIN, version=version, rows_of=rows_of)


@dataclass
class World:
    """A store, a hub whose logs were ingested, and the means of replays."""

    store: Store
    logs: dict[str, list[Event]]
    transform: Transform = PLAIN
    clock: FakeClock = field(default_factory=FakeClock)
    letters: LetterPolicy = field(default_factory=LetterPolicy)
    piece: int = BATCH_EVENTS
    journal: Journal = NOT_JOURNALED
    own: Clock = field(init=False)
    hub: MemoryHub = field(init=False)

    def __post_init__(self) -> None:
        self.own = stamps(7, self.clock)
        self.hub = MemoryHub(self.logs)
        for id, log in self.logs.items():
            for start in range(0, len(log), 7):
                ingest_batch(batch(log[start : start + 7], partition(id)), self.ingesting)

    @property
    def ingesting(self) -> Ingestion:
        return Ingestion(self.store, self.transform, self.own, letters=self.letters)

    @property
    def means(self) -> ReplayKind:
        means = (self.store, self.hub, self.transform, self.own)
        return ReplayKind(STREAM, *means, self.letters, self.piece, journal=self.journal)

    def ask(self, asked: ReplayOrder | None = None) -> ReplayJob:
        return request_replay(asked or order(), self.means, MOST)

    def work(self, job: ReplayJob) -> ReplayJob:
        while ids := open_parts(job.task.task_id, self.means):
            for id in ids:
                work_on(job.task.task_id, id, self.means, self.clock.now() + timedelta(minutes=1))
        return self.find(job.task.task_id)

    def replay(self, asked: ReplayOrder | None = None) -> ReplayJob:
        return self.work(self.ask(asked))

    def find(self, job_id: UUID) -> ReplayJob:
        found = self.store.find_replay(job_id)
        assert found is not None
        return found

    def checkpoint(self, id: str = "0") -> tuple[SequenceNumber, UUID]:
        stands = self.store.read_partition(self.partition(id)).checkpoint
        assert stands is not None
        return stands.sequence_number, stands.commit_id

    @staticmethod
    def partition(id: str) -> Partition:
        return partition(id)


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


DAY = date(2026, 1, 2)


def flight(number: int, minute: int, status: str = "boarding") -> FlightStatus:
    return FlightStatus("LH", number, DAY, status, None, None, None, EPOCH + timedelta(minutes=minute))


def minute_of(row: Row) -> int:
    return int((cast(FlightStatus, row).changed_at - EPOCH).total_seconds()) // 60


def rows_of(event: Event, references: References) -> Iterable[Row]:
    """`N M` is flight N, changed at minute M. Several are separated by commas. `look N` reads it."""
    for words in event.body.decode().split(","):
        one, other = words.split()
        if one == "look":
            seen = references.find(FlightStatus, "LH", int(other), DAY)
            ppm = None if seen is None else minute_of(seen)
            yield SensorReading("home-1", "sensor", "look", None, ppm, event.enqueued_at)
        elif one != "quiet":
            yield flight(int(one), int(other), f"by {event.sequence_number}")


def looked_up(event: Event) -> Iterable[ReferenceKey]:
    words = event.body.decode().split()
    return [ReferenceKey(FlightStatus, ("LH", int(words[1]), DAY))] if words[0] == "look" else []


FLIGHTS = Transform("flights/1", rows_of, looked_up, (FlightStatus, FlightChange, SensorReading))


def now_as(bodies: Mapping[int, str], version: str = "flights/2") -> Transform:
    def changed(given: Event, references: References) -> Iterable[Row]:
        body = bodies.get(given.sequence_number)
        return rows_of(given if body is None else event(given.sequence_number, body), references)

    return replace(FLIGHTS, version=version, rows_of=changed)


def changes_of(world: World, dry: ReplayJob) -> Iterator[dict[str, Any]]:
    for one in world.store.read_replay_diffs(dry.task.task_id, None, 100):
        diff = json.loads(one.diff)
        yield from diff["added"] + diff["changed"]
