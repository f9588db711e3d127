"""A trial of a transform on a file of events: its ingestion into a store of its own, and the difference to another."""

import json
import random
import sqlite3
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from core.errors import DataRefused
from core.ingest.ingest import Ingestion, IngestReport, ingest_batch
from core.model.commits import BatchCommit, DeadLetter
from core.model.event_keys import under_key
from core.model.events import Event, EventBatch
from core.model.ports import Clock
from core.model.rows import ReferenceKey, Row, row_table
from core.model.transforms import KeyOf, Transform
from core.replay.pieces import ReplayCounts
from core.replay.store import Replays
from core.replay.task import ReplayKind
from core.settle.partition_store import Partitions
from core.store.database import Database
from core.store.sqlite.database import SqliteDatabase
from core.transforms.loading import rooms_of
from hubledger.cli.output import progress
from local.feed.event_file import FileEvent, events_in
from local.trials.outcomes import event_of
from local.trials.replay_identity import EVENTS, STREAM, TrialLog, migrated, register, replay_all


def read_events(path: Path) -> Iterator[FileEvent]:
    """Yield the events of a file as the demo reads them. Raises UnusableFile."""
    with progress() as bar:
        task = bar.add_task(path.name, total=path.stat().st_size)
        for each in events_in(path):
            bar.advance(task, len(each.body) + 1)
            yield each


class EventFile:
    """A file of events, and the line of each: the sequence numbers begin with 0, and have no gap for an empty line."""

    def __init__(self, path: Path, key_of: KeyOf | None = None) -> None:
        self._path = path
        self._key_of = key_of
        self._lines = array("Q")  # by sequence number

    def __iter__(self) -> Iterator[Event]:
        for number, each in enumerate(read_events(self._path)):
            if number == len(self._lines):
                self._lines.append(each.line)
            yield under_key(event_of(each, number=number), self._key_of)

    def __len__(self) -> int:
        """Return the number of events that were read."""
        return len(self._lines)

    def line_of(self, number: int) -> int:
        """Return the line of an event that was read, or 0 for the states that the store had before."""
        return self._lines[number] if number >= 0 else 0


@dataclass(frozen=True, slots=True)
class Trial:
    """A database in a temporary file, so that the rows of a large file need no memory."""

    path: Path
    row_classes: tuple[type, ...]
    database: SqliteDatabase

    def counts(self) -> dict[str, int]:
        """Return the number of rows of each table."""
        tables = [row_table(each).name for each in self.row_classes]
        with closing(sqlite3.connect(self.path)) as connection:
            return {name: connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in tables}


@contextmanager
def trial_database(row_classes: tuple[type, ...]) -> Iterator[Trial]:
    """Open a new database. Raises SchemaMismatch when a row class has no table."""
    with TemporaryDirectory(prefix="hubledger-try-") as folder:
        path = Path(folder) / "trial.db"
        path.write_bytes(migrated(rooms_of(row_classes)))

        def connected() -> sqlite3.Connection:
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA synchronous = OFF")  # nobody needs it after a crash
            connection.execute("PRAGMA foreign_keys = ON")
            return connection

        with closing(SqliteDatabase(path, connect=connected, needed=row_classes)) as database:
            yield Trial(path, row_classes, database)


BATCH = 100  # events: if the store refuses each of them, one invocation can isolate them all
CLOCK = Clock(now=lambda: datetime.now(UTC), new_id=uuid4, chance=random.random)


