"""The next migration of a room: the difference between its declared classes and what its migrations make."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path

from core.model.aggregates import WINDOW_START, Aggregate
from core.model.rows import row_table
from core.store.migrations import BREAKING, StoredColumn
from core.store.sqlite.schema import misfit
from core.transforms.loading import room_of
from hubledger.cli.ddl.room import refuse_unfit, rights_text
from hubledger.cli.ddl.schema import (
    Schema,
    SchemaTable,
    StandingColumn,
    WantedColumn,
    WantedTable,
    read_schema,
    scripts_of,
    wanted_tables,
)
from hubledger.cli.ddl.tables import (
    ENGINES,
    PREFIX,
    Engine,
    added_text,
    listed,
    migration_text,
    named,
    place_index_name,
    place_index_text,
    retention_index_text,
    row_table_text,
    source_index_text,
    staged_text,
    type_of,
)

_BEGINS = r"[(,]\s*(?:--.*\n\s*)*"  # a column in a CREATE TABLE, after the comments of the one before
_COMPUTED = re.compile(r"\bAS\s*\(", re.IGNORECASE)


def copied_text(name: str, standing: SchemaTable, wider: Mapping[str, StandingColumn]) -> str | None:
    """Return the statements that copy a table, or None where a copy could lose a part of it."""
    made, found = re.subn(rf"^(CREATE TABLE\s+){_either(name)}(?=\s*\()", rf"\g<1>{name}_wider", standing.text)
    for column, new in wider.items():
        definition = f"{new.type}{' NOT NULL' if new.is_required else ''}"
        written = rf"({_BEGINS}{_either(column)}\s+)\w+(?:\s+NOT\s+NULL)?(?=\s*[,)])"
        made, count = re.subn(written, rf"\g<1>{definition}", made, flags=re.IGNORECASE)
        found = min(found, count) if count < 2 else 0
    if not found or _COMPUTED.search(made):
        return None
    columns = listed(tuple(standing.columns))
    chosen = ", ".join(map(named, standing.columns))
    return "\n".join(
        [
            f"{made};\n",
            f"INSERT INTO {name}_wider {columns}\nSELECT {chosen}\n  FROM {name};\n",
            f"DROP TABLE {name};\n",
            f"ALTER TABLE {name}_wider RENAME TO {name};",
            *(f"\n{index};" for index in standing.indexes),
        ]
    )


def _either(name: str) -> str:
    """Return the pattern of a name, which may be in brackets or in quotes."""
    return rf'[\["]?{re.escape(name)}[\]"]?'


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
        for name in _undeclared_columns(wanted, standing)
    )
    if [name.lower() for name in wanted.key] != list(standing.key):
        now, then = ", ".join(wanted.key), ", ".join(standing.key) or "nothing"
        yield f"{wanted.who}: the key of {wanted.name} is ({now}), and was ({then}): copy the rows by hand"


def _wider(wanted: WantedTable, standing: SchemaTable) -> Iterator[tuple[str, StandingColumn]]:
    """Yield the columns that have to take more than they do: a number with a fraction, or no value."""
    fields = {each.name.lower(): each for each in wanted.columns}
    undeclared = set(_undeclared_columns(wanted, standing))
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


def _undeclared_columns(wanted: WantedTable, standing: SchemaTable) -> list[str]:
    """Return the columns that no field has, and that do not fill themselves."""
    names = {*(each.name.lower() for each in wanted.columns), *wanted.of_store}
    return [name for name, column in standing.columns.items() if name not in names and not column.fills_itself]


_OURS = (  # the columns that the store fills, of the tables of rows and of aggregates
    {"stream_id", "partition_id", "sequence_number", "commit_number"}, {"run_number", "slice"}, {"staging_id", "slice"},
)  # fmt: skip
_YOURS = "-- Lines that no declared class needs: written by hand, or of a class that was removed.\n"


@dataclass(frozen=True, slots=True)
class NextMigration:
    """The text of the next migration for each engine, empty when none is needed, and the beginning of its name.

    `cannot` has a line for each difference that a person resolves, and `later` one for each column that a later
    migration may drop; `permissions` is the new text of permissions.sql, None when the file grants everything already.
    """

    texts: Mapping[Engine, str]
    cannot: tuple[str, ...]
    later: tuple[str, ...]
    permissions: str | None
    name_hint: str


@dataclass(frozen=True, slots=True)
class _RoomTables:
    row_classes: tuple[type, ...]
    aggregates: tuple[Aggregate, ...]


def next_migration(row_classes: Sequence[type], aggregates: Sequence[Aggregate], room_folder: Path) -> NextMigration:
    """Compare the classes of a room with its migrations on SQLite; classes of other rooms are left out.

    Raises InvalidTransform for classes of which no table can be made.
    """
    room = _own(row_classes, aggregates, room_folder)
    refuse_unfit(room.row_classes, room.aggregates)
    scripts = scripts_of(room_folder)
    found = _differences(room, read_schema(scripts))
    cannot = tuple(dict.fromkeys(one for one in found if isinstance(one, str)))
    later = tuple(dict.fromkeys(one.text for one in found if isinstance(one, Leftover)))
    changes = [one for one in found if isinstance(one, SchemaChange)]
    abouts = [one.about for one in changes]
    texts = {engine: _text(abouts, changes, engine) for engine in ENGINES} if changes else {}
    verb = "widen" if all(one.widens for one in changes) else "add"
    hint = _hint(f"{verb} {' and '.join(abouts[:2])}" if scripts else room_folder.resolve().name)
    return NextMigration(texts, cannot, later, _new_permissions(room, room_folder), hint)


def _own(row_classes: Sequence[type], aggregates: Sequence[Aggregate], room_folder: Path) -> _RoomTables:
    def is_here(one: type) -> bool:
        room = room_of(one.__module__)
        return room is None or room.folder.resolve() == room_folder.resolve()

    return _RoomTables(tuple(filter(is_here, row_classes)), tuple(one for one in aggregates if is_here(one.of)))


def _differences(room: _RoomTables, standing: Schema) -> list[Found]:
    wanted = wanted_tables(room.row_classes, room.aggregates)
    return [
        *standing.unread,
        *_missing_tables(room, standing),
        *_missing_indexes(room, standing),
        *_compared(wanted, standing),
        *_undeclared(wanted, standing),
    ]


def _made(about: str, text_of: Callable[[Engine], str]) -> SchemaChange:
    return SchemaChange(about, {engine: text_of(engine) for engine in ENGINES})


def _missing_tables(room: _RoomTables, standing: Schema) -> Iterator[Found]:
    for each in room.row_classes:
        if _lacks(standing, (name := row_table(each).name)):
            yield _made(name, partial(row_table_text, each))
    for one in room.aggregates:
        missing = [level.name for level in one.levels if _lacks(standing, level.name)]
        if len(missing) == len(one.levels):
            yield _made(one.name, partial(migration_text, one))
        elif one.name in missing:
            yield f"{one.of.__name__}: {one.name} has no table, but its rollups have: write the migration by hand"
        elif missing:
            names = [name.removeprefix(f"{one.name}_") for name in missing]
            yield _made(missing[0], partial(added_text, one, names=names))
        for level in one.levels:
            if level.name not in missing and _lacks(standing, level.staged):
                yield _made(level.staged, partial(staged_text, level))


def _missing_indexes(room: _RoomTables, standing: Schema) -> Iterator[SchemaChange]:
    """Yield the indexes that standing tables lack: those of states by place, and those of aggregates."""
    for each in room.row_classes:
        table = row_table(each)
        if table.key and table.name.lower() in standing.tables and _lacks_index(standing, place_index_name(each)):
            yield _made(place_index_name(each), partial(place_index_text, each))
    for one in room.aggregates:
        if one.name.lower() not in standing.tables:
            continue
        if _lacks_index(standing, name := f"ix_{one.name}_source"):
            yield _made(name, partial(source_index_text, one))
        for level in one.levels:
            name = f"ix_{level.name}_{WINDOW_START}"
            if level.keep is not None and level.name.lower() in standing.tables and _lacks_index(standing, name):
                yield _made(name, partial(retention_index_text, level, is_standing=True))


def _compared(wanted: Mapping[str, WantedTable], standing: Schema) -> Iterator[Found]:
    for name, table in wanted.items():
        if name in standing.tables and name not in standing.unclear:
            yield from compare_table(table, standing.tables[name])


def _undeclared(wanted: Mapping[str, WantedTable], standing: Schema) -> Iterator[str]:
    """Yield the tables of rows and windows that no class has; other tables are not ours to judge."""
    for name in sorted(standing.tables.keys() - wanted.keys() - standing.unclear):
        if _is_ours(standing.tables[name]):
            yield (
                f"no class has the table {name}: a replay may still retract its rows, so keep the class until then;"
                " drop the table by a later migration whose name begins with breaking_"
            )


def _is_ours(table: SchemaTable) -> bool:
    return any(names <= table.columns.keys() for names in _OURS)


def _lacks(standing: Schema, table: str) -> bool:
    return table.lower() not in standing.tables.keys() | standing.unclear


def _lacks_index(standing: Schema, name: str) -> bool:
    return name.lower() not in standing.indexes | standing.unclear


def _text(abouts: Sequence[str], changes: Sequence[SchemaChange], engine: Engine) -> str:
    heading = f"-- Made from the declared classes: {', '.join(abouts)}.\n"
    ordered = sorted(changes, key=lambda one: one.rank(engine))
    return "\n".join([heading, *(one.texts[engine].rstrip() + "\n" for one in ordered)])


def _hint(words: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")[:60] or "room"
    return f"add_{name}" if name.startswith(BREAKING) else name


def _new_permissions(room: _RoomTables, folder: Path) -> str | None:
    """Return the rights of the room, and after them the lines of its file that no class needs."""
    path, wanted = folder / "permissions.sql", rights_text(room.row_classes, room.aggregates)
    there = path.read_text(encoding="utf-8-sig") if path.exists() else ""
    lines = wanted.splitlines()
    if {line for line in lines if line.startswith("GRANT")} <= {line.strip() for line in there.splitlines()}:
        return None
    others = [line for line in there.splitlines() if line.strip() and line not in lines and f"{line}\n" != _YOURS]
    return wanted if not others else "\n".join([wanted, _YOURS.rstrip(), *others, ""])
