"""The design of a room: its fields, their columns, the elements of a body, and the key and time of an event."""

import keyword
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Literal, get_args

import msgspec

from core.model.aggregates import ADDED
from core.model.rows import KEY_BYTES, LINEAGE, OURS
from core.model.transforms import ROWS_LIMIT
from core.transforms.contract import fault_of_table
from hubledger.cli.formats.format import JSON, Format, file_of
from hubledger.cli.output import Refused
from local.feed.event_file import FileEvent

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
    """A field of the body: `name` in JSON, and its column. `length` is the limit of a text, or None without a limit."""

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


EACH_WRITTEN = "lines, array, or the name of a field"
LONGEST = 60  # characters of the name of a field
NOTE = f"An event that becomes more than {ROWS_LIMIT:,} rows is a letter (ROWS_PER_EVENT)."


@dataclass(frozen=True, slots=True)
class Each:
    """The place of the elements: the lines of a body, or a list, which is the body or a field of it."""

    name: str

    @property
    def of_field(self) -> bool:
        """True where the elements are in a field."""
        return self.name not in ("lines", "array")

    def elements_of(self, body: bytes) -> list[bytes]:
        """Return the elements of a body. Raises ValueError for a body that has none."""
        if self.name == "lines":
            found = [line for line in body.splitlines() if line.strip()]
        else:
            fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw]) if self.of_field else {self.name: body}
            if self.name not in fields:
                raise ValueError(f"it has no field {self.name}")
            found = list(map(bytes, msgspec.json.decode(fields[self.name], type=list[msgspec.Raw])))
        if not found:
            raise ValueError("it has no element")
        return found

    def body_of(self, element: bytes) -> bytes:
        """Return the body that has one element."""
        if self.of_field:
            return self.begin + element + b"]}"
        return b"[" + element + b"]" if self.name == "array" else element

    @property
    def begin(self) -> bytes:
        """The octets of a body before the elements of its field."""
        return b'{"%b": [' % self.name.encode()


def each_of(name: str) -> Each:
    """Return the place of the elements. Raises Refused for a name that no field of the transform can have."""
    if not 1 <= len(name) <= LONGEST or any(letter in '"\\' or not letter.isprintable() for letter in name):
        raise Refused(
            f"--each {name}: write {EACH_WRITTEN}, which has 1 to {LONGEST} characters and no quote or backslash"
        )
    return Each(name)


LONGEST_ROOM = 40  # characters
LONGEST_KEY = 200  # characters of a text in the key of an aggregate, of which a key of SQL Server holds two
LIMITS = (40, 100, LONGEST_KEY, 400)  # of more texts in one key: the first that is twice as long as any text
_ROOM = re.compile(r"[a-z][a-z0-9_]*")
_TAKEN = {"tests", "test", "poison", "poisons"}  # folders of tests, and the class PoisonEvent


@dataclass(frozen=True, slots=True)
class Wish:
    """The choices of a person. None is the default. With `is_strict`, any other field is poison."""

    name: str
    key: tuple[str, ...] = ()
    at: str | None = None
    table: str | None = None
    is_strict: bool = False


