"""The row classes of a transform: both engines can hold their tables, columns, types and keys."""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from inspect import get_annotations
from types import ModuleType, UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from core.model.rows import COLUMN_TYPES, Text, row_table, texts_in
from core.transforms.contract.names import fault_of_column, fault_of_table
from core.transforms.contract.places import Fault, ModulePart

SUBJECT_TYPES = (str, int)
KEY_TYPES = (str, int, bool, datetime, date)  # equal decimals can have different texts, and floats are rarely equal
NEWEST_TYPES = (datetime, date, int)
_NONE = type(None)
_UNIONS = (None, Union, UnionType)
LONGEST_TEXT = 4000  # characters of a column of SQL Server that is stored in its row


def faults_of_rows(module: ModuleType, row_classes: Sequence[type]) -> Iterator[Fault]:
    """Yield every fault of the row classes that a module names."""
    tables: dict[str, list[type]] = defaultdict(list)
    for each in row_classes:
        tables[row_table(each).name.lower()].append(each)
        yield from _faults_of_class(module, each)
    for of_table in tables.values():
        for each in of_table[1:]:
            name, first = row_table(each).name, of_table[0].__name__
            yield (
                _part(module, each),
                f"{each.__name__} and {first} are both rows of the table {name}: one class a table",
            )


def _faults_of_class(module: ModuleType, row_class: type) -> Iterator[Fault]:
    part, who, table = _part(module, row_class), row_class.__name__, row_table(row_class)
    if (fault := fault_of_table(table.name)) is not None:
        yield part, f"{who}: {fault}"
    if not table.columns:
        yield part, f"{who} has no fields: write @appended_to or @state_of above @dataclass(frozen=True, slots=True)"
        return
    if not cast(Any, row_class).__dataclass_params__.frozen:
        yield (
            part,
            f"{who} can change after transform() returned it: declare it with @dataclass(frozen=True, slots=True)",
        )
    try:
        hints, annotated = get_type_hints(row_class), get_type_hints(row_class, include_extras=True)
    except Exception as error:  # noqa: BLE001 - an annotation is any expression
        yield part, f"{who}: its annotations cannot be read: {type(error).__name__}: {error}"
        return
    yield from _faults_of_columns(part, row_class, hints)
    for name in table.columns:
        texts, kind = texts_in(annotated[name]), _kind_of(hints[name])
        yield from (
            (_field(part, row_class, name), f"{who}.{name}: {fault}") for fault in _faults_of_texts(texts, kind)
        )
    yield from _faults_of_key(part, row_class, hints)
    yield from _faults_of_subject(part, row_class, hints)
    yield from _faults_of_newest(part, row_class, hints)


def _faults_of_columns(part: ModulePart, row_class: type, hints: dict[str, Any]) -> Iterator[Fault]:
    who, table = row_class.__name__, row_table(row_class)
    taken = Counter([name.lower() for name in (*table.columns, *table.lineage)])
    for name in table.columns:
        at = _field(part, row_class, name)
        if (fault := fault_of_column(name)) is not None:
            yield at, f"{who}.{name}: {fault}"
        if name.lower() in table.lineage:
            yield at, f"{who}.{name}: the store adds a column of this name to the table {table.name}"
        elif taken[name.lower()] > 1:
            yield at, f"{who}.{name}: a second field differs only in case, and SQL has one column for both"
        if _kind_of(hints[name]) is None:
            yield (
                at,
                f"{who}.{name} is {_written(hints[name])}: a column holds {_one_of(COLUMN_TYPES)}, or None beside it",
            )


def _faults_of_texts(texts: Sequence[Any], kind: type | None) -> Iterator[str]:
    if len(texts) > 1:
        yield "it has two lengths: annotate it with one Text"
    for one in texts:
        length = one.length if isinstance(one, Text) else None
        if not isinstance(length, int) or not 1 <= length <= LONGEST_TEXT:
            written = f"{one!r} is" if length is not None else "Text is"
            yield f"{written} no length of a text: write Text(1) to Text({LONGEST_TEXT})"
    if texts and kind is not None and kind is not str:
        yield f"Text is the length of a str, and the field holds {kind.__name__}"


