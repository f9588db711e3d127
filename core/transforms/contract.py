"""The contract of a transform: its form, its names, and its row classes.

The form is checked whenever a transform is loaded. Every aggregate of its rows is checked too on request and before a
run: `python -m core.store.migrate --check`, the local run, and the trial start before a deployment.
"""

import ast
import inspect
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from inspect import get_annotations
from pathlib import PurePath
from traceback import walk_tb
from types import ModuleType, UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from core.errors import InvalidTransform
from core.model.rows import COLUMN_TYPES, OURS, Text, declared, is_row_class, row_table, texts_in

Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class ModulePart:
    """A part of a module: the path of a name, such as ("OrderLine", "shop_id"). It is empty for the module itself."""

    module: ModuleType
    path: tuple[str, ...] = ()


Fault = tuple[ModulePart, str]


class Lines:
    """The lines of one module, read from its source when they are first needed."""

    def __init__(self, module: ModuleType) -> None:
        self.file = file_of(module.__name__, getattr(module, "__file__", None))
        self._module = module

    @cached_property
    def text(self) -> str:
        """The source of the module. It is empty when its loader has none."""
        spec = self._module.__spec__
        read: Callable[[str], str | None] | None = getattr(spec and spec.loader, "get_source", None)
        return (read(self._module.__name__) if read else None) or ""

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree of the module."""
        return ast.parse(self.text)

    def line_of(self, path: Iterable[str]) -> int:
        """Return the line of the innermost part of a path that the source has, or 1 for the module itself."""
        line, bodies = 1, self.tree.body
        for name in path:
            found = next((node for node in reversed(bodies) if name in _names_of(node)), None)
            if found is None:
                break
            line, bodies = found.lineno, getattr(found, "body", [])
        return line


def file_of(module_name: str, path: str | None) -> str:
    """Return the file of a module from the folder of its outermost package: `app/sensors.py`."""
    parts = PurePath(path).parts if path else ()
    depth = module_name.count(".") + (2 if parts[-1:] == ("__init__.py",) else 1)
    return "/".join(parts[-depth:]) or f"{module_name.replace('.', '/')}.py"


@contextmanager
def importing(module_name: str, transform: str | None = None) -> Iterator[None]:
    """Raise InvalidTransform with the faults of a module that cannot be imported, and the transform that needs it."""
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, SyntaxError):
            raise InvalidTransform(f"{error.filename}:{error.lineno}: {error.msg}", module=transform) from error
        faults = error.faults if isinstance(error, InvalidTransform) else (str(error),)
        if not isinstance(error, ImportError | InvalidTransform):
            faults = (f"{type(error).__name__}: {error}",)
        place, package = "", module_name.partition(".")[0]
        for frame, line in walk_tb(error.__traceback__):  # to the innermost statement of the package's own modules
            name = str(frame.f_globals.get("__name__"))
            if frame.f_code.co_name == "<module>" and name.partition(".")[0] == package:
                place = f"{file_of(name, frame.f_code.co_filename)}:{line}: "
        raise InvalidTransform(*(f"{place}{fault}" for fault in faults), module=transform) from error


def placed(faults: Iterable[Fault]) -> list[str]:
    """Return faults as `file:line: fault`, each once, in the order of their lines."""
    lines: dict[str, Lines] = {}
    found: list[tuple[str, int, str]] = []
    for part, text in faults:
        own = lines.setdefault(part.module.__name__, Lines(part.module))
        found.append((own.file, own.line_of(part.path), text))
    return [f"{file}:{line}: {text}" for file, line, text in sorted(dict.fromkeys(found))]


def _names_of(node: Any) -> tuple[str, ...]:
    if isinstance(node, Named):
        return (node.name,)
    if isinstance(node, ast.ImportFrom | ast.Import):
        return tuple(alias.asname or alias.name for alias in node.names)
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return tuple(target.id for target in targets if isinstance(target, ast.Name))


KEY_OF = "key_of"
LONGEST = 128  # characters of a name in SQL Server
LONGEST_TABLE = LONGEST - len("@rows_of_")  # the variable that holds a table's rows
LONGEST_COLUMN = LONGEST - len(OURS)  # the name under which a job of Spark reads an instant
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# https://learn.microsoft.com/sql/t-sql/language-elements/reserved-keywords-transact-sql
# https://www.sqlite.org/lang_keywords.html
_WORDS = """
add all alter and any as asc authorization autoincrement backup begin between break browse bulk by cascade case cast
check checkpoint close clustered coalesce collate column commit compute constraint contains containstable continue
convert create cross current current_date current_time current_timestamp current_user cursor database dbcc deallocate
declare default deferrable delete deny desc disk distinct distributed double drop dump else end errlvl escape except
exec execute exists exit external fetch file fillfactor for foreign freetext freetexttable from full function goto
grant group having holdlock identity identity_insert identitycol if in index inner insert intersect into is isnull
join key kill left like limit lineno load merge national nocheck nonclustered not nothing notnull null nullif of off
offsets on open opendatasource openquery openrowset openxml option or order outer over percent pivot plan precision
primary print proc procedure public raise raiserror read readtext reconfigure references replication restore restrict
return returning revert revoke right rollback rowcount rowguidcol rule save schema securityaudit select
semantickeyphrasetable semanticsimilaritydetailstable semanticsimilaritytable session_user set setuser shutdown some
statistics system_user table tablesample textsize then to top tran transaction trigger truncate try_convert tsequal
union unique unpivot update updatetext use user using values varying view waitfor when where while with within
writetext
"""
_RESERVED = frozenset(_WORDS.split())
_STATEMENTS = ("excluded", "json_each")  # of SQLite: the row of an upsert, and the function that reads JSON


def is_plain(name: str) -> bool:
    """Return True for a name that both engines take without brackets."""
    return _TABLE.fullmatch(name) is not None and name.lower() not in _RESERVED


def fault_of_table(name: str) -> str | None:
    """Return the fault of the name of a table, or None for one that both engines take without quotes."""
    if not _TABLE.fullmatch(name):
        return (
            f"the table name {name!r} has other characters than letters of ASCII, digits and _, or begins with a digit"
        )
    if len(name) > LONGEST_TABLE:
        return f"the table name {name} is longer than {LONGEST_TABLE} characters"
    if name.lower() in _RESERVED:
        return f"the table name {name} is a word of SQL: use a different one"
    if name.lower().startswith(OURS) or name.lower() in _STATEMENTS:
        return f"the table name {name} has a meaning in statements of Hubledger: use a different one"
    return f"the table name {name} is one of SQLite's own" if name.lower().startswith("sqlite_") else None


def fault_of_column(name: str) -> str | None:
    """Return the fault of the name of a column, or None for one that both engines take in brackets."""
    if name.lower().startswith(OURS):
        return f"the names of columns of Hubledger begin with {OURS}"
    return f"the name is longer than {LONGEST_COLUMN} characters" if len(name) > LONGEST_COLUMN else None


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
        texts, kind = texts_in(annotated[name]), kind_of(hints[name])
        yield from (
            (_field(part, row_class, name), f"{who}.{name}: {fault}") for fault in _faults_of_texts(texts, kind)
        )
    yield from _faults_of_key(part, row_class, hints)
    yield from _faults_of_named(part, row_class, hints)


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
        if kind_of(hints[name]) is None:
            yield (
                at,
                f"{who}.{name} is {_type_text(hints[name])}: a column holds {_one_of(COLUMN_TYPES)}, or None beside it",
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
        kind, at = kind_of(hints[name]), _field(part, row_class, name)
        if _NONE in get_args(hints[name]):
            yield at, f"{who}.{name} may be None and is in the key: no two rows without a value have the same key"
        if kind is not None and kind not in KEY_TYPES:
            yield at, f"{who}.{name} is {kind.__name__} and is in the key: a key holds {_one_of(KEY_TYPES)}"


def _faults_of_named(part: ModulePart, row_class: type, hints: dict[str, Any]) -> Iterator[Fault]:
    """Yield the faults of the columns that a table names as its subject and as its newest_by."""
    who, table = row_class.__name__, row_table(row_class)
    subject, name = table.subject, table.newest_by
    if subject and subject not in table.columns:
        yield part, f"{who}: the subject of {table.name} is {subject!r}, which is not a field of the class"
    elif subject and (kind := kind_of(hints[subject])) is not None and kind not in SUBJECT_TYPES:
        yield (
            _field(part, row_class, subject),
            f"{who}.{subject} is {kind.__name__} and is the subject: a subject is {_one_of(SUBJECT_TYPES)}",
        )
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
            f"{who}.{name} is {_type_text(hints[name])} and is newest_by: the newest row is found by"
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


def kind_of(hint: Any) -> type | None:
    """Return the type of the values of a column beside None. None for a type that no column holds."""
    kinds = [each for each in get_args(hint) or (hint,) if each is not _NONE]
    return kinds[0] if len(kinds) == 1 and kinds[0] in COLUMN_TYPES and get_origin(hint) in _UNIONS else None


def _type_text(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)


def _one_of(kinds: Sequence[type]) -> str:
    *first, last = (kind.__name__ for kind in kinds)
    return f"{', '.join(first)} or {last}"


VERSION_LENGTH = 100  # UTF-16 units, as the columns of SQL Server count: it would refuse every commit of a longer one


def row_classes_of(module: ModuleType) -> tuple[type, ...]:
    """Return the row classes in the namespace of a module, each once."""
    return tuple(dict.fromkeys(value for value in vars(module).values() if is_row_class(value)))


def faults_of_form(module: ModuleType) -> Iterator[Fault]:
    """Yield every fault of a module that shows without its source."""
    part, version = ModulePart(module, ("VERSION",)), getattr(module, "VERSION", None)
    if not isinstance(version, str) or not version:
        yield part, "the module needs VERSION, a text that the ledger and letters name"
    else:
        if len(version.encode("utf-16-le", "surrogatepass")) > 2 * VERSION_LENGTH:
            yield part, f"VERSION is longer than {VERSION_LENGTH} characters"
        if any("\ud800" <= letter <= "\udfff" for letter in version):
            yield part, "VERSION has half of a surrogate pair, which no column can hold"
    yield from _faults_of_function(module, "transform", "transform(event, references)", 2)
    if getattr(module, "references", None) is not None:
        yield from _faults_of_function(module, "references", "references(event)", 1)
    if getattr(module, KEY_OF, None) is not None:
        yield from _faults_of_function(module, KEY_OF, "key_of(event)", 1)
    own = (each for each in declared() if each.__module__ == module.__name__)
    yield from faults_of_rows(module, tuple(dict.fromkeys((*row_classes_of(module), *own))))


def _faults_of_function(module: ModuleType, name: str, form: str, arguments: int) -> Iterator[Fault]:
    part, function = ModulePart(module, (name,)), getattr(module, name, None)
    if not callable(function):
        yield part, f"the module needs a function {form}"
    elif inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        yield part, f"{name}() is async: write it with def, because it may not wait for anything"
    else:
        try:
            with suppress(ValueError):  # a function of C may have no signature
                inspect.signature(function).bind(*[None] * arguments)
        except TypeError:
            yield part, f"{name}() is called as {form}, but has a different signature"
