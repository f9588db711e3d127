"""The rows that a transform returns, the tables that they name, and the references that a transform may look up."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, cast, get_args, get_type_hints

from core.errors import InvalidTransform, MissingReference, RowsRefused


class Row(Protocol):
    """A row that a transform returns: an object of a frozen dataclass declared with `@appended_to` or `@state_of`."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


RowType = TypeVar("RowType", bound=Row)

COLUMN_TYPES = (str, int, bool, float, Decimal, datetime, date)  # of the fields of row classes, with or without None
_OF_KEYS = frozenset((*COLUMN_TYPES, type(None)))
OURS = "hubledger_"  # how the names begin that stand beside those of a room in a statement or a job
LINEAGE = ("stream_id", "partition_id", "commit_number", "sequence_number", "ordinal")  # of appended rows
PLACE = ("stream_id", "partition_id", "sequence_number", "ordinal")  # by which appended rows are unique
STATE_LINEAGE = ("stream_id", "partition_id", "sequence_number", "commit_number")

ERASED = "{}"  # in place of the JSON object of a row that an erasure took away
# The position that makes a row unique, and the row: (sequence number, ordinal among the event's rows, row).
PlacedRow = tuple[int, int, Row]


@dataclass(frozen=True, slots=True)
class RowTable:
    """The table of a row class: `key` is empty for appended rows and names the key columns of a state. `subject` is the
    column that names the person or thing that an erasure forgets. Empty: none. `newest_by` is the column that decides
    which row of a key stays. Empty: the position of its event does."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    subject: str = ""
    newest_by: str = ""

    @property
    def lineage(self) -> tuple[str, ...]:
        """The columns that a store adds to this table."""
        return STATE_LINEAGE if self.key else LINEAGE

    @property
    def unique_by(self) -> tuple[str, ...]:
        """The columns by which the rows of this table are unique: the key of a state, the place of an appended row."""
        return self.key or PLACE

    def key_of(self, row: Row) -> tuple[Any, ...]:
        return tuple([getattr(row, name) for name in self.key])

    def rank_of(self, row: Row, number: int = 0) -> tuple[Any, int]:
        """Return a value by which the rows of one key and one partition sort: the greatest is the newest."""
        return (getattr(row, self.newest_by) if self.newest_by else 0, number)


_TABLES: dict[type, RowTable] = {}


def appended_to(table: str, subject: str = "") -> Callable[[type[RowType]], type[RowType]]:
    """Declare rows that are only added to a table. The position of the event and an ordinal make each row unique.

    An erasure deletes the rows whose `subject` column has the erased value.
    """

    def declare(row_class: type[RowType]) -> type[RowType]:
        _TABLES[row_class] = RowTable(table, _field_names(row_class), (), subject)
        return row_class

    return declare


def state_of(
    table: str, key: tuple[str, ...], subject: str = "", newest_by: str = ""
) -> Callable[[type[RowType]], type[RowType]]:
    """Declare rows of which the table keeps one for each key: the last one of its partition, in order of the events.

    When several partitions write a key, the row that was committed last stays. With `newest_by`, the row with the
    greatest value in that column stays instead, in whatever order the rows are committed.

    An erasure deletes the rows whose `subject` column has the erased value.

    Raises InvalidTransform for an empty key. Other faults are found together, when a transform is loaded.
    """

    def declare(row_class: type[RowType]) -> type[RowType]:
        if not key:
            raise InvalidTransform(f"{row_class.__name__}: the key of {table} names no field")
        _TABLES[row_class] = RowTable(table, _field_names(row_class), key, subject, newest_by)
        return row_class

    return declare


def row_table(row_class: type) -> RowTable:
    """Return the table of a row class. Raises InvalidTransform when the class was never declared."""
    try:
        return _TABLES[row_class]
    except KeyError:
        raise InvalidTransform(
            f"{row_class.__name__} is not a row: declare it with @appended_to or @state_of"
        ) from None


def is_row_class(value: object) -> bool:
    """Return True for a class that was declared with @appended_to or @state_of."""
    return isinstance(value, type) and value in _TABLES


def declared() -> tuple[type, ...]:
    """Return every row class that the imported modules declare."""
    return tuple(_TABLES)


def _field_names(row_class: type[Row]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cast(Any, row_class))) if is_dataclass(row_class) else ()


@dataclass(frozen=True, slots=True)
class Text:
    """The length of the column of a text, in UTF-16 units: `shop_id: Annotated[str, Text(32)]`.

    `ascii`: the text has no other characters, and the column takes a byte for each.
    """

    length: int
    ascii: bool = False


KEY_BYTES = 900  # of a clustered key of SQL Server
_BYTES: Mapping[type, int] = {int: 8, bool: 1, datetime: 8, date: 3}


def bytes_in_key(kind: type, text: Text | None) -> int:
    """Return the bytes that a column takes in a key of SQL Server."""
    if text is None or kind is not str:
        return _BYTES[kind]
    return text.length if text.ascii else 2 * text.length


def texts_in(hint: Any) -> tuple[Any, ...]:
    """Return each Text of an annotation and of the members of its union, and `Text` itself where it has no length."""
    inner = get_args(hint)
    own = tuple(one for one in inner if one is Text or isinstance(one, Text))
    return (*own, *(found for one in inner if one not in own for found in texts_in(one)))


@cache
def _kind_of_newest(row_class: type) -> type:
    return cast(type, get_type_hints(row_class)[row_table(row_class).newest_by])


def refuse_unranked(row: Row) -> None:
    """Raise RowsRefused for a state whose `newest_by` has no order among others: a value that is not of its type."""
    name = row_table(type(row)).newest_by
    if not name:
        return
    value, kind = getattr(row, name), _kind_of_newest(type(row))
    is_of_type = isinstance(value, kind) and isinstance(value, datetime) == (kind is datetime)
    if not is_of_type or (kind is datetime and value.tzinfo is None):
        found = f"the {type(value).__name__} {value!r:.80}"
        raise RowsRefused(f"{type(row).__name__}.{name} is declared {kind.__name__}, and its value is {found}")


@cache
def texts_of(row_class: type) -> Mapping[str, Text]:
    """Return the Text of each field that has one."""
    hints = get_type_hints(row_class, include_extras=True)
    found = {name: texts_in(hints[name]) for name in row_table(row_class).columns}
    return {name: texts[0] for name, texts in found.items() if texts}


class ReferenceKey(NamedTuple):
    """The name of one reference row: its `state_of` class and the values of its key columns."""

    row_class: type
    key: tuple[Any, ...]

    @staticmethod
    def of(row: Row) -> "ReferenceKey":
        return ReferenceKey(type(row), row_table(type(row)).key_of(row))


def refuse_key(key: Any) -> None:
    """Raise TypeError for a value of `references()` that names no row which a store can read."""
    if key.__class__ is ReferenceKey and key.key.__class__ is tuple:
        table = _TABLES.get(key.row_class)
        if table is not None and 0 < len(table.key) == len(key.key):
            for part in key.key:  # a sound key is the rule, and costs least so
                if part.__class__ not in _OF_KEYS and not isinstance(part, COLUMN_TYPES):
                    raise TypeError(f"references() gave {key.row_class.__name__} a key of values that no column holds")
            return
    raise TypeError(f"references() gave a {type(key).__name__} that is no key of a class of `state_of`")


def keys_by_class(keys: Iterable[ReferenceKey]) -> dict[type, list[tuple[Any, ...]]]:
    """Group keys by row class, because a store reads once for each class."""
    wanted: dict[type, list[tuple[Any, ...]]] = {}
    for key in keys:
        wanted.setdefault(key.row_class, []).append(key.key)
    return wanted


class References:
    """The `state_of` rows that a transform may look up: from the store, and from earlier events of the batch."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Mapping[ReferenceKey, Row]) -> None:
        self._rows = dict(rows)

    def find(self, row_class: type[RowType], *key: object) -> RowType | None:
        """Return the current row of a key, or None when there is none."""
        return cast("RowType | None", self._rows.get(ReferenceKey(row_class, key)))

    def get(self, row_class: type[RowType], *key: object) -> RowType:
        """Return the current row of a key. Raises MissingReference when there is none."""
        row = self.find(row_class, *key)
        if row is None:
            raise MissingReference(f"{row_table(row_class).name} {', '.join(map(str, key))} is not registered")
        return row

    def learn(self, row: Row) -> None:
        """Show later events a state that an earlier event wrote, unless a newer one is known."""
        key, rank_of = ReferenceKey.of(row), row_table(type(row)).rank_of
        known = self._rows.get(key)
        if known is None or rank_of(known) <= rank_of(row):
            self._rows[key] = row
