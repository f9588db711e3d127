"""The rows of a store as tests read them: the same values from every engine, and SQLite by statements of the test.

The reference is the tables after one owner that sees every event once, in order, and never fails.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, get_type_hints

from core.model.commits import PartitionState
from core.model.events import Event
from core.model.property_values import encode_properties
from core.model.rows import ReferenceKey, References, Row, declared, row_table
from core.model.transforms import Transform
from core.settle.settle import settle
from core.store.columns import fields_of, instant_text, quoted, types_of
from tests.fakes.plain_transform import ROW_CLASSES, STANDING

if TYPE_CHECKING:
    from tests.fakes.store import Store

PLACE = ("stream_id", "partition_id", "sequence_number")
STAGED = (*PLACE, "offset_token", "enqueued_at", "partition_key", "properties", "body")
COLUMNS = {"offset": "offset_token", "first": "first_sequence_number", "last": "last_sequence_number"}
Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True)
class KeptRow:
    """A row and its origin. `ordinal` is None for a state."""

    stream_id: int
    partition_id: str
    sequence_number: int
    ordinal: int | None
    commit_number: int
    row: Row


@dataclass(frozen=True, slots=True)
class KeptLetter:
    stream_id: int
    partition_id: str
    sequence_number: int
    offset: str
    enqueued_at: datetime
    partition_key: str | None
    properties: Mapping[str, object]
    body: bytes
    error_class: str
    error_type: str
    error: str
    fingerprint: str
    transform_version: str
    status: str
    attempts: int
    due_at: datetime | None
    failed_at: datetime
    body_kept: bool = True
    lost_claims: int = 0
    claimed_by: str | None = None
    claimed_until: datetime | None = None
    began_at: datetime | None = None
    settled_at: datetime | None = None
    settled_why: str | None = None


@dataclass(frozen=True, slots=True)
class KeptAttempt:
    stream_id: int
    partition_id: str
    sequence_number: int
    attempt: int
    touched_by: str
    kind: str
    status: str
    error_class: str | None
    error: str | None
    commit_number: int | None
    done_by: str
    why: str | None


@dataclass(frozen=True, slots=True)
class KeptRange:
    stream_id: int
    partition_id: str
    commit_number: int
    first: int
    last: int
    written: int
    filtered: int
    dead_lettered: int
    absent: int
    rows_written: int
    transform_version: str
    invocation_id: str
    committed_at: datetime


@dataclass(frozen=True, slots=True)
class KeptRetracted:
    stream_id: int
    partition_id: str
    commit_number: int
    table_name: str
    sequence_number: int
    ordinal: int
    row_commit_number: int
    row: Row

    @staticmethod
    def of(kept: KeptRow, ordinal: int, commit_number: int) -> "KeptRetracted":
        place, table = (kept.stream_id, kept.partition_id), row_table(type(kept.row)).name
        return KeptRetracted(*place, commit_number, table, kept.sequence_number, ordinal, kept.commit_number, kept.row)

    @property
    def position(self) -> tuple[object, ...]:
        place = (self.stream_id, len(self.partition_id), self.partition_id, self.commit_number)
        return (*place, self.table_name, self.sequence_number, self.ordinal)


@dataclass(frozen=True, slots=True)
class KeptGap:
    stream_id: int
    partition_id: str
    first: int
    last: int
    found_at: datetime
    status: str
    attempts: int


def staged_values(state: PartitionState, event: Event) -> tuple[object, ...]:
    place = (state.stream_id, state.partition.partition_id, event.sequence_number)
    properties = encode_properties(event.properties)
    return (*place, event.offset, instant_text(event.enqueued_at), event.partition_key, properties, event.body)


@dataclass(frozen=True, slots=True)
class Dialect:
    """The differences between databases that are right in both. docs/sqlserver.md explains them."""

    pads_texts: bool
    """In a comparison, spaces at the end of a text do not count."""
    limits_texts: bool
    """A column has a length, in units of UTF-16, and refuses a longer text."""


EMBEDDED = Dialect(pads_texts=False, limits_texts=False)
SERVER = Dialect(pads_texts=True, limits_texts=True)


class Engine:
    """A database under test: it opens stores, and reads the rows that they wrote, in order of position.

    Each call of `open` returns the store of a different owner. `stage` leaves an event that is staged already as it
    is. `by_hand` runs a statement whose words both engines have.
    """

    dialect: ClassVar[Dialect]

    def open(self) -> "Store":
        raise NotImplementedError

    def stage(self, state: PartitionState, events: Iterable[Event]) -> None:
        raise NotImplementedError

    def by_hand(self, statement: str) -> list[tuple[object, ...]]:
        raise NotImplementedError

    def read_in_order(self, text: str, order: str) -> list[Any]:
        raise NotImplementedError

    def rows(self, row_class: type) -> list[KeptRow]:
        table = row_table(row_class)
        ordinal = () if table.key else ("ordinal",)
        columns = (*PLACE, *ordinal, "commit_number", *table.columns)
        found = self._select(table.name, columns, ("sequence_number", *(table.key or ordinal)))
        lineage = 5 - bool(table.key)
        kept: list[list[Any]] = [
            [*one[:3], None if table.key else one[3], one[lineage - 1], _row(row_class, one[lineage:])] for one in found
        ]
        return [KeptRow(*one) for one in kept]

    def letters(self) -> list[KeptLetter]:
        return self._kept(KeptLetter, "event_hub_dead_letter", ("sequence_number",))

    def ledger(self) -> list[KeptRange]:
        return self._ranges("batch")

    def retries(self) -> list[KeptRange]:
        return self._ranges("retry")

    def replays(self) -> list[KeptRange]:
        return self._ranges("replay")

    def attempts(self) -> list[KeptAttempt]:
        return self._kept(KeptAttempt, "dead_letter_attempt", ("sequence_number", "attempt"))

    def retracted(self) -> list[KeptRetracted]:
        order = ("commit_number", "table_name", "sequence_number", "ordinal")
        return self._kept(KeptRetracted, "retracted_row", order)

    def gaps(self) -> list[KeptGap]:
        return self._kept(KeptGap, "sequence_gap", ("first_sequence_number",))

    def staged(self) -> list[tuple[str, int]]:
        return [one[1:] for one in self._select("staged_event", PLACE, ("sequence_number",))]

    def _ranges(self, kind: str) -> list[KeptRange]:
        kinds = self._select("batch_ledger", ("kind",), ("commit_number",))
        ranges = self._kept(KeptRange, "batch_ledger", ("commit_number",))
        return [one for one, (found,) in zip(ranges, kinds, strict=True) if found == kind]

    def _kept(self, of: type[Kept], table: str, order: tuple[str, ...]) -> list[Kept]:
        hints = get_type_hints(of)
        names = [one.name for one in fields(of)]  # type: ignore[arg-type]
        found = self._select(table, tuple(COLUMNS.get(name, name) for name in names), order)
        made = []
        for one in found:
            values = dict(zip(names, one, strict=True))
            read = {name: _value(hints[name], value) for name, value in values.items() if name != "row"}
            made.append(of(**read, **({"row": _retracted(values)} if "row" in values else {})))
        return made

    def _select(self, table: str, columns: tuple[str, ...], order: tuple[str, ...]) -> list[tuple[Any, ...]]:
        chosen, ordered = (", ".join(f"t.{quoted(name)}" for name in names) for names in (columns, order))
        return [tuple(one) for one in self.read_in_order(f"SELECT {chosen} FROM {{p}}{table} AS t", ordered)]


class PersistentEngine(Engine):
    """An engine whose database other processes can open too: tests/fakes/separate.py reads the environment."""

    def environment(self) -> dict[str, str]:
        raise NotImplementedError


def instant(value: Any) -> datetime:
    """Return an instant of a column: SQLite gives a text, SQL Server a time without a zone, and its JSON a text."""
    given = datetime.fromisoformat(value) if isinstance(value, str) else value
    return cast(datetime, given if given.tzinfo else given.replace(tzinfo=UTC))


READERS: Mapping[Any, Callable[[Any], object]] = {
    datetime: instant,
    date: lambda value: date.fromisoformat(value) if isinstance(value, str) else value,
    Decimal: lambda value: Decimal(str(value)),
    bool: bool,
    float: float,
    bytes: bytes,
    Mapping[str, object]: json.loads,
}


def _row(row_class: type, values: tuple[Any, ...]) -> Row:
    typed = zip(fields_of(row_class), values, strict=True)
    return cast(Row, row_class(*(_value(hint, value) for (_, hint), value in typed)))


def _value(hint: Any, value: Any) -> Any:
    kind = hint if hint in READERS else next((one for one in types_of(hint) if one in READERS), None)
    return value if value is None or kind is None else READERS[kind](value)


def _retracted(values: Mapping[str, Any]) -> Row:
    row_class = {row_table(each).name: each for each in declared()}[values["table_name"]]
    columns = json.loads(values["row"])
    return _row(row_class, tuple(columns[name] for name in row_table(row_class).columns))


class SqliteEyes(Engine):
    """Reads and changes a database on a connection that its subclass opens."""

    dialect = EMBEDDED
    _connection: sqlite3.Connection

    def sql(self, statement: str, *values: object) -> list[Any]:
        return self._connection.execute(statement, values).fetchall()

    def copy_to(self, other: sqlite3.Connection) -> None:
        """Copy the database as it is stored, with its free pages."""
        self._connection.backup(other)

    def by_hand(self, statement: str) -> list[tuple[object, ...]]:
        return self.sql(statement)

    def sql_of_many(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        with self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(statement, rows)

    def read_in_order(self, text: str, order: str) -> list[Any]:
        place = "ORDER BY t.stream_id, LENGTH(t.partition_id), t.partition_id"
        return self.sql(f"{text.format(p='')} {place}, {order}")

    def stage(self, state: PartitionState, events: Iterable[Event]) -> None:
        marks = ", ".join("?" * len(STAGED))
        text = f"INSERT INTO staged_event ({', '.join(STAGED)}) VALUES ({marks}) ON CONFLICT DO NOTHING"
        for event in events:
            self.sql(text, *staged_values(state, event))


Logs = Mapping[str, Sequence[Event]]
Absent = Mapping[str, Set[int]]


def assert_equals_one_pass(
    held: Engine, logs: Logs, absent: Absent | None = None, transform: Transform = STANDING
) -> None:
    """Each event of each log has one outcome, in order, and rows, states and letters are those of one pass.

    A state that no column orders must be written by one partition only: partitions have no order. `absent` are the
    numbers by partition that the hub lost. The logs are without them.
    """
    assert_tiles(held, logs, absent or {}, transform.row_classes)
    classes = [each for each in transform.row_classes if not row_table(each).key]
    of_states = [each for each in transform.row_classes if row_table(each).key]
    appended: list[tuple[object, ...]] = []
    states: dict[object, tuple[str, int, Row]] = {}
    letters: list[tuple[object, ...]] = []
    for partition_id, log in logs.items():
        done = settle(log, References({}), transform)
        for row_class in classes:
            appended += [(partition_id, *placed) for placed in done.rows.get(row_class, ())]
        for row_class in of_states:
            for number, _, row in done.rows.get(row_class, ()):
                place = (partition_id, number)
                key = (ReferenceKey.of(row), "" if row_table(row_class).newest_by else partition_id)
                if key not in states or _rank(row, *place) >= _rank(states[key][2], *states[key][:2]):
                    states[key] = (*place, row)
        letters += [(partition_id, each.event.sequence_number, each.error_class) for each in done.letters]
    rows = [kept for row_class in classes for kept in held.rows(row_class)]
    current = [kept for row_class in of_states for kept in held.rows(row_class)]
    _assert_same("rows", ((one.partition_id, one.sequence_number, one.ordinal, one.row) for one in rows), appended)
    _assert_same("states", ((one.partition_id, one.sequence_number, one.row) for one in current), states.values())
    stored = ((one.partition_id, one.sequence_number, one.error_class) for one in held.letters())
    _assert_same("letters", stored, letters)


def _rank(row: Row, partition_id: str, number: int) -> tuple[object, ...]:
    newest_by = row_table(type(row)).newest_by
    return (getattr(row, newest_by), partition_id, number) if newest_by else (number,)


def assert_tiles(held: Engine, logs: Logs, absent: Absent, row_classes: Iterable[type] = ROW_CLASSES) -> None:
    """The ranges of each partition follow each other in the order of their commits, and leave no number out.

    They count as absent exactly the numbers that the hub lost, and the gaps name the same numbers.
    """
    for partition_id, log in logs.items():
        ranges = [kept for kept in held.ledger() if kept.partition_id == partition_id]
        lost = absent.get(partition_id, set())
        numbers = [number for kept in ranges for number in range(kept.first, kept.last + 1)]
        assert numbers == sorted({event.sequence_number for event in log} | lost), f"partition {partition_id}"
        assert [kept.commit_number for kept in ranges] == list(range(1, len(ranges) + 1))
        for kept in ranges:
            assert kept.absent == len(lost & set(range(kept.first, kept.last + 1))), kept
        assert _gaps(held, partition_id, "absent") == sorted(lost)
        commit_of = {number: kept.commit_number for kept in ranges for number in range(kept.first, kept.last + 1)}
        for row_class in row_classes:
            kept_rows = [kept for kept in held.rows(row_class) if kept.partition_id == partition_id]
            assert all(kept.commit_number == commit_of[kept.sequence_number] for kept in kept_rows)


def _gaps(held: Engine, partition_id: str, status: str) -> list[int]:
    rows = [gap for gap in held.gaps() if gap.partition_id == partition_id and gap.status == status]
    return [number for gap in rows for number in range(gap.first, gap.last + 1)]


def _assert_same(what: str, found: Iterable[object], expected: Iterable[object]) -> None:
    stored, wanted = Counter(map(repr, found)), Counter(map(repr, expected))
    more, missing = sorted((stored - wanted).elements()), sorted((wanted - stored).elements())
    assert stored == wanted, f"{what} that one pass does not write: {more}; {what} that are missing: {missing}"
