"""The embedded store: stdlib sqlite3, WAL, synchronous=FULL, one connection per thread, one writer at a time."""

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from core.errors import CheckpointConflict, CommitOutcomeUnknown, DataRefused, StoreUnavailable
from core.ledger.status import PartitionLedger
from core.model.commits import BatchCommit, PartitionState, Settled
from core.model.events import Partition, PartitionId, Stream
from core.model.rows import ReferenceKey, Row, keys_by_class
from core.model.spans import SequenceNumber, Span
from core.ownership import Ownership, OwnershipClaim
from core.store.queries import load_queries
from core.store.records import (
    checkpoint_of,
    checkpoint_values,
    gap_values,
    instant_of,
    instant_text,
    ledger_values,
    letter_values,
    ownership_of,
    ownership_values,
    refuse_stale,
)
from core.store.recount_statements import sqlite_count_rows, sqlite_row_faults
from core.store.row_statements import (
    row_reader,
    sqlite_insert,
    sqlite_select_placed,
    sqlite_select_states,
)
from core.store.schema import open_checked
from core.store.sqlite_letters import SqliteLetters
from core.store.sqlite_replays import SqliteReplays

sqlite3.register_adapter(Decimal, lambda number: f"{number:f}")  # exact, as text


class SqliteStore(SqliteLetters, SqliteReplays):
    """A Store in one file. `busy_timeout` is how long, in seconds, it waits for another process that writes."""

    def __init__(self, path: Path, busy_timeout: float = 5.0) -> None:
        self._path = path
        self._busy_timeout = busy_timeout
        self._queries = {name: query.text for name, query in load_queries("sqlite").items()}
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._writing = threading.Lock()  # fair within the process, where SQLite's own waiting polls

    def read_partition(self, partition: Partition) -> PartitionState:
        """See Store."""
        with _faults():
            stream_id = self._find_stream(partition.stream)
            key = {"stream_id": stream_id, "partition_id": partition.partition_id}
            found = self._connection().execute(self._queries["read_checkpoint"], key).fetchone()
            if found is not None:
                return PartitionState(partition, stream_id, checkpoint_of(found))
            anchor, opened_at = self._connection().execute(self._queries["read_anchor"], key).fetchone()
        return PartitionState(partition, stream_id, None, anchor, instant_of(opened_at))

    def open_stream(self, stream: Stream) -> int:
        """See LetterStore."""
        with _faults():
            return self._find_stream(stream)

    def read_references(self, keys: Iterable[ReferenceKey]) -> Mapping[ReferenceKey, Row]:
        """See Store."""
        rows: dict[ReferenceKey, Row] = {}
        for row_class, values in keys_by_class(keys).items():
            for row in self._states(row_class, values):
                rows[ReferenceKey.of(row)] = row
        return rows

    def commit_batch(self, commit: BatchCommit) -> int:
        """See Store."""
        with self._changing() as connection:
            commit_number = self._advance(connection, commit)
            place = (commit.state.stream_id, commit.partition.partition_id, commit_number)
            self._write_rows(connection, commit.settled, place)
            letters = commit.settled.letters
            if letters:
                values = [letter_values(letter, commit) for letter in letters]
                connection.executemany(self._queries["add_letter"], values)
            connection.execute(self._queries["record_batch"], ledger_values(commit, commit_number))
            if commit.gaps:
                self._settle_gaps(connection, commit)
        return commit_number

    def anchor_partition(self, state: PartitionState, anchor: SequenceNumber, at: datetime) -> PartitionState:
        """See Store."""
        values = {**_key_of(state), "sequence_number": anchor, "anchored_at": instant_text(at)}
        self._run("anchor_partition", values)
        return self.read_partition(state.partition)

    def note_gap(self, state: PartitionState, gap: Span, found_at: datetime) -> None:
        """See Store."""
        refuse_stale(state, self.read_partition(state.partition))
        range_ = {"first_sequence_number": gap.first, "last_sequence_number": gap.last}
        self._run("note_gap", {**_key_of(state), **range_, "found_at": instant_text(found_at)})

    def close_gaps(self, partition: Partition) -> None:
        """See Store."""
        with _faults():
            stream_id = self._find_stream(partition.stream)
        self._run("close_gaps", {"stream_id": stream_id, "partition_id": partition.partition_id})

    def read_ledgers(self) -> tuple[PartitionLedger, ...]:
        """See Store."""
        with _faults():
            found = self._connection().execute(self._queries["read_ledgers"]).fetchall()
        return tuple(PartitionLedger(Partition(*row[:3]), *row[3:]) for row in found)

    def read_ownerships(self, stream: Stream) -> tuple[Ownership, ...]:
        """See OwnershipStore."""
        found = self._of_stream("read_ownerships", stream)
        return tuple(ownership_of(stream, row) for row in found)

    def claim_ownership(self, claim: OwnershipClaim) -> bool:
        """See OwnershipStore."""
        with _faults():
            values = ownership_values(claim, self._find_stream(claim.ownership.partition.stream))
            name = "take_ownership" if claim.expected_etag is None else "renew_ownership"
            with self._writing, self._transaction() as connection:
                return connection.execute(self._queries[name], values).fetchone() is not None

    def read_checkpoints(self, stream: Stream) -> Mapping[PartitionId, tuple[SequenceNumber, str]]:
        """See OwnershipStore."""
        return {PartitionId(id): (number, offset) for id, number, offset in self._of_stream("read_checkpoints", stream)}

    def ask(self, name: str, **values: Any) -> list[tuple[Any, ...]]:
        """See NamedQueries."""
        with _faults():
            return self._connection().execute(self._queries[name], values).fetchall()

    def tell(self, name: str, **values: Any) -> list[tuple[Any, ...]]:
        """See NamedQueries."""
        with self._writing:
            return self.ask(name, **values)

    def count_rows(self, row_class: type, **place: Any) -> tuple[int, int]:
        """See NamedQueries."""
        with _faults():
            counted: tuple[int, int] = self._connection().execute(sqlite_count_rows(row_class), place).fetchone()
        return counted

    def find_row_faults(self, row_classes: tuple[type, ...], **place: Any) -> list[tuple[Any, ...]]:
        """See NamedQueries."""
        with _faults():
            return self._connection().execute(sqlite_row_faults(row_classes), place).fetchall()

    def rows_at(self, row_class: type, stream_id: int, partition_id: str, number: int) -> list[tuple[Any, ...]]:
        """See NamedQueries."""
        position = {"stream_id": stream_id, "partition_id": partition_id, "sequence_number": number}
        with _faults():
            return self._connection().execute(sqlite_select_placed(row_class), position).fetchall()

    def close(self) -> None:
        """See Store."""
        with self._writing:
            while self._connections:
                self._connections.pop().close()
            self._local = threading.local()

    def _of_stream(self, name: str, stream: Stream) -> list[Any]:
        with _faults():
            key = {"stream_id": self._find_stream(stream)}
            return self._connection().execute(self._queries[name], key).fetchall()

    def _find_stream(self, stream: Stream) -> int:
        key = {"event_hub": stream.event_hub, "consumer_group": stream.consumer_group}
        connection = self._connection()
        found = connection.execute(self._queries["find_stream"], key).fetchone()
        if found is None:
            opened = {**key, "anchored_at": instant_text(datetime.now(UTC))}
            with self._writing:
                connection.execute(self._queries["open_stream"], opened)
            found = connection.execute(self._queries["find_stream"], key).fetchone()
        return int(found[0])

    def _states(self, row_class: type, keys: list[tuple[Any, ...]]) -> Iterator[Row]:
        read = row_reader(row_class)
        with _faults():
            select = sqlite_select_states(row_class)
            found = self._connection().execute(select, (json.dumps(keys, default=str),)).fetchall()
        return map(read, found)

    def _advance(self, connection: sqlite3.Connection, commit: BatchCommit) -> int:
        values = checkpoint_values(commit)
        name = "open_checkpoint" if commit.expected is None else "advance_checkpoint"
        moved = connection.execute(self._queries[name], values).fetchone()
        if moved is None:
            raise CheckpointConflict(commit.partition, commit.expected)
        return int(moved[0])

    def _write_rows(self, connection: sqlite3.Connection, settled: Settled, place: tuple[int, str, int]) -> None:
        for row_class, rows in settled.rows.items():
            statement = sqlite_insert(row_class)
            connection.executemany(statement.text, statement.values_of(rows, *place))

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with _faults():
            yield self._connection()

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._writing, _faults(), self._transaction() as connection:
            yield connection

    def _settle_gaps(self, connection: sqlite3.Connection, commit: BatchCommit) -> None:
        values = [gap_values(gap, commit) for gap in commit.gaps]
        connection.executemany(self._queries["settle_gap"], values)
        at = {"committed_at": instant_text(commit.committed_at)}
        connection.executemany(self._queries["add_gap"], [{**each, **at} for each in values])

    def _run(self, name: str, values: dict[str, Any]) -> None:
        with self._changing() as connection:
            connection.execute(self._queries[name], values)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._drop(connection)
            raise CommitOutcomeUnknown(f"{self._path}: the commit was not answered: {error}") from error

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = open_checked(self._path, self._busy_timeout)
            self._connections.append(connection)
        return connection

    def _drop(self, connection: sqlite3.Connection) -> None:
        self._local.connection = None
        self._connections.remove(connection)
        connection.close()


def _key_of(state: PartitionState) -> dict[str, Any]:
    return {"stream_id": state.stream_id, "partition_id": state.partition.partition_id}


@contextmanager
def _faults() -> Iterator[None]:
    """Name what SQLite reports: what a value or a constraint caused is data, the rest is the store's own state."""
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError, OverflowError, ValueError) as error:
        raise DataRefused(f"the database refuses the data: {error}") from error
    except sqlite3.ProgrammingError as error:
        if "binding" in str(error):
            raise DataRefused(f"the database refuses the data: {error}") from error
        raise StoreUnavailable(f"the embedded store is not usable: {error}") from error
    except sqlite3.Error as error:
        raise StoreUnavailable(f"the embedded store is not usable: {error}") from error