@dataclass(slots=True)
class TrialOutcome:
    """The outcome of a file: counts of all events, and the first `limit` rows, letters and filtered lines."""

    file: EventFile
    limit: int
    events: int = 0
    written: int = 0
    filtered: int = 0
    rows: dict[type, list[tuple[int, Row]]] = field(default_factory=dict)
    keys: dict[type, dict[ReferenceKey, tuple[int, Row]]] = field(
        default_factory=dict
    )  # of states: the newest, its line
    letters: list[DeadLetter] = field(default_factory=list)
    filtered_lines: list[int] = field(default_factory=list)
    unknown_fields: Counter[str] = field(default_factory=Counter)

    @property
    def dead_lettered(self) -> int:
        """The number of events that became letters."""
        return self.events - self.written - self.filtered

    def note_known(self, rows: Sequence[Row]) -> None:
        """Note the states that the store has before the first event, as of line 0."""
        for row in rows:
            self._add_rows(type(row), [(-1, 0, row)])

    def add(self, commit: BatchCommit) -> None:
        """Count the events of a commit."""
        settled = commit.settled
        self.events += commit.events
        self.written += settled.written
        self.filtered += settled.filtered
        self.unknown_fields.update(settled.unknown_fields)
        for row_class, placed in settled.rows.items():
            self._add_rows(row_class, placed)
        self.letters += settled.letters[: self.limit - len(self.letters)]
        if len(self.filtered_lines) < self.limit and settled.filtered:
            taken = {number for placed in settled.rows.values() for number, _, _ in placed}
            taken |= {letter.event.sequence_number for letter in settled.letters}
            filtered = (each for each in range(commit.first, commit.last.sequence_number + 1) if each not in taken)
            self.filtered_lines += map(self.file.line_of, islice(filtered, self.limit - len(self.filtered_lines)))

    def _add_rows(self, row_class: type, placed: Sequence[tuple[int, int, Row]]) -> None:
        if not row_table(row_class).key:
            rows = self.rows.setdefault(row_class, [])
            rows += [(self.file.line_of(number), row) for number, _, row in placed[: self.limit - len(rows)]]
            return
        keys = self.keys.setdefault(row_class, {})
        for number, _, row in placed:
            key, rank_of = ReferenceKey.of(row), row_table(row_class).rank_of
            if len(keys) < self.limit if key not in keys else rank_of(keys[key][1]) <= rank_of(row):
                keys[key] = (self.file.line_of(number), row)


def means_of(database: Database, transform: Transform) -> Ingestion:
    """Return the means of an ingestion into a database."""
    return Ingestion(Partitions(database), transform, CLOCK)


def ingest_file(file: EventFile, means: Ingestion) -> Iterator[IngestReport]:
    """Ingest a file, and yield the report of each batch.

    A batch that was refused comes again, as the host has it, as long as that gets further.
    """
    events, reached = iter(file), -1
    while batch := tuple(islice(events, BATCH)):
        while True:
            try:
                name = f"line {file.line_of(batch[0].sequence_number)}"
                yield ingest_batch(EventBatch(EVENTS, batch, name), means)
                break
            except DataRefused:
                state = means.store.read_partition(EVENTS)
                if state.checkpoint is None or state.checkpoint.sequence_number <= reached:
                    raise
                reached = state.checkpoint.sequence_number


def states_of(outcome: TrialOutcome, store: Partitions) -> Iterable[tuple[type, list[tuple[int, Row]]]]:
    """Return the states that the store has of the first keys, each with the line of its newest event."""
    for row_class, keys in outcome.keys.items():
        found = store.read_references(keys)
        yield row_class, [(line, found[key]) for key, (line, _) in keys.items() if key in found]


def difference(
    file: EventFile, known: Sequence[Row], before: Transform, transform: Transform, limit: int
) -> dict[str, Any]:
    """Rehearse a replay of a file with a transform, after the ingestion with the one `before`.

    Return the counts of the dry run, and the changes of the first events that it would change, by line.
    """
    with trial_database((*before.row_classes, *transform.row_classes)) as trial:
        means = means_of(trial.database, before)
        register(known, means)
        for _ in ingest_file(file, means):
            pass
        store = Replays(trial.database, Partitions(trial.database))
        job_id = replay_all(
            ReplayKind(STREAM, store, TrialLog(lambda: file, len(file)), transform, CLOCK), is_dry_run=True
        )
        job = store.find_replay(job_id)
        changes = [
            {"line": file.line_of(one.sequence_number), **json.loads(one.diff)}
            for one in store.read_replay_diffs(job_id, None, limit)
        ]
    return {"counts": asdict(ReplayCounts() if job is None else job.counts), "events": changes}
