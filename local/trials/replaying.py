"""The ingestion of a trial and its replay: one partition of events from number 0, and one for states known before."""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from uuid import UUID

from core.ingest.ingest import Means, ingest_batch
from core.model.events import Event, EventBatch, Partition, PartitionId, Stream
from core.model.hub import Extent, Place
from core.model.rows import Row
from core.model.spans import SequenceNumber
from core.model.transform import Transform
from core.replay.ranges import ReplayOrder
from core.replay.run import ReplayKind, replay_task
from core.tasks.run import open_parts, open_task, work_on
from core.tasks.task import TaskOrder
from local.trials.outcomes import BEGINNING, event_of

STREAM = Stream("trial/events", "trial")
EVENTS, KNOWN = (STREAM.partition(PartitionId(name)) for name in ("0", "known"))
DAY = timedelta(days=1)


def register(rows: Sequence[Row], means: Means) -> None:
    """Write states that the store has before the first event."""
    if rows:
        seeding = Transform("known/1", lambda event, _: rows)
        ingest_batch(EventBatch(KNOWN, (event_of(b""),), "known"), replace(means, transform=seeding))


def replay_all(means: ReplayKind, *, is_dry_run: bool) -> UUID:
    """Replay every event of a trial to the end, and return the id of the job."""
    stream_id, now = means.store.open_stream(means.stream), means.clock.now()
    order = TaskOrder(means.clock.new_id(), stream_id, "trial", "replay of every event", now)
    wanted = ReplayOrder((EVENTS.partition_id,), None, None, "{}", is_dry_run)
    last = means.hub.extent(EVENTS).last
    job_id = open_task(replay_task(order, wanted, means, most_events=last + 1), means.tasks).task_id
    while partition_ids := open_parts(job_id, means):
        for each in partition_ids:
            work_on(job_id, each, means, means.clock.now() + DAY)
    return job_id


class TrialLog:
    """A HubReader over one partition that still has every event; `read` begins with number 0 each time."""

    def __init__(self, read: Callable[[], Iterable[Event]], events: int) -> None:
        self._read = read
        self._events = events

    def partitions(self) -> tuple[Partition, ...]:
        return (EVENTS,)

    def created_at(self) -> datetime:
        return BEGINNING

    def extent(self, partition: Partition) -> Extent:
        return Extent(SequenceNumber(0), SequenceNumber(self._events - 1), BEGINNING + timedelta(seconds=self._events))

    def first_at(self, partition: Partition, place: Place) -> Event | None:
        return next(iter(self._read()), None)  # a trial asks for the ends only

    def find_event(self, partition: Partition, sequence_number: SequenceNumber) -> Event | None:
        return next(self.read_range(partition, sequence_number, sequence_number, BEGINNING), None)

    def read_range(
        self, partition: Partition, first: SequenceNumber, last: SequenceNumber, deadline: datetime
    ) -> Generator[Event, None, None]:
        yield from islice(self._read(), first, last + 1)
