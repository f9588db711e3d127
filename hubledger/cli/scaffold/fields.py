"""The fields of an event: the names and types of its JSON, and the names of their columns."""

import keyword
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Literal, get_args

from core.model.aggregates import ADDED
from core.model.rows import LINEAGE, OURS
from hubledger.cli.console import Refused

Kind = Literal[
    "text", "ascii", "integer", "float", "decimal", "boolean", "instant", "epoch_s", "epoch_ms", "epoch_us", "epoch_ns",
    "date", "json",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
EPOCHS: dict[Kind, str] = {"epoch_s": "0.000001", "epoch_ms": "0.001", "epoch_us": "1", "epoch_ns": "1000"}  # a µs
INSTANTS: tuple[Kind, ...] = ("instant", *EPOCHS)
KEY_KINDS: tuple[Kind, ...] = ("text", "ascii", "integer", "boolean", "date", *INSTANTS)
LENGTHS: dict[Kind, int] = {"text": 200, "ascii": 40}  # of a text whose type names none
LONGEST_TEXT = 4000  # of a column with a limit, in SQL Server
LONGEST_NAME, LONGEST_COLUMN, MOST_FIELDS = 100, 40, 1000
WRITTEN = ", ".join(f"{kind}(LENGTH)" if kind in LENGTHS else kind for kind in KINDS)
# Names that the module of a transform uses in its classes, and names that the store or an aggregate adds
_USED = {"str", "int", "float", "bool", "datetime", "field", "msgspec", "self", *LINEAGE, "window_start", *ADDED}
_TYPE = re.compile(r"(\w+)(?:\((\d+)\))?(\?)?")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the body: `name` in JSON, and its column. `length` is the limit of a text; None: it has none."""

    name: str
    column: str
    kind: Kind
    length: int | None = None
    is_optional: bool = False

    @property
    def written(self) -> str:
        """The type as `--field` takes it."""
        return f"{self.kind}{f'({self.length})' if self.length else ''}{'?' if self.is_optional else ''}"


def field_of(given: str) -> Field:
    """Return the field that `name:type` describes: `note:text(200)?`. Raises Refused."""
    name, colon, kind_text = given.rpartition(":")
    found = _TYPE.fullmatch(kind_text.strip())
    if not colon or found is None or found[1] not in KINDS:
        raise Refused(f"--field {given}: write name:type, where type is one of {WRITTEN}, with ? for an optional field")
    kind: Kind = next(each for each in KINDS if each == found[1])
    if found[2] and kind not in LENGTHS:
        raise Refused(f"--field {given}: only text and ascii have a length")
    length = int(found[2]) if found[2] else LENGTHS.get(kind)
    if length is not None and not 1 <= length <= LONGEST_TEXT:
        raise Refused(f"--field {given}: a length is 1 to {LONGEST_TEXT}")
    return new_field(name.strip(), kind, length, is_optional=bool(found[3]))


def new_field(name: str, kind: Kind, length: int | None = None, *, is_optional: bool = False) -> Field:
    """Return a field with the name of its column. Raises Refused for a name that no class can have."""
    if not name or len(name) > LONGEST_NAME:
        raise Refused(f"the field {name[:LONGEST_NAME]!r}: a name has 1 to {LONGEST_NAME} characters")
    if any(letter in '"\\' or not letter.isprintable() for letter in name):
        raise Refused(f"the field {name!r}: its name has a quote, a backslash or a character that cannot be printed")
    return Field(name, column_of(name), kind, length, is_optional)


def column_of(name: str) -> str:
    """Return the name of the column of a field: `orderId` is `order_id`, and `class` is `class_`."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode()
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", plain)
    column = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_").removeprefix(OURS)
    column = column or f"u_{'_'.join(f'{ord(letter):x}' for letter in name)}"  # a name of no Latin letter
    column = f"n_{column}" if column[0].isdigit() else column
    is_used = column in _USED or keyword.iskeyword(column) or keyword.iskeyword(column.title())
    return f"{column[:LONGEST_COLUMN]}{'_' if is_used else ''}"


def checked(fields: Iterable[Field]) -> tuple[Field, ...]:
    """Return the fields, each with a column of its own. Raises Refused when there are none, too many, or one twice."""
    found = tuple(fields)
    if not 1 <= len(found) <= MOST_FIELDS:
        raise Refused(f"the events have {len(found)} fields: a table needs 1 to {MOST_FIELDS}")
    names = [one.name for one in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise Refused(f"the field {twice} is named twice")
    columns: dict[str, Field] = {}
    for one in found:
        possible = chain([one.column], (f"{one.column}_{number}" for number in count(2)))
        column = next(each for each in possible if each not in columns)
        columns[column] = replace(one, column=column)
    return tuple(columns.values())
