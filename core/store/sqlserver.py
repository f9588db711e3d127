"""The production store: SQL Server and Azure SQL, one T-SQL batch and one round trip for a whole commit."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from core.errors import (
    CheckpointConflict,
    CommitOutcomeUnknown,
    DataRefused,
    LetterConflict,
    ReplayConflict,
    SchemaMismatch,
    StoreMisconfigured,
    StoreUnavailable,
)
from core.ledger.status import PartitionLedger
from core.model.commits import BatchCommit, PartitionState
from core.model.events import Partition, PartitionId, Stream
from core.model.letters import RetryCommit
from core.model.rows import ReferenceKey, Row, keys_by_class, row_table
from core.model.spans import SequenceNumber, Span
from core.ownership import Ownership, OwnershipClaim
from core.store.faults import Fault, classify
from core.store.odbc import Access, Connections, Deadlines, connect
from core.store.queries import load_queries
from core.store.records import (
    checkpoint_of,
    instant_of,
    ownership_of,
    ownership_values,
    refuse_stale,
    server_instant_text,
)
from core.store.recount_statements import OF_FAULTS, OF_RANGE, server_count_rows, server_row_faults
from core.store.row_statements import row_reader, server_select_placed, server_select_states
from core.store.server_commit import UNFOLDING, commit_statement, server_texts, statement
from core.store.server_json import can_stand, rows_json
from core.store.server_letters import ServerLetters
from core.store.server_replays import ServerReplays
from core.store.server_schema import SCHEMA, check_version, in_schema

Commit = BatchCommit | RetryCommit


class SqlServerStore(ServerLetters, ServerReplays):
    """A Store on a server. `schema` is another one than `hubledger` only in tests, which make their own and drop it."""

    def __init__(
        self,
        connection_string: str,
        deadlines: Deadlines | None = None,
        schema: str = SCHEMA,
        access: Access | None = None,
    ) -> None:
        self._schema = schema
        self._driver = (access or Access()).driver
        self._connections = Connections(
            lambda: connect(connection_string, deadlines, access), lambda session: check_version(session, schema)
        )

    def read_partition(self, partition: Partition) -> PartitionState:
        """See Store."""
        with self._faults():
            stream_id = self._find_stream(partition.stream)
            found = self._rows("read_checkpoint", stream_id=stream_id, partition_id=partition.partition_id)
            if found:
                return PartitionState(partition, stream_id, checkpoint_of(tuple(found[0])))
            ((anchor, opened_at),) = self._rows("read_anchor", stream_id=stream_id, partition_id=partition.partition_id)
        return PartitionState(partition, stream_id, None, anchor, instant_of(opened_at))

    def open_stream(self, stream: Stream) -> int:
        """See LetterStore."""
        with self._faults():
            return self._find_stream(stream)

    def read_references(self, keys: Iterable[ReferenceKey]) -> Mapping[ReferenceKey, Row]:
        """See Store."""
        rows: dict[ReferenceKey, Row] = {}
        for row_class, values in keys_by_class(keys).items():
            if not (standing := [key for key in values if can_stand(key)]):
                continue
            keys_json, folded = rows_json(standing)
            unfolding = UNFOLDING if folded else {}
            text = statement(server_select_states(row_class, folded), (*unfolding, "keys"))
            read = row_reader(row_class)
            with self._faults():
                for found in self._execute(text, [*unfolding.values(), keys_json]):
                    row = read(tuple(found))
                    rows[ReferenceKey.of(row)] = row
        return rows

    def commit_batch(self, commit: BatchCommit) -> int:
        """See Store."""
        text, given = commit_statement(commit)
        with self._faults(commit):
            found = self._execute(text, given)
        return int(found[0][0])

    def anchor_partition(self, state: PartitionState, anchor: SequenceNumber, at: datetime) -> PartitionState:
        """See Store."""
        with self._faults():
            values = {"sequence_number": anchor, "anchored_at": server_instant_text(at)}
            self._rows("anchor_partition", **_key_of(state), **values)
        return self.read_partition(state.partition)

    def note_gap(self, state: PartitionState, gap: Span, found_at: datetime) -> None:
        """See Store."""
        refuse_stale(state, self.read_partition(state.partition))
        with self._faults():
            range_ = {"first_sequence_number": gap.first, "last_sequence_number": gap.last}
            self._rows("note_gap", **_key_of(state), **range_, found_at=server_instant_text(found_at))

    def close_gaps(self, partition: Partition) -> None:
        """See Store."""
        with self._faults():
            self._rows("close_gaps", stream_id=self._find_stream(partition.stream), partition_id=partition.partition_id)

    def read_ledgers(self) -> tuple[PartitionLedger, ...]:
        """See Store."""
        with self._faults():
            found = self._rows("read_ledgers")
        return tuple(PartitionLedger(Partition(*row[:3]), *_numbers(row[3:])) for row in map(tuple, found))

    def read_ownerships(self, stream: Stream) -> tuple[Ownership, ...]:
        """See OwnershipStore."""
        with self._faults():
            found = self._rows("read_ownerships", stream_id=self._find_stream(stream))
        return tuple(ownership_of(stream, tuple(row)) for row in found)

    def claim_ownership(self, claim: OwnershipClaim) -> bool:
        """See OwnershipStore."""
        name = "take_ownership" if claim.expected_etag is None else "renew_ownership"
        with self._faults():
            values = ownership_values(claim, self._find_stream(claim.ownership.partition.stream))
            return bool(self._rows(name, **server_texts(values)))

    def read_checkpoints(self, stream: Stream) -> Mapping[PartitionId, tuple[SequenceNumber, str]]:
        """See OwnershipStore."""
        with self._faults():
            found = self._rows("read_checkpoints", stream_id=self._find_stream(stream))
        return {PartitionId(row[0]): (row[1], row[2]) for row in found}

    def ask(self, name: str, **values: Any) -> list[tuple[Any, ...]]:
        """See NamedQueries."""
        with self._faults():
            return [tuple(row) for row in self._rows(name, **server_texts(values))]

    tell = ask

    def count_rows(self, row_class: type, **place: Any) -> tuple[int, int]:
        """See NamedQueries."""
        text = statement(server_count_rows(row_class), OF_RANGE)
        with self._faults():
            ((rows, without),) = self._execute(text, [place[name] for name in OF_RANGE])
        return rows, without

    def find_row_faults(self, row_classes: tuple[type, ...], **place: Any) -> list[tuple[Any, ...]]:
        """See NamedQueries."""
        text = statement(server_row_faults(row_classes), OF_FAULTS)
        with self._faults():
            return [tuple(row) for row in self._execute(text, [place[name] for name in OF_FAULTS])]

    def rows_at(self, row_class: type, stream_id: int, partition_id: str, number: int) -> list[tuple[Any, ...]]:
        """See NamedQueries."""
        text = statement(server_select_placed(row_class), ("stream_id", "partition_id", "sequence_number"))
        with self._faults():
            return [tuple(row) for row in self._execute(text, [stream_id, partition_id, number])]

    def close(self) -> None:
        """See Store."""
        self._connections.close()

    def _find_stream(self, stream: Stream) -> int:
        key = {"event_hub": stream.event_hub, "consumer_group": stream.consumer_group}
        found = self._rows("find_stream", **key)
        if not found:
            self._rows("open_stream", **key, anchored_at=server_instant_text(datetime.now(UTC)))
            found = self._rows("find_stream", **key)
        return int(found[0][0])

    def _rows(self, name: str, **values: Any) -> list[Any]:
        query = load_queries("sqlserver")[name]
        return self._execute(statement(query.text, query.params), [values[param] for param in query.params])

    def _execute(self, text: str, given: list[Any]) -> list[Any]:
        return self._connections.get().run(in_schema(text, self._schema), given)

    @contextmanager
    def _faults(self, commit: Commit | None = None) -> Iterator[None]:
        try:
            yield
        except self._driver().Error as error:
            fault = classify(error, _racing_keys(commit))
            if fault not in (Fault.CONFLICT, Fault.LETTERS, Fault.DATA):
                self._connections.drop()
            raise _named(fault, str(error.args[-1]), commit) from error

    @contextmanager
    def _replaying(self, partition: object, job_id: UUID, row_classes: Iterable[type] = ()) -> Iterator[None]:
        try:
            yield
        except self._driver().Error as error:
            fault, text = classify(error, _state_keys(row_classes)), str(error.args[-1])
            if fault is Fault.REPLAY:
                raise ReplayConflict(partition, job_id) from error
            if fault is not Fault.DATA:
                self._connections.drop()
            if fault is Fault.LOST:
                raise CommitOutcomeUnknown(f"{partition}: replay {job_id} was not answered: {text}") from error
            raise _named(fault, text, None) from error


def _key_of(state: PartitionState) -> dict[str, Any]:
    return {"stream_id": state.stream_id, "partition_id": state.partition.partition_id}


def _numbers(values: tuple[Any, ...]) -> list[Any]:
    """Sums are decimals on some servers."""
    return [int(value) for value in values]


def _racing_keys(commit: Commit | None) -> list[str]:
    if commit is None:
        return ["uq_event_stream"]
    return [*_state_keys(commit.settled.rows), "pk_sequence_gap"]


def _state_keys(row_classes: Iterable[type]) -> list[str]:
    return [f"pk_{row_table(row_class).name}" for row_class in row_classes if row_table(row_class).key]


def _named(fault: Fault, text: str, commit: Commit | None) -> Exception:
    if fault is Fault.LETTERS and isinstance(commit, RetryCommit):
        return LetterConflict(commit.partition, commit.claimed_by)
    if fault is Fault.CONFLICT and isinstance(commit, BatchCommit):
        return CheckpointConflict(commit.partition, commit.expected)
    if fault is Fault.DATA:
        return DataRefused(f"the database refuses the data: {text}")
    if fault is Fault.LOST and commit is not None:
        return CommitOutcomeUnknown(f"{commit.partition}: the commit was not answered: {text}")
    if fault is Fault.SCHEMA:
        return SchemaMismatch(f"an object or a permission is missing, run `python -m core.store.migrate`: {text}")
    if fault in (Fault.LOGIN, Fault.DRIVER):
        return StoreMisconfigured(f"STORE_CONNECTION: {text}")
    return StoreUnavailable(f"the database is not usable: {text}")
