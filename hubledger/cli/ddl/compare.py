"""One table of a class beside the table that migrations make: the statements that bring it up to date, and what cannot
be made by itself."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from core.store.migrations import StoredColumn
from core.store.sqlite.schema import misfit
from hubledger.cli.ddl.copied import copied_text
from hubledger.cli.ddl.schema import SchemaTable, StandingColumn, WantedColumn, WantedTable
from hubledger.cli.ddl.types import PREFIX, Engine, named, type_of

_WHOLE = ("INTEGER", "INT", "BIGINT")
_LATER = "deploy, and then drop it by a later migration whose name begins with breaking_"
_BY_HAND = "write the migration by hand"
MAKES, CHANGES = 1, 2  # the places of changes in a migration: what changes a table locks it


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A statement of the next migration for each engine, and what it is about. `widens`: its columns take more."""

    about: str
    texts: Mapping[Engine, str]
    place: int = MAKES
    widens: bool = False

    def rank(self, engine: Engine) -> int:
        """Return the place in the migration of an engine: the indexes of a table that SQLite copies come with it."""
        return 0 if self.widens and engine == "sqlite" else self.place


@dataclass(frozen=True, slots=True)
class Leftover:
    """A column that a later migration may drop, or that rounds what stands in it."""

    text: str


Found = SchemaChange | Leftover | str  # what is made, what is left for later, or the reason why a person writes it


def compare_table(wanted: WantedTable, standing: SchemaTable) -> Iterator[Found]:
    """Yield the differences of a table from the one that its class wants."""
    wider = dict(_wider(wanted, standing))
    if wider:
        yield from _widened(wanted, standing, wider)
    columns = {**standing.columns, **wider}
    for each in wanted.columns:
        there = columns.get(each.name.lower())
        if there is None:
            yield _added(wanted, each)
        else:
            yield from _compare_column(wanted, each, there)
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


def _wider(wanted: WantedTable, standing: SchemaTable) -> Iterator[tuple[str, StandingColumn]]:
    """Yield the columns that have to take more than they do: a number with a fraction, or no value."""
    fields = {each.name.lower(): each for each in wanted.columns}
    undeclared = set(_undeclared(wanted, standing))
    for name, there in standing.columns.items():
        each, column = fields.get(name), there
        if name in standing.key:
            continue
        if each is not None and each.kind in (float, Decimal) and there.type in _WHOLE:
            column = replace(column, type=type_of(each.kind, "sqlite"))
        if name in undeclared or (each is not None and not each.is_required):
            column = replace(column, is_required=False)
        if column != there:
            yield name, column


def _widened(wanted: WantedTable, standing: SchemaTable, wider: Mapping[str, StandingColumn]) -> Iterator[Found]:
    """Yield the change that gives a table its wider columns, or the reason of each field why it cannot be copied."""
    about = ", ".join(f"{wanted.name}.{name}" for name in wider)
    text = copied_text(wanted.name, standing, wider)
    if text is None:
        yield from (
            f"{wanted.who}.{name} takes more than its column, and SQLite changes no column: the table {wanted.name} has"
            f" a view, a trigger or a column that a copy could lose: {_BY_HAND}"
            for name in wider
        )
        return
    yield from (
        Leftover(
            f"{wanted.who}.{name} becomes a float, which rounds stored whole numbers beyond 2^53: Decimal keeps them"
        )
        for name, column in wider.items()
        if column.type == type_of(float, "sqlite") != standing.columns[name].type
    )
    texts: Mapping[Engine, str] = {"sqlite": text, "sqlserver": _altered(wanted, wider)}
    yield SchemaChange(about, texts, CHANGES, widens=True)


def _altered(wanted: WantedTable, wider: Mapping[str, StandingColumn]) -> str:
    """Return the T-SQL that widens columns. The server itself knows the type of a column that no field has."""
    table, fields = f"{PREFIX['sqlserver']}{wanted.name}", {each.name.lower(): each for each in wanted.columns}
    lines = [
        f"ALTER TABLE {table} ALTER COLUMN {named(each.name)} {type_of(each.kind, 'sqlserver', each.text)}"
        f"{' NOT NULL' if column.is_required else ' NULL'};"
        for name, column in wider.items()
        if (each := fields.get(name)) is not None
    ]
    if removed := [f"[{name}]" for name in wider if name not in fields]:
        lines += [
            f"DECLARE @wider_{wanted.name} nvarchar(max) = (",
            "    SELECT STRING_AGG(CONVERT(nvarchar(max), CONCAT(",
            f"        N'ALTER TABLE {table} ALTER COLUMN ', QUOTENAME(name), N' ', system_type_name,",
            "        N' COLLATE ' + collation_name, N' NULL;')), N' ')",
            "      FROM sys.dm_exec_describe_first_result_set(",
            f"        N'SELECT {', '.join(removed)} FROM {table}', NULL, 0));",
            f"EXEC(@wider_{wanted.name});",
        ]
    return "\n".join(lines)


def _added(wanted: WantedTable, each: WantedColumn) -> Found:
    who = f"{wanted.who}.{each.name}"
    if not wanted.of_rows:
        return f"{who} is new, and stored windows lack its values: declare a new aggregate"
    if each.name in wanted.key:
        return f"{who} is new in the key of {wanted.name}: copy the rows to a new table, and {_BY_HAND}"
    if each.is_required:
        return f"{who} is new and never None, but existing rows have no value: allow None, or {_BY_HAND}"
    adds: Mapping[Engine, str] = {"sqlite": "ADD COLUMN", "sqlserver": "ADD"}
    texts = {
        engine: f"ALTER TABLE {PREFIX[engine]}{wanted.name} {add} {named(each.name)}"
        f" {type_of(each.kind, engine, each.text)};"
        for engine, add in adds.items()
    }
    return SchemaChange(f"{wanted.name}.{each.name}", texts, CHANGES)


def _compare_column(wanted: WantedTable, each: WantedColumn, there: StandingColumn) -> Iterator[Found]:
    who = f"{wanted.who}.{each.name}"
    if each.is_required and not there.is_required:
        yield f"{who} is never None, but its column takes NULL: fill the rows without a value, and {_BY_HAND}"
    fault = misfit(StoredColumn("", each.name, there.type, 0, 0, None), each.kind, each.name in wanted.key)
    if fault is not None:
        yield f"{who} changed: its column {fault}: add a field of the new type, or {_BY_HAND}"


def _undeclared(wanted: WantedTable, standing: SchemaTable) -> list[str]:
    """Return the columns that no field has, and that do not fill themselves."""
    names = {*(each.name.lower() for each in wanted.columns), *wanted.of_store}
    return [name for name, column in standing.columns.items() if name not in names and not column.fills_itself]