def _faults_of_key(part: ModulePart, row_class: type, hints: dict[str, Any]) -> Iterator[Fault]:
    who, table = row_class.__name__, row_table(row_class)
    if isinstance(table.key, str):
        yield part, f"{who}: the key of {table.name} is a text: write key=({table.key!r},)"
        return
    for name, times in Counter(table.key).items():
        if times > 1:
            yield part, f"{who}: the key of {table.name} names {name} twice"
        if name not in table.columns:
            yield part, f"{who}: the key of {table.name} names {name}, which is not a field of the class"
            continue
        kind, at = _kind_of(hints[name]), _field(part, row_class, name)
        if _NONE in get_args(hints[name]):
            yield at, f"{who}.{name} may be None and is in the key: no two rows without a value have the same key"
        if kind is not None and kind not in KEY_TYPES:
            yield at, f"{who}.{name} is {kind.__name__} and is in the key: a key holds {_one_of(KEY_TYPES)}"


def _faults_of_subject(part: ModulePart, row_class: type, hints: dict[str, Any]) -> Iterator[Fault]:
    who, table = row_class.__name__, row_table(row_class)
    if not table.subject:
        return
    if table.subject not in table.columns:
        yield part, f"{who}: the subject of {table.name} is {table.subject!r}, which is not a field of the class"
    elif (kind := _kind_of(hints[table.subject])) is not None and kind not in SUBJECT_TYPES:
        yield (
            _field(part, row_class, table.subject),
            f"{who}.{table.subject} is {kind.__name__} and is the subject: a subject is {_one_of(SUBJECT_TYPES)}",
        )


def _faults_of_newest(part: ModulePart, row_class: type, hints: dict[str, Any]) -> Iterator[Fault]:
    who, table = row_class.__name__, row_table(row_class)
    name = table.newest_by
    if not name:
        return
    if name not in table.columns:
        yield part, f"{who}: newest_by of {table.name} is {name!r}, which is not a field of the class"
    elif name in table.key:
        yield (
            _field(part, row_class, name),
            f"{who}.{name} is in the key and is newest_by: rows of one key do not differ in it",
        )
    elif hints[name] not in NEWEST_TYPES:
        yield (
            _field(part, row_class, name),
            f"{who}.{name} is {_written(hints[name])} and is newest_by: the newest row is found by"
            f" {_one_of(NEWEST_TYPES)}, and each row has it",
        )


def part_of_field(row_class: type, name: str) -> ModulePart:
    """Return the place of a field of a row class."""
    return _field(_part(ModuleType(row_class.__module__), row_class), row_class, name)


def _part(module: ModuleType, row_class: type) -> ModulePart:
    """Return the place of a class, which may come from a different module."""
    return ModulePart(sys.modules.get(row_class.__module__, module), tuple(row_class.__qualname__.split(".")))


def _field(part: ModulePart, row_class: type, name: str) -> ModulePart:
    """Return the place of a field, which may come from a base of the class."""
    for base in row_class.__mro__:
        if name in get_annotations(base):
            own = _part(part.module, base)
            return ModulePart(own.module, (*own.path, name))
    return part


def _kind_of(hint: Any) -> type | None:
    """Return the type of the values of a column beside None. None for a type that no column holds."""
    kinds = [each for each in get_args(hint) or (hint,) if each is not _NONE]
    return kinds[0] if len(kinds) == 1 and kinds[0] in COLUMN_TYPES and get_origin(hint) in _UNIONS else None


def _written(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)


def _one_of(kinds: Sequence[type]) -> str:
    *first, last = (kind.__name__ for kind in kinds)
    return f"{', '.join(first)} or {last}"