@dataclass(frozen=True, slots=True)
class Design:
    """All that the files of a room say. `by` groups the aggregate. Without `by` or `at` there is no aggregate."""

    name: str
    table: str
    state_table: str
    fields: tuple[Field, ...]
    key: tuple[Field, ...]
    at: Field | None
    by: Field | None
    samples: tuple[bytes, ...]  # as JSON
    is_strict: bool = False
    format: Format = JSON
    events: tuple[FileEvent, ...] = ()  # the samples as a hub has them
    each: Each | None = None  # None: a body is one event

    @property
    def in_base64(self) -> bool:
        """True where a body of the samples is no line."""
        return not self.is_json or any(b"\n" in one or b"\r" in one for one in self.samples)

    @property
    def samples_file(self) -> tuple[str, bytes]:
        """The name and the content of the file of the samples."""
        return file_of(self.events) if self.in_base64 else ("events.jsonl", b"\n".join((*self.samples, b"")))

    @property
    def first(self) -> bytes:
        """The first event of the samples, as JSON."""
        return self.each.elements_of(self.samples[0])[0] if self.each else self.samples[0]

    @property
    def is_json(self) -> bool:
        return self.format.name == "json"

    @property
    def package(self) -> str:
        return f"apps.{self.name}"

    @property
    def row_class(self) -> str:
        return f"{camel(base_of(self.name))}Event"

    @property
    def state_class(self) -> str:
        return f"{camel(base_of(self.name))}State"

    @property
    def has_aggregate(self) -> bool:
        return self.at is not None and self.by is not None

    @property
    def keys(self) -> tuple[Field, ...]:
        """The fields of the key of the state and of the aggregate."""
        return (*self.key, *(() if self.by is None else (self.by,)))

    @property
    def aggregate(self) -> str:
        return f"{self.name}_by_hour"

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of all tables of the room."""
        states = (self.state_table,) if self.key else ()
        windows = (self.aggregate, f"{self.aggregate}_staged") if self.has_aggregate else ()
        return (self.table, *states, *windows)


def design_of(wish: Wish, fields: Sequence[Field], lengths: Mapping[str, int], samples: tuple[bytes, ...]) -> Design:
    """Return the design that follows from a person's choices and the fields. Raises Refused.

    `lengths` has the greatest length of each text whose own length is free, because nobody gave it.
    """
    fields = checked(fields)
    key = [_chosen("--key", name, fields) for name in wish.key]
    at = next((one for one in fields if one.kind in INSTANTS and not one.is_optional), None)
    if wish.at is not None:
        at = _chosen("--at", wish.at, fields)
        if at.kind not in INSTANTS or at.is_optional:
            raise Refused(
                f"--at {wish.at}: the time of an event is an instant with a zone that every event has, and it is"
                f" {at.written}"
            )
    texts = [one.name for one in key if one.kind == "text" and one.name in lengths]
    least = LONGEST_KEY if sum(one.kind == "text" for one in key) <= 2 else 0
    sizes = {
        name: next((each for each in LIMITS if each >= max(2 * lengths[name], least)), None)  # None: too long
        for name in texts
    }
    by = next(iter(key), None)
    if by is None and at is not None:
        by = next((one for one in fields if _can_group(one, lengths)), None)
        sizes = {} if by is None or by.name not in lengths else {by.name: LONGEST_KEY}
    fields = tuple(replace(one, length=sizes.get(one.name, one.length)) for one in fields)
    by_name = {one.name: one for one in fields}
    by = None if by is None or at is None else by_name[by.name]
    key = [by_name[one.name] for one in key]
    for one in key:
        if one.is_optional:
            raise Refused(f"--key {one.name}: some events have no value of it, and a key needs one")
        if one.kind not in KEY_KINDS:
            raise Refused(f"--key {one.name}: it is {one.kind}, and a key is one of {', '.join(KEY_KINDS)}")
        if one.kind == "text" and 2 * (one.length or LONGEST_TEXT) > KEY_BYTES:
            raise Refused(
                f"--key {one.name}: its texts are too long for a key, or one ends with a blank, which no key has"
            )
    table = wish.table or f"{base_of(wish.name)}_event"
    return Design(
        name=wish.name,
        table=table,
        state_table=f"{wish.table or base_of(wish.name)}_state",
        fields=fields,
        key=tuple(key),
        at=at,
        by=by if by is not None and _can_group(by, {}) else None,
        samples=samples,
        is_strict=wish.is_strict,
    )


def refuse_name(name: str) -> None:
    """Raise Refused for a name that no package, class or table can have."""
    if not _ROOM.fullmatch(name):
        better = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_0123456789")
        hint = f", such as {better}" if _ROOM.fullmatch(better) else ""
        raise Refused(f"the name {name!r}: a room is named by a-z, 0-9 and _, and begins with a letter{hint}")
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise Refused(f"the name {name} is a word of Python: choose a different one")
    if name in _TAKEN:
        raise Refused(f"the name {name} has a meaning of its own in Hubledger: choose a different one")
    if len(name) > LONGEST_ROOM:
        raise Refused(f"the name {name} is longer than {LONGEST_ROOM} characters")


def refuse_tables(design: Design, taken: dict[str, str]) -> None:
    """Raise Refused when SQL refuses the name of a table, or when `taken` has it, with its owner."""
    for table in design.tables:
        if (fault := fault_of_table(table)) is not None:
            raise Refused(f"{fault}; name it with --table")
        if (owner := taken.get(table.lower())) is not None:
            raise Refused(
                f"the table {table} belongs to {owner}: name a different one with --table, or a different room"
            )


def camel(name: str) -> str:
    """Return the name of a class: `lost_parcel` is `LostParcel`."""
    return "".join(word.title() for word in name.split("_"))


def base_of(name: str) -> str:
    """Return the noun of one event of a room: `parcels` and `parcel_events` are of a `parcel`."""
    base = name.removesuffix("_events").removesuffix("_event").strip("_")
    if base.endswith("ies") and len(base) > 4:
        return f"{base[:-3]}y"
    if re.search(r"(ss|x|ch|sh)es$", base):
        return base[:-2]
    return base[:-1] if re.search(r"[^sui]s$", base) else base


def _chosen(flag: str, name: str, fields: Sequence[Field]) -> Field:
    for one in fields:
        if name in (one.name, one.column):
            return one
    raise Refused(
        f"{flag} {name}: the events have no such field; they have {', '.join(one.name for one in fields[:20])}"
    )


def _can_group(one: Field, lengths: Mapping[str, int]) -> bool:
    length = 2 * lengths[one.name] if one.name in lengths else one.length or LONGEST_TEXT
    is_short = one.kind in ("text", "ascii") and length <= LONGEST_KEY
    return not one.is_optional and (one.kind == "integer" or is_short)
