"""The people of a world: they requeue and discard letters, request replays, and pause, resume and cancel both."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from uuid import UUID

from core.errors import RequestRefused, StreamIncarnationChanged, TaskOverlap, TooManyTasks, VersionChanged
from core.incarnations.next_incarnation import HubFits, IncarnationOrder, StateDiffers, next_incarnation
from core.model.events import PartitionId, SequenceNumber
from core.model.letters import LetterPosition
from core.model.ports import Place
from core.store.database import StreamClosed
from core.tasks.run import note_fault, open_parts, work_on
from core.tasks.statuses import TaskMove, TaskVerb
from tests.fakes.moving import discard, redriving, requeue
from tests.fakes.replaying import order, request_replay
from tests.simulation.instance import Instance
from tests.simulation.trouble import Trouble

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

    def move_letters(self, instance: Instance) -> None:
        """Requeue or discard some letters; also name numbers without a letter."""
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
        """Discard letters, and note those that are reported as discarded."""
        with suppress(*REFUSED):
            moved = discard(letters, instance.keeper)
            self.discarded.update((one.partition_id, one.sequence_number) for one in moved)

    def request(self, instance: Instance) -> None:
        """Request a replay of any range; half of the requests are dry runs."""
        is_dry_run = self._chance.random() < 0.4
        ids = self._chance.choice([None, [self._chance.choice(self._partitions)]])
        ends: list[Place | int | None] = [None, None]
        if self._chance.random() < 0.7:
            ends = sorted(self._chance.randint(0, 60) for _ in ends)  # type: ignore[assignment]
        keys = self._chance.choice([(), (), *([f"home-{id}-{one}" for one in (0, 2)] for id in self._partitions)])
        self._counts["operator: dry run" if is_dry_run else "operator: replay"] += 1
        self._counts["operator: replay by key"] += bool(keys)
        with suppress(RequestRefused, *REFUSED):
            job = request_replay(order(ids, *ends, dry_run=is_dry_run, keys=keys), instance.replays, MOST)
            self.asked.append(job.task.task_id)

    def move_replay(self, instance: Instance) -> None:
        """Pause, resume or cancel a replay."""
        if self.asked:
            self.move(instance, self._chance.choice(self.asked), self._chance.choice(MOVES))

    def move(self, instance: Instance, job_id: UUID, move: TaskVerb) -> None:
        """Move one replay, if its status allows it; it is resumed with the version of the instance."""
        self._counts[f"operator: {move}"] += 1
        tasks, version = instance.replays.store.tasks, None
        if move == "resume" and (task := tasks.find(job_id)) is not None and task.kind == "replay":
            version = instance.replays.transform_version
        tasks.move(TaskMove(job_id, move, "somebody", "", instance.now(), transform_version=version))

    def all_jobs(self, instance: Instance) -> list[UUID]:
        """Return all jobs, also those whose request was not answered."""
        store = instance.replays.store
        return [task.task_id for task in store.tasks.read(store.partitions.open_stream(instance.replays.stream), MOST)]

    def open_incarnation(self, instance: Instance, seen: datetime) -> None:
        """Open the next incarnation of the stream for the hub of this creation, if the stream's is a different one."""
        means = instance.succession
        found = means.store.partitions.read_incarnation(means.stream)
        order = IncarnationOrder("somebody", "the hub was recreated", found.number, seen, is_dry_run=False)
        with suppress(StateDiffers, HubFits):
            next_incarnation(order, means)
            self._counts["operator: next incarnation"] += 1

    def drive(self, instance: Instance) -> None:
        """Work on a partition of a job, as its orchestration or a second one does."""
        store = instance.replays.store
        for job_id, name, _ in store.tasks.read_open(store.partitions.open_stream(instance.replays.stream)):
            if name not in ("replay", "redrive"):
                continue
            kind = instance.replays if name == "replay" else redriving(instance.keeper)
            try:
                for id in open_parts(job_id, kind):
                    work_on(job_id, id, kind, instance.now() + SLICE)
            except (VersionChanged, StreamIncarnationChanged) as fault:
                self._counts["tasks held at a different hub"] += isinstance(fault, StreamIncarnationChanged)
                note_fault(job_id, fault, kind)
