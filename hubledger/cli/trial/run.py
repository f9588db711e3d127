"""The ingestion of a file of events, and its outcome."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from uuid import uuid4

from core.errors import DataRefused
from core.ingest.ingest import IngestReport, Means, ingest_batch
from core.letters.store import Letters
from core.model.commits import BatchCommit, DeadLetter
from core.model.events import EventBatch
from core.model.ports import Clock
from core.model.rows import ReferenceKey, Row, row_table
from core.model.transforms import Transform
from core.store.database import Database
from hubledger.cli.lines import EventFile
from local.trials.replay_identity import EVENTS

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
            self._add_filtered(commit)

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

    def _add_filtered(self, commit: BatchCommit) -> None:
        taken = {number for placed in commit.settled.rows.values() for number, _, _ in placed}
        taken |= {letter.event.sequence_number for letter in commit.settled.letters}
        filtered = (each for each in range(commit.first, commit.last.sequence_number + 1) if each not in taken)
        self.filtered_lines += map(self.file.line_of, islice(filtered, self.limit - len(self.filtered_lines)))


def means_of(database: Database, transform: Transform) -> Means:
    """Return the means of an ingestion into a database."""
    return Means(Letters(database), transform, CLOCK)


def ingest_file(file: EventFile, means: Means) -> Iterator[IngestReport]:
    """Ingest a file, and yield the report of each batch."""
    events = iter(file)
    while batch := tuple(islice(events, BATCH)):
        yield from _ingest(EventBatch(EVENTS, batch, f"line {file.line_of(batch[0].sequence_number)}"), means)


def _ingest(batch: EventBatch, means: Means) -> Iterator[IngestReport]:
    """Ingest a batch as the host does: again after a refusal, as long as that gets further."""
    reached = -1
    while True:
        try:
            yield ingest_batch(batch, means)
        except DataRefused:
            state = means.store.read_partition(EVENTS)
            if state.checkpoint is None or state.checkpoint.sequence_number <= reached:
                raise
            reached = state.checkpoint.sequence_number
        else:
            return


def states_of(outcome: TrialOutcome, store: Letters) -> Iterable[tuple[type, list[tuple[int, Row]]]]:
    """Return the states that the store has of the first keys, each with the line of its newest event."""
    for row_class, keys in outcome.keys.items():
        found = store.read_references(keys)
        yield row_class, [(line, found[key]) for key, (line, _) in keys.items() if key in found]
