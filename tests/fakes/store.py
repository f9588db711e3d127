"""Every verb of the store over one database, as tests use them, and such a store over SQLite in memory."""

import time
import weakref
from collections.abc import Callable
from copy import copy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self
from uuid import UUID

from core.aggregation.store import Aggregations
from core.api.room_operations import RoomStore
from core.audit.audit import commit_pieces
from core.audit.faults import NOTHING, Commits, PartitionLedger
from core.audit.store import AuditStore
from core.incarnations.next_incarnation import Incarnations, Opening
from core.ledger.explain import Explanations
from core.ledger.store import BurnDowns, Ledger
from core.ledger.totals import PartitionBooks
from core.letters.listing import LetterListing
from core.letters.redrive import Redrive, Redrives, redrive_of
from core.letters.store import Letters
from core.model.events import PartitionId, SequenceNumber, Stream
from core.purge.store import Purges
from core.replay.pieces import ReplayJob, replay_of
from core.replay.store import Replays
from core.settle.attempts import Attempts
from core.settle.partition_store import Partitions
from core.store.database import Database, OneStream, PatientDatabase, Waiting
from core.store.memory import Memory
from core.store.sqlite.database import SqliteDatabase
from core.tasks.store import Tasks
from core.worker.ownership import Ownerships
from examples.home_security.homes import Homes
from local.trials.replay_identity import memory_connection
from tests.fakes.builders import NOON, STREAM
from tests.fakes.kept import SqliteEyes
from tests.fakes.rooms import EXAMPLES, Rooms


class Store(Partitions, Letters, Redrives, Replays, Ownerships, Attempts):
    """Reads and writes of events, letters, redrives, replays, owners and attempts."""

    def __init__(self, database: Database, memory: Memory | None = None) -> None:
        Partitions.__init__(self, database, memory)
        self.database = database

    @property
    def partitions(self) -> Partitions:  # type: ignore[override]
        return self

    def read_ledgers(self, stream: Stream = STREAM) -> tuple[PartitionLedger, ...]:
        own = AuditStore(OneStream(self.database, stream), ())
        ledgers = []
        for id in own.find_traces():
            ends, summed = own.read_ledger_ends(id), NOTHING
            for after, last in commit_pieces(own, id, Commits(0, ends.last_commit)):
                summed = summed.plus(own.sum_ranges(id, Commits(after, last, summed.last)))
            ledgers.append(ends.ledger(summed))
        return tuple(one for one in ledgers if one.commits or one.checkpoint >= 0)

    def read_books(self, stream: Stream = STREAM) -> tuple[PartitionBooks, ...]:
        return Ledger(OneStream(self.database, stream)).read_books()

    def read_replays(
        self, stream: Stream, most: int, before: tuple[datetime, UUID] | None = None
    ) -> tuple[ReplayJob, ...]:
        return tuple(map(replay_of, self.tasks.read(self.open_stream(stream), most, before, kind="replay")))

    def read_redrives(
        self, stream: Stream, most: int, before: tuple[datetime, UUID] | None = None
    ) -> tuple[Redrive, ...]:
        return tuple(map(redrive_of, self.tasks.read(self.open_stream(stream), most, before, kind="redrive")))

    def read_open_tasks(self, stream: Stream) -> tuple[UUID, ...]:
        found = self.tasks.read_open(self.open_stream(stream))
        return tuple(id for id, _, status in found if status != "paused")

    def remembering(self, keep: timedelta, monotonic: Callable[[], float] = time.monotonic) -> Self:
        other = copy(self)
        other._memory = Memory(keep, monotonic)
        return other

    def patient(self, patience: timedelta, waiting: Waiting | None = None) -> Self:
        other = copy(self)
        other._database = other.database = PatientDatabase(self.database, patience, waiting)
        return other

    def close(self) -> None:
        self.database.close()


def homes_of(database: Database) -> Homes:
    return Homes(RoomStore(database, Aggregations(database)))


class MemoryStore(Store, SqliteEyes):
    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC), rooms: Rooms = EXAMPLES) -> None:
        self._connection = connection = memory_connection(rooms)
        database = SqliteDatabase(Path(":memory:"), connect=lambda: connection, now=now)
        weakref.finalize(database, connection.close)
        super().__init__(database)

    def note_statements(self, note: Callable[[str], object]) -> None:
        self._connection.set_trace_callback(note)

    def image(self) -> bytes:
        return self._connection.serialize()

    def open(self) -> Store:
        return self

    def close(self) -> None:
        """Keep the database: other owners share this object."""


def opening(store: Store, first: int = 0) -> Opening:
    anchors = {PartitionId(id): SequenceNumber(first) for id in ("0", "1")}
    return Opening(store.read_incarnation(STREAM), STREAM, NOON, anchors, "ada", "the hub was recreated", NOON)


def open_next(store: Store, first: int = 0) -> None:
    Incarnations(store.database, Partitions(store.database)).open_incarnation(opening(store, first))


class OperatorStores:
    """The stores of the operator's part of an app, over a stream whose events become rows of these classes."""

    def __init__(self, database: Database, of: Stream, row_classes: tuple[type, ...]) -> None:
        self.stream = OneStream(database, of)
        self.ledger, self.letters = Ledger(self.stream), LetterListing(self.stream)
        self.audits = AuditStore(self.stream, row_classes)
        self.explanations = Explanations(self.stream, row_classes)
        self.tasks, self.purges, self.burn_downs = Tasks(database), Purges(self.stream), BurnDowns(self.stream)


operator_stores = OperatorStores
