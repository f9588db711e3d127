"""A world for tests of replays: an ingested stream, its hub, and jobs to work through."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import UUID

from core.ingest.ingest import Ingestion, ingest_batch
from core.model.events import BATCH_EVENTS, Event, Partition, PartitionId, SequenceNumber, Stream
from core.model.letters import LetterPolicy
from core.model.ports import Clock, Place
from core.model.rows import References, Row
from core.model.transforms import Transform
from core.replay.pieces import LeftOut, PartitionRange, ReplayAsked, ReplayJob, replay_of
from core.replay.request import ReplayOrder, replay_request
from core.replay.store import Replays
from core.replay.task import ReplayKind, replay_task
from core.settle.isolate import NOT_JOURNALED, Journal
from core.tasks.run import open_parts, open_task, work_on
from core.tasks.task import TaskOrder, TaskRequest
from tests.fakes.builders import EPOCH, STREAM, FakeClock, batch, event, partition, stamps
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
