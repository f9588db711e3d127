"""The design of a room: its names and fields, and which fields are the key and the time of an event."""

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from core.model.rows import KEY_BYTES
from core.transforms.contract import fault_of_table
from hubledger.cli.console import Refused
from hubledger.cli.formats.format import JSON, Format
from hubledger.cli.scaffold.each import Each
from hubledger.cli.scaffold.fields import INSTANTS, KEY_KINDS, LONGEST_TEXT, Field, checked

LONGEST_ROOM = 40  # characters
LONGEST_KEY = 200  # characters of a text in the key of an aggregate, of which a key of SQL Server holds two
LIMITS = (40, 100, LONGEST_KEY, 400)  # of more texts in one key: the first that is twice as long as any text
_ROOM = re.compile(r"[a-z][a-z0-9_]*")
_TAKEN = {"tests", "test", "poison", "poisons"}  # folders of tests, and the class PoisonEvent


@dataclass(frozen=True, slots=True)
class Wish:
    """The choices of a person; None: the default. `is_strict`: a field that the body does not have is poison."""

    name: str
    key: tuple[str, ...] = ()
    at: str | None = None
    table: str | None = None
    is_strict: bool = False


@dataclass(frozen=True, slots=True)
class Design:
    """All that the files of a room say. `by` groups the aggregate; without `by` or `at` there is none."""

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
    bodies: tuple[bytes, ...] = ()  # of the samples, in a format that is not JSON
    each: Each | None = None  # None: a body is one event

    @property
    def in_base64(self) -> bool:
        """True where a body of the samples is no line."""
        return not self.is_json or any(b"\n" in one or b"\r" in one for one in self.samples)

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
    key, at = [_chosen("--key", name, fields) for name in wish.key], _at(wish.at, fields)
    texts = [one.name for one in key if one.kind == "text"]
    sizes = {name: _length_in_key(lengths[name], len(texts)) for name in texts if name in lengths}
    by = next(iter(key), None)
    if by is None and at is not None:
        by = next((one for one in fields if _can_group(one, lengths)), None)
        sizes = {} if by is None or by.name not in lengths else {by.name: LONGEST_KEY}
    fields = tuple(replace(one, length=sizes.get(one.name, one.length)) for one in fields)
    by_name = {one.name: one for one in fields}
    by = None if by is None or at is None else by_name[by.name]
    table = wish.table or f"{base_of(wish.name)}_event"
    return Design(
        name=wish.name,
        table=table,
        state_table=f"{wish.table or base_of(wish.name)}_state",
        fields=fields,
        key=tuple(_of_key(by_name[one.name]) for one in key),
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


def _at(name: str | None, fields: Sequence[Field]) -> Field | None:
    if name is None:
        return next((one for one in fields if one.kind in INSTANTS and not one.is_optional), None)
    one = _chosen("--at", name, fields)
    if one.kind not in INSTANTS or one.is_optional:
        raise Refused(
            f"--at {name}: the time of an event is an instant with a zone that every event has, and it is {one.written}"
        )
    return one


def _of_key(one: Field) -> Field:
    if one.is_optional:
        raise Refused(f"--key {one.name}: some events have no value of it, and a key needs one")
    if one.kind not in KEY_KINDS:
        raise Refused(f"--key {one.name}: it is {one.kind}, and a key is one of {', '.join(KEY_KINDS)}")
    if one.kind == "text" and 2 * (one.length or LONGEST_TEXT) > KEY_BYTES:
        raise Refused(f"--key {one.name}: its texts are too long for a key, or one ends with a blank, which no key has")
    return one


def _length_in_key(longest: int, texts: int) -> int | None:
    """Return the length of a text in a key with so many texts, or None for one that is too long."""
    least = max(2 * longest, LONGEST_KEY if texts <= 2 else 0)
    return next((each for each in LIMITS if each >= least), None)


def _can_group(one: Field, lengths: Mapping[str, int]) -> bool:
    length = 2 * lengths[one.name] if one.name in lengths else one.length or LONGEST_TEXT
    is_short = one.kind in ("text", "ascii") and length <= LONGEST_KEY
    return not one.is_optional and (one.kind == "integer" or is_short)
