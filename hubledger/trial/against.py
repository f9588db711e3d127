"""The difference between two transforms: the dry run of a replay with the new one of what the old one ingested."""

import json
from collections.abc import Generator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from core.model.events import Event, Partition
from core.model.hub import Extent, Place
from core.model.spans import SequenceNumber
from core.model.transform import Transform
from core.replay.job import ReplayCounts
from core.replay.ranges import ReplayOrder
from core.replay.run import ReplayMeans, open_partitions, replay_slice, request_replay
from core.store.database import Database
from core.store.replays import Replays
from hubledger.lines import EventFile
from hubledger.trial.run import CLOCK, EVENTS, STREAM
from local.trials.outcomes import BEGINNING


@dataclass(frozen=True, slots=True)
class Difference:
    """The counts of a dry run, and the changes of the first events that it would change, by line."""

    counts: ReplayCounts
    changes: tuple[tuple[int, dict[str, Any]], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the values in the form that JSON holds."""
        return {"counts": asdict(self.counts), "events": [{"line": line, **change} for line, change in self.changes]}


class FileLog:
    """A HubReader over the events of a file."""

    def __init__(self, file: EventFile, events: int) -> None:
        self.file = file
        self.events = events

    def partitions(self) -> tuple[Partition, ...]:
        return (EVENTS,)

    def created_at(self) -> datetime:
        return BEGINNING

    def extent(self, partition: Partition) -> Extent:
        return Extent(SequenceNumber(0), SequenceNumber(self.events - 1), BEGINNING + timedelta(seconds=self.events))

    def first_at(self, partition: Partition, place: Place) -> Event | None:
        return None  # a trial asks for the ends only

    def find_event(self, partition: Partition, sequence_number: SequenceNumber) -> Event | None:
        return next(self.read_range(partition, sequence_number, sequence_number, BEGINNING), None)

    def read_range(
        self, partition: Partition, first: SequenceNumber, last: SequenceNumber, deadline: datetime
    ) -> Generator[Event, None, None]:
        yield from islice(self.file, first, last + 1)


def difference(log: FileLog, database: Database, transform: Transform, limit: int) -> Difference:
    """Rehearse a replay of a file, of which the database has the rows of a different transform."""
    store = Replays(database)
    means = ReplayMeans(STREAM, store, log, transform, CLOCK)
    order = ReplayOrder((EVENTS.partition_id,), None, None, "{}", True, "try", "compare two transforms")
    job_id = request_replay(order, means, most_events=log.events).request.job_id
    while partition_ids := open_partitions(job_id, means):
        for each in partition_ids:
            replay_slice(job_id, each, means, CLOCK.now() + timedelta(days=1))
    job = store.find_replay(job_id)
    found = store.read_replay_diffs(job_id, None, limit)
    return Difference(
        ReplayCounts() if job is None else job.counts,
        tuple((log.file.line_of(one.sequence_number), json.loads(one.diff)) for one in found),
    )
