"""The means of a process of the app, the processes of a world with memory and clock, and the people of a world."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from core.erasure.store import Erasures
from core.erasure.task import ErasureKind, ErasureShape
from core.errors import (
    ErasureKeyMissing,
    ErasureWaits,
    RequestRefused,
    StreamIncarnationChanged,
    TaskOverlap,
    TooManyTasks,
    VersionChanged,
)
from core.incarnations.hub_check import HubVerification, VerifiedHub
from core.incarnations.next_incarnation import (
    HubFits,
    IncarnationMeans,
    IncarnationOrder,
    Incarnations,
    StateDiffers,
    next_incarnation,
)
from core.ingest.gaps import GapReading
from core.ingest.ingest import Ingestion
from core.ingest.stalled_partitions import HostCheckpoints, SilenceCheck
from core.letters.redrive import RedriveKind
from core.letters.retry import Keeper
from core.model.events import Event, PartitionId, SequenceNumber
from core.model.letters import LetterPolicy, LetterPosition
from core.model.policies import NO_FUSE, Fuse, SubjectKey
from core.model.ports import Clock, Place
from core.model.rows import References, Row
from core.model.transforms import Transform
from core.replay.task import ReplayKind
from core.settle.attempts import StoredJournal
from core.settle.isolate import NOT_JOURNALED
from core.settle.partition_store import Partitions
from core.settle.settle import EventKilled
from core.store.database import Database, OneStream, StreamClosed, Waiting, read_time, store_clock
from core.tasks.run import TaskKind, note_fault, open_parts, open_task, work_on
from core.tasks.statuses import TaskMove, TaskVerb
from core.tasks.task import Task, TaskOrder, TaskShape
from tests.fakes.builders import STREAM, FakeClock
from tests.fakes.faulty_database import Killed
from tests.fakes.replaying import discard, order, redriving, request_replay, requeue
from tests.fakes.store import Store
from tests.simulation.deployments import deadly
from tests.simulation.host import SimulatedHub
from tests.simulation.trouble import ProcessDatabase, Trouble


class AppProcess:
    """A process over a store and a hub. Batches have the first of two transforms, retries and replays the second.

    `own` is its clock, and `time` the true time. A piece of a replay has `piece` events, one of an erasure `numbers`.
    """

    def __init__(
        self,
        process: Database,
        direct: Store,
        hub: Any,
        own: Clock,
        time: FakeClock,
        transforms: tuple[Transform, Transform],
        policy: LetterPolicy,
        *,
        piece: int,
        numbers: int,
        fuse: Fuse = NO_FUSE,
        in_child: Any = None,
        erase_lake: Callable[[object], tuple[str, ...]] = lambda _: (),
    ) -> None:
        self.process, self.direct, self.raw_hub, self._time = process, direct, hub, time
        self.clock = store_clock(direct.database, own, monotonic=time.monotonic)
        self.store = direct.remembering(timedelta(minutes=1), time.monotonic)
        self.hub = VerifiedHub(hub, self._verification(), direct)
        of_batches, of_letters = transforms
        journal = StoredJournal(direct, self.clock, in_child) if in_child else NOT_JOURNALED
        verified = self._verification()
        self.means = Ingestion(self.store, of_batches, self.clock, GapReading(hub), policy, fuse, verified, journal)
        self.fresh = replace(self.means, store=direct, incarnations=self._verification())
        letters_clock = direct.keepers_clock(own, time.monotonic)
        self.keeper = Keeper(STREAM, self.store, of_letters, self.hub.find_event, letters_clock, policy, journal)
        self.replays = ReplayKind(STREAM, direct, self.hub, of_letters, self.clock, policy, piece, journal=journal)
        self.stream = OneStream(direct.database, STREAM, time.monotonic)
        erasures, now = Erasures(self.stream, of_batches.row_classes), lambda: read_time(direct.database)
        self.erasures = ErasureKind(STREAM, erasures, direct.erasure_key, erase_lake, self.clock, now, numbers)

    def _verification(self) -> HubVerification:
        return HubVerification(self.raw_hub, self._time.monotonic, nullcontext())

    @property
    def redrives(self) -> RedriveKind:
        return redriving(self.keeper)

    @property
    def stream_id(self) -> int:
        return self.direct.open_stream(STREAM)

    def open(self, kind: TaskKind, shape: TaskShape) -> Task:
        order = TaskOrder(self.clock.new_id(), self.stream_id, "somebody", "request 4711", self.clock.now())
        request = kind.request(order, shape)
        return open_task(request, kind.tasks, kind.opening(request))

    def succeed(self, seen: datetime | None = None) -> None:
        """Open the next incarnation, as an operator does who has seen that the hub is a different one."""
        partitions = Partitions(self.process)
        means = IncarnationMeans(STREAM, Incarnations(self.process, partitions), self.raw_hub, self.clock)
        found, seen = partitions.read_incarnation(STREAM), seen or self.raw_hub.created_at()
        next_incarnation(IncarnationOrder("somebody", "it was recreated", found.number, seen, is_dry_run=False), means)


GRACE = timedelta(seconds=60)
PATIENCE = timedelta(seconds=0.3)


@dataclass(slots=True)
class Site:
    """The parts that all instances share: the database, the hub, the true time, and the faults."""

    database: Database
    hub: SimulatedHub
    clock: FakeClock
    trouble: Trouble
    policy: LetterPolicy
    fuse: Fuse
    dies: Callable[[Event, bool], bool]  # of an event that a batch tries, or a retry or replay
    host: HostCheckpoints | None = None
    key: SubjectKey = SubjectKey("the first key of the world")  # noqa: RUF009 - it is frozen

    def key_of_process(self) -> SubjectKey:
        """Return the key that a process begins with: in trouble now and then a wrong one, or none."""
        if self.trouble.comes(0.1):
            self.trouble.counts["deployment: a wrong erasure key"] += 1
            return self.trouble.chance.choice([SubjectKey(), SubjectKey("a wrong key")])
        return self.key

    def new_id(self) -> UUID:
        return UUID(int=self.trouble.chance.getrandbits(128), version=4)


class Instance(AppProcess):
    """A process of the simulation. `skew` is the difference of its clock from the true time, in seconds."""

    process: ProcessDatabase

    def __init__(self, site: Site, deployed: Transform, skew: float = 0.0) -> None:
        self._site = site
        self.skew = skew
        process = ProcessDatabase(site.database, site.trouble.of_store)
        own = Clock(self.now, site.new_id, site.trouble.chance.random)
        waiting = Waiting(site.clock.monotonic, site.clock.sleep, site.trouble.chance.random)
        direct = Store(process)
        direct.erasure_key = site.key_of_process()
        of_batches = deadly(deployed, lambda event: self._dies(event, False))
        of_letters = deadly(deployed, lambda event: self._dies(event, True))
        super().__init__(
            process,
            direct.patient(PATIENCE, waiting),
            site.hub,
            own,
            site.clock,
            (of_batches, of_letters),
            site.policy,
            piece=7,
            numbers=site.trouble.chance.choice([3, 20, 10_000]),
            fuse=site.fuse,
            in_child=self._in_child,
            erase_lake=self._erase_lake,
        )
        self.silence = SilenceCheck(self.fresh, GRACE, site.host)

    @property
    def is_dead(self) -> bool:
        return self.process.is_dead

    def now(self) -> datetime:
        return self._site.clock.now() + timedelta(seconds=self.skew)

    def kind_of(self, name: str) -> TaskKind | None:
        kinds: tuple[TaskKind, ...] = (self.replays, self.erasures, self.redrives)
        return next((one for one in kinds if one.name == name), None)

    def _erase_lake(self, _: object) -> tuple[str, ...]:
        self.process.refuse_dead()
        if self._site.trouble.comes(0.3):
            self._site.trouble.counts["erasures that wait for a run"] += 1
            raise ErasureWaits("a run is open")
        return ()

    def _dies(self, event: Event, is_letter: bool) -> bool:
        self.process.is_dead = self._site.dies(event, is_letter)
        return self.process.is_dead

    def _in_child(self, transform: Transform, look_again: object) -> AbstractContextManager[Transform]:
        """Return the transform in a child: an event that kills two children is named."""

        def rows_of(event: Event, references: References) -> Iterable[Row]:
            try:
                return transform.rows_of(event, references)
            except Killed:
                self.process.is_dead = False
            raise EventKilled(event.sequence_number, "it ended two children")

        return nullcontext(replace(transform, rows_of=rows_of))


MOVES: tuple[TaskVerb, ...] = ("pause", "pause", "resume", "resume", "cancel")
MOST = 10**9
SLICE = timedelta(seconds=30)
REFUSED = (TaskOverlap, TooManyTasks, StreamClosed)  # others are open, or the stream was closed


class Operators:
    """`discarded` are the letters that were reported to them as discarded, `asked` the jobs that they know."""

    def __init__(self, trouble: Trouble, partitions: tuple[str, ...], committed: Callable[[str], int]) -> None:
        self._chance = trouble.chance
        self._counts = trouble.counts
        self._partitions = partitions
        self._committed = committed
        self.discarded: set[tuple[str, int]] = set()
        self.asked: list[UUID] = []
        self.subjects = (*(f"home-{id}-{one}" for id in partitions for one in range(3)), "looked")
        self.named: set[str] = set()  # of these, those that somebody wanted to be erased

    def move_letters(self, instance: Instance) -> None:
        some = [
            LetterPosition(PartitionId(id), SequenceNumber(number))
            for id in self._partitions
            for number in range(self._committed(id) + 1)
            if self._chance.random() < 0.1
        ]
        if self._chance.random() < 0.3:
            self._counts["operator: discard"] += 1
            self.discard(instance, some)
        else:
            self._counts["operator: requeue"] += 1
            with suppress(*REFUSED):
                requeue(some, instance.keeper)

    def discard_all(self, instance: Instance, letters: Iterable[tuple[str, int]]) -> None:
        """Discard letters that cannot succeed, so that the letters after them are freed."""
        self.discard(instance, [LetterPosition(PartitionId(id), SequenceNumber(number)) for id, number in letters])

    def discard(self, instance: Instance, letters: Iterable[LetterPosition]) -> None:
        with suppress(*REFUSED):
            moved = discard(letters, instance.keeper)
            self.discarded.update((one.partition_id, one.sequence_number) for one in moved)

    def request(self, instance: Instance) -> None:
        """Request a replay of any range. Half of the requests are dry runs."""
        is_dry_run = self._chance.random() < 0.4
        ids = self._chance.choice([None, [self._chance.choice(self._partitions)]])
        ends: list[Place | int | None] = [None, None]
        if self._chance.random() < 0.7:
            ends = sorted(self._chance.randint(0, 60) for _ in ends)  # type: ignore[assignment]
        chosen = self._chance.choice([(), (), *([f"home-{id}-{one}" for one in (0, 2)] for id in self._partitions)])
        keys = [one for one in chosen if one not in self.named]
        self._counts["operator: dry run" if is_dry_run else "operator: replay"] += 1
        self._counts["operator: replay by key"] += bool(keys)
        with suppress(RequestRefused, *REFUSED):
            job = request_replay(order(ids, *ends, dry_run=is_dry_run, keys=keys), instance.replays, MOST)
            self.asked.append(job.task.task_id)

    def erase(self, instance: Instance) -> None:
        """Request the erasure of one or two subjects, some again. A fifth of the requests are dry runs."""
        subjects = self._chance.sample(self.subjects, self._chance.choice([1, 1, 2]))
        most, is_dry_run = self._chance.choice([None, None, None, 2]), self._chance.random() < 0.2
        self.erase_all(instance, subjects, is_dry_run, most)

    def erase_all(
        self, instance: Instance, subjects: list[str], is_dry_run: bool = False, most: int | None = None
    ) -> None:
        self._counts["operator: dry run" if is_dry_run else "operator: erasure"] += 1
        self.named.update(subjects)
        shape = ErasureShape(subjects=subjects, reason="request 7", dry_run=is_dry_run, most_rows=most)
        try:
            self.asked.append(instance.open(instance.erasures, shape).task_id)
        except RequestRefused as fault:
            self._counts["erasures refused for the key"] += fault.why.startswith("subjects were erased")
        except REFUSED:
            self._counts["erasures refused beside a task"] += 1

    def move_task(self, instance: Instance) -> None:
        if self.asked:
            self.move(instance, self._chance.choice(self.asked), self._chance.choice(MOVES))

    def move(self, instance: Instance, job_id: UUID, move: TaskVerb) -> None:
        """Move one replay, if its status allows it. It is resumed with the version of the instance."""
        self._counts[f"operator: {move}"] += 1
        tasks, version = instance.replays.store.tasks, None
        task = tasks.find(job_id)
        if move == "resume" and task is not None and task.kind == "replay":
            version = instance.replays.transform_version
        tasks.move(TaskMove(job_id, move, "somebody", "", instance.now(), transform_version=version))
        if move == "cancel" and task is not None and (kind := instance.kind_of(task.kind)) is not None:
            kind.over(job_id)

    def all_jobs(self, instance: Instance) -> list[UUID]:
        store = instance.replays.store
        return [task.task_id for task in store.tasks.read(store.partitions.open_stream(instance.replays.stream), MOST)]

    def open_incarnation(self, instance: Instance, seen: datetime) -> None:
        """Open the next incarnation of the stream for the hub of this creation, if the stream's is a different one."""
        with suppress(StateDiffers, HubFits):
            instance.succeed(seen)
            self._counts["operator: next incarnation"] += 1

    def drive(self, instance: Instance) -> None:
        """Work on a partition of a job, as its orchestration or a second one does."""
        store = instance.replays.store
        for job_id, name, _ in store.tasks.read_open(store.partitions.open_stream(instance.replays.stream)):
            if (kind := instance.kind_of(name)) is None:
                continue
            try:
                for id in open_parts(job_id, kind):
                    work_on(job_id, id, kind, instance.now() + self._chance.choice([timedelta(), SLICE]))
            except (VersionChanged, StreamIncarnationChanged, ErasureKeyMissing, ErasureWaits) as fault:
                self._counts["tasks held at a different hub"] += isinstance(fault, StreamIncarnationChanged)
                note_fault(job_id, fault, kind)
