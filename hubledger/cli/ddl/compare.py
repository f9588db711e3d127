"""One table of a class beside the table that migrations make: the statements that bring it up to date, and what cannot
be made by itself."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from core.store.misfits import Judge, StoredColumn
from core.store.sqlite.misfits import misfit as misfit_of_embedded
from core.store.sqlserver.misfits import misfit as misfit_of_server
from hubledger.cli.ddl.copied import copied_text
from hubledger.cli.ddl.schema import SchemaTable, StandingColumn
from hubledger.cli.ddl.types import PREFIX, Engine, named, type_of
from hubledger.cli.ddl.wanted import WantedColumn, WantedTable

_JUDGES: Mapping[Engine, Judge] = {"sqlite": misfit_of_embedded, "sqlserver": misfit_of_server}
_TYPE = re.compile(r"(?P<name>\w+)(?:\((?P<first>\w+)(?:, *(?P<second>\d+))?\))?")
_NAMES = {"integer": "int", "numeric": "decimal", "double": "float"}  # as sqlglot writes the types of SQL Server
_LETTERS = ("varchar", "nvarchar")
_WHOLE = ("integer", "int", "bigint")  # on SQLite a boolean too, which the other engine tells apart
_LATER = "deploy, and then drop it by a later migration whose name begins with breaking_"
_BY_HAND = "write the migration by hand"


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A statement of the next migration, and what it is about. Those of the least `place` come first.

    `widens` names the fields whose columns take more than before: both engines make such a change, or none does.
    """

    about: str
    text: str
    place: int = 1
    widens: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Leftover:
    """A column that a later migration may drop, or that rounds what stands in it."""

    text: str


Found = SchemaChange | Leftover | str  # what is made, what is left for later, or the reason why a person writes it
COPIES, CHANGES = 0, 2  # the places of a copied table, whose indexes come with it, and of changes, which lock a table


def compare_table(wanted: WantedTable, standing: SchemaTable, engine: Engine) -> Iterator[Found]:
    """Yield the differences of a table from the one that its class wants."""
    wider = dict(_wider(wanted, standing, engine))
    if wider:
        yield from _widened(wanted, standing, wider, engine)
    columns = {**standing.columns, **wider}
    for each in wanted.columns:
        there = columns.get(each.name.lower())
        if there is None:
            yield _added(wanted, each, engine)
        else:
            yield from _compare_column(wanted, each, there, engine)
    yield from (
        f"{wanted.who}: the table {wanted.name} has no column {name}, which the store fills: {_BY_HAND}"
        for name in wanted.of_store
        if name not in columns
    )
    yield from (
        Leftover(f"{wanted.who} has no field {name}, but {wanted.name} has the column: older code writes it; {_LATER}")
        for name in _undeclared(wanted, standing)
    )
    if [name.lower() for name in wanted.key] != list(standing.key):
        now, then = ", ".join(wanted.key), ", ".join(standing.key) or "nothing"
        yield f"{wanted.who}: the key of {wanted.name} is ({now}), and was ({then}): copy the rows by hand"


def _wider(wanted: WantedTable, standing: SchemaTable, engine: Engine) -> Iterator[tuple[str, StandingColumn]]:
    """Yield the columns that have to take more than they do: a number with a fraction, or no value."""
    fields = {each.name.lower(): each for each in wanted.columns}
    undeclared = set(_undeclared(wanted, standing))
    for name, there in standing.columns.items():
        each, column = fields.get(name), there
        if name in standing.key:
            continue
        if each is not None and each.kind in (float, Decimal) and there.type.lower() in _WHOLE:
            column = replace(column, type=type_of(each.kind, engine))
        if name in undeclared or (each is not None and not each.is_required):
            column = replace(column, is_required=False)
        if column != there:
            yield name, column


def _widened(
    wanted: WantedTable, standing: SchemaTable, wider: Mapping[str, StandingColumn], engine: Engine
) -> Iterator[Found]:
    """Yield the change that gives a table its wider columns, or the reason of each field why it cannot be copied."""
    about, fields = ", ".join(f"{wanted.name}.{name}" for name in wider), [f"{wanted.who}.{name}" for name in wider]
    yield from (
        Leftover(
            f"{wanted.who}.{name} becomes a float, which rounds stored whole numbers beyond 2^53: Decimal keeps them"
        )
        for name, column in wider.items()
        if column.type == type_of(float, engine) != standing.columns[name].type
    )
    if engine == "sqlserver":
        altered = "\n".join(_altered(wanted, name, column) for name, column in wider.items())
        yield SchemaChange(about, altered, CHANGES, frozenset(fields))
    elif (text := copied_text(wanted.name, standing, wider)) is not None:
        yield SchemaChange(about, text, COPIES, frozenset(fields))
    else:
        yield from (
            f"{each} takes more than its column, and SQLite changes no column: the table {wanted.name} has a view, a"
            f" trigger or a column that a copy could lose: {_BY_HAND}"
            for each in fields
        )


