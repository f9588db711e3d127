"""Replay identity: a replay of all events writes the rows that their first ingestion wrote."""

import random
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import timedelta
from itertools import count, zip_longest
from pathlib import Path
from typing import Any
from uuid import UUID

from msgspec import structs

from core.ingest.ingest import Means, ingest_batch
from core.letters.store.letters import Letters
from core.model.clock import Clock
from core.model.events import Event, EventBatch
from core.model.rows import Row
from core.model.spans import SequenceNumber
from core.model.transform import Transform
from core.replay.run import ReplayKind
from core.replay.store.replays import Replays
from core.store.database import Database
from core.store.decoding import row_reader
from core.store.script import of_rows
from core.store.sqlite.database import SqliteDatabase
from core.transforms.rooms import rooms_of
from local.trials.memory import memory_connection
from local.trials.outcomes import BEGINNING, Given, event_of, shown, transform_of
from local.trials.replaying import EVENTS, STREAM, TrialLog, register, replay_all

BATCH = 7  # events, so that a few events make several commits
NOW = BEGINNING + timedelta(days=365)

Written = dict[int, list[Row]]  # the rows of each sequence number


def check_replay_identity(transform: Given, events: Iterable[object], *, references: Iterable[Row] = ()) -> None:
    """Assert that a replay of these events, in this order, writes the rows that their ingestion wrote.

    The events go through the app's own ingestion and replay, into SQLite in memory with all migrations. `references`
    are states that the store has before the first event. Raises SchemaMismatch when a row class has no table.
    """
    loaded, known = transform_of(transform), tuple(references)
    log = [
        structs.replace(event_of(each, number=at), sequence_number=SequenceNumber(at)) for at, each in enumerate(events)
    ]
    connection = memory_connection(rooms_of(loaded.row_classes))
    with closing(SqliteDatabase(Path(":memory:"), connect=lambda: connection, needed=loaded.row_classes)) as database:
        means = Means(Letters(database), loaded, _clock())
        register(known, means)
        for at in range(0, len(log), BATCH):
            ingest_batch(EventBatch(EVENTS, tuple(log[at : at + BATCH]), f"batch {at}"), means)
        before = _written(database, loaded, len(log))
        if not any(before.values()):
            raise AssertionError("no event became a row, so that a replay shows nothing: give events that do")
        hub = TrialLog(lambda: log, len(log))
        replay_all(ReplayKind(STREAM, Replays(database), hub, loaded, _clock(seed=1)), is_dry_run=False)
        _compare(log, before, _written(database, loaded, len(log)))


def _written(database: Database, transform: Transform, events: int) -> Written:
    """Return the rows in the tables, appended ones in their order, by the number of the event that wrote them."""
    stream_id = Letters(database).open_stream(STREAM)
    place = {"stream_id": stream_id, "partition_id": EVENTS.partition_id}
    found: Written = {}
    for number in range(events):
        placed: list[tuple[Any, Row]] = []
        for row_class in transform.row_classes:
            read, named = row_reader(row_class), of_rows("select_placed", row_class)
            rows = database.ask(named, **place, sequence_number=number)
            placed += [(ordinal or 0, read(tuple(values))) for ordinal, _, *values in rows]
        found[number] = [row for _, row in sorted(placed, key=lambda one: (one[0], str(one[1])))]
    return found


def _compare(log: Sequence[Event], before: Written, after: Written) -> None:
    for event in log:
        for one, other in zip_longest(before[event.sequence_number], after[event.sequence_number]):
            if one != other:
                raise AssertionError(
                    f"a replay changes the rows of event {event.sequence_number}, {shown(event.body)}:\n"
                    f"  ingested: {one}\n  replayed: {other}"
                )


def _clock(seed: int = 0) -> Clock:
    chance = random.Random(seed)
    ticks = count()
    return Clock(
        now=lambda: NOW + timedelta(milliseconds=next(ticks)),
        new_id=lambda: UUID(int=chance.getrandbits(128), version=4),
        chance=chance.random,
    )