def _altered(wanted: WantedTable, name: str, column: StandingColumn) -> str:
    collation = f" COLLATE {column.collation}" if column.collation else ""
    null = " NOT NULL" if column.is_required else " NULL"
    return f"ALTER TABLE {PREFIX['sqlserver']}{wanted.name} ALTER COLUMN {named(name)} {column.type}{collation}{null};"


def compare_type(each: WantedColumn, there: StandingColumn, engine: Engine, *, is_key: bool) -> str | None:
    """Return the reason for which a column does not hold the values of a field; None for one that does."""
    column = _described(each, there)
    if engine == "sqlserver" and each.text is not None and each.text.ascii and column.type == "varchar":
        column = replace(column, type="nvarchar")  # every text of ASCII fits
    return _JUDGES[engine](column, each.kind, is_key)


def _added(wanted: WantedTable, each: WantedColumn, engine: Engine) -> Found:
    who = f"{wanted.who}.{each.name}"
    if not wanted.of_rows:
        return f"{who} is new, and stored windows lack its values: declare a new aggregate"
    if each.name in wanted.key:
        return f"{who} is new in the key of {wanted.name}: copy the rows to a new table, and {_BY_HAND}"
    if each.is_required:
        return f"{who} is new and never None, but existing rows have no value: allow None, or {_BY_HAND}"
    add = "ADD COLUMN" if engine == "sqlite" else "ADD"
    text = (
        f"ALTER TABLE {PREFIX[engine]}{wanted.name} {add} {named(each.name)} {type_of(each.kind, engine, each.text)};"
    )
    return SchemaChange(f"{wanted.name}.{each.name}", text, CHANGES)


def _compare_column(wanted: WantedTable, each: WantedColumn, there: StandingColumn, engine: Engine) -> Iterator[Found]:
    who, is_key = f"{wanted.who}.{each.name}", each.name in wanted.key
    if each.is_required and not there.is_required:
        yield f"{who} is never None, but its column takes NULL: fill the rows without a value, and {_BY_HAND}"
    if (fault := compare_type(each, there, engine, is_key=is_key)) is not None:
        yield f"{who} changed: its column {fault}: add a field of the new type, or {_BY_HAND}"
    elif engine == "sqlserver" and each.kind is str:
        yield from _compare_length(wanted, each, there)


def _compare_length(wanted: WantedTable, each: WantedColumn, there: StandingColumn) -> Iterator[Found]:
    who, wide = f"{wanted.who}.{each.name}", type_of(str, "sqlserver", each.text).partition(" ")[0]
    (letters, had), (_, has) = _length_of(there.type), _length_of(wide)
    if letters not in _LETTERS or had == has:
        return
    if has < had:
        yield f"{who} is shorter: stored texts may have up to {there.type}: keep the length, or {_BY_HAND}"
    elif each.name in wanted.key or not wanted.of_rows:
        yield f"{who} is longer and in the key of {wanted.name}, which SQL Server does not change: {_BY_HAND}"
    elif not wide.startswith(letters):
        yield f"{who} changed from {there.type} to {wide}: add a field of the new type, or {_BY_HAND}"
    else:
        text = _altered(wanted, each.name, replace(there, type=wide))
        yield SchemaChange(f"{wanted.name}.{each.name}", text, CHANGES)


def _undeclared(wanted: WantedTable, standing: SchemaTable) -> list[str]:
    """Return the columns that no field has, and that do not fill themselves."""
    names = {*(each.name.lower() for each in wanted.columns), *wanted.of_store}
    return [name for name, column in standing.columns.items() if name not in names and not column.fills_itself]


def _described(each: WantedColumn, there: StandingColumn) -> StoredColumn:
    found = _TYPE.match(there.type)
    if found is None:
        return StoredColumn("", each.name, there.type, 0, 0, there.collation)
    name = found["name"] if there.type.isupper() else _NAMES.get(found["name"], found["name"])
    first = int(found["first"]) if (found["first"] or "").isdigit() else 0
    second = int(found["second"] or 0)
    scale = (first if found["first"] else 7) if name == "datetime2" else second
    return StoredColumn("", each.name, name, first, scale, there.collation)


def _length_of(text: str) -> tuple[str, float]:
    found = _TYPE.match(text)
    if found is None:
        return text, 0
    return found["name"], float("inf") if found["first"] == "max" else float(found["first"] or 1)
