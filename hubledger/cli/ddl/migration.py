"""The next migration of a room: the difference between its declared classes and the tables that its migrations make.

Standing names are in lower case.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import NamedTuple

from core.model.aggregates import Aggregate
from core.store.migrations import BREAKING, StoredColumn, load_migrations
from core.store.sqlite.schema import misfit
from core.transforms.loading import MIGRATIONS, room_of
from hubledger.cli.ddl.room import refuse_unfit, rights_text
from hubledger.cli.ddl.tables import (
    ENGINES,
    PREFIX,
    Engine,
    Texts,
    WantedColumn,
    WantedTable,
    added_text,
    listed,
    migration_text,
    named,
    source_index_text,
    table_of,
    tables_of_level,
)

_NAMES = "SELECT lower(name) FROM sqlite_master WHERE type = ? AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
_MADE = "SELECT sql FROM sqlite_master WHERE type = ? AND lower(tbl_name) = ? AND sql IS NOT NULL ORDER BY name"
_HINDERS = "SELECT name FROM sqlite_master WHERE type = 'view' OR (type = 'trigger' AND lower(tbl_name) = ?)"
_COLUMNS = "SELECT lower(name), type, [notnull], dflt_value, pk, hidden FROM pragma_table_xinfo(?)"


class StandingColumn(NamedTuple):
    """A column of a table. `fills_itself`: it is computed or has a default, so that no row has to name it."""

    type: str
    is_required: bool
    fills_itself: bool = False


class SchemaTable(NamedTuple):
    """A table with its columns by name, the names of its key, and the statements that made it.

    Without a `text` it cannot be copied.
    """

    columns: Mapping[str, StandingColumn]
    key: tuple[str, ...]
    text: str
    indexes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables by name, the names of indexes, and the scripts that SQLite refuses.

    `unclear` has every word of those scripts: a table with such a name is not compared.
    """

    tables: Mapping[str, SchemaTable]
    indexes: frozenset[str]
    unread: tuple[str, ...] = ()
    unclear: frozenset[str] = frozenset()

    def lacks(self, name: str) -> bool:
        """Return True when no script makes a table or an index of this name."""
        return name.lower() not in self.tables.keys() | self.indexes | self.unclear


def scripts_of(room_folder: Path) -> list[Path]:
    """Return the migrations of a room for SQLite in their order."""
    return sorted((room_folder / MIGRATIONS / "sqlite").glob("*.sql"))


def read_schema(scripts: Sequence[Path]) -> Schema:
    """Return what scripts make beside our own tables on SQLite, which runs them in memory."""
    unread, unclear = list[str](), set[str]()
    with closing(sqlite3.connect(":memory:")) as connection:
        for ours in load_migrations("sqlite"):
            connection.executescript(ours.text)
        before = {name for (name,) in connection.execute(_NAMES, ["table"])}
        for path in scripts:
            text = path.read_text(encoding="utf-8-sig")
            try:
                connection.executescript(text)
            except sqlite3.Error as error:
                unread.append(f"sqlite/{path.name}: SQLite refuses it: {error}; mend it, or compare by hand")
                unclear.update(re.findall(r"\w+", text.lower()))
        names, indexes = ({name for (name,) in connection.execute(_NAMES, [kind])} for kind in ("table", "index"))
        tables = {}
        for name in names - before:
            found = connection.execute(_COLUMNS, [name]).fetchall()
            key = sorted((place, column) for column, _, _, _, place, _ in found if place)
            columns = {
                column: StandingColumn(kind.upper(), bool(required or place), default is not None or bool(hidden))
                for column, kind, required, default, place, hidden in found
            }
            made = tuple(sql for (sql,) in connection.execute(_MADE, ["index", name]))
            hinders = connection.execute(_HINDERS, [name]).fetchall()  # a copy loses its triggers, and breaks views
            ((text,),) = [("",)] if hinders else connection.execute(_MADE, ["table", name]).fetchall()
            tables[name] = SchemaTable(columns, tuple(column for _, column in key), text, made)
    return Schema(tables, frozenset(indexes), tuple(unread), frozenset(unclear))


_WHOLE = ("INTEGER", "INT", "BIGINT")
_LATER = "deploy, and then drop it by a later migration whose name begins with breaking_"
_BY_HAND = "write the migration by hand"


class SchemaChange(NamedTuple):
    """A statement of the next migration for each engine, and what it is about.

    `alters`: it locks its table, so it comes last. `widens`: its columns take more. SQLite copies such a table, and
    its indexes with it, so there it comes first.
    """

    about: str
    texts: Texts
    alters: bool = False
    widens: bool = False


class Leftover(NamedTuple):
    """A column that a later migration may drop, or that rounds what stands in it."""

    text: str


Found = SchemaChange | Leftover | str  # what is made, what is left for later, or the reason why a person writes it


def _compared(wanted: WantedTable, standing: SchemaTable) -> Iterator[Found]:
    """Yield the differences of a table from the one that its class wants."""
    fields = {each.name.lower(): each for each in wanted.columns}
    undeclared = [name for name, there in standing.columns.items() if name not in fields and not there.fills_itself]
    wider = dict(_wider(fields, standing, undeclared))
    if wider:
        yield from _widened(wanted, fields, standing, wider)
    columns = {**standing.columns, **wider}
    for name, each in fields.items():
        who, there = f"{wanted.who}.{each.name}", columns.get(name)
        if there is None:
            yield _added(wanted, each, who)
            continue
        if each.ours:
            continue
        if each.is_required and not there.is_required:
            yield f"{who} is never None, but its column takes NULL: fill the rows without a value, and {_BY_HAND}"
        fault = misfit(StoredColumn("", each.name, there.type, 0, 0, None), each.kind, each.name in wanted.key)
        if fault is not None:
            yield f"{who} changed: its column {fault}: add a field of the new type, or {_BY_HAND}"
    for name in undeclared:
        yield Leftover(
            f"{wanted.who} has no field {name}, but {wanted.name} has the column: older code writes it; {_LATER}"
        )
    if [name.lower() for name in wanted.key] != list(standing.key):
        now, then = ", ".join(wanted.key), ", ".join(standing.key) or "nothing"
        yield f"{wanted.who}: the key of {wanted.name} is ({now}), and was ({then}): copy the rows by hand"


def _wider(
    fields: Mapping[str, WantedColumn], standing: SchemaTable, undeclared: Sequence[str]
) -> Iterator[tuple[str, StandingColumn]]:
    """Yield the columns that have to take more than they do: a number with a fraction, or no value."""
    for name, there in standing.columns.items():
        each, column = fields.get(name), there
        if name in standing.key:
            continue
        if each is not None and each.kind in (float, Decimal) and there.type in _WHOLE:
            column = column._replace(type=each.type("sqlite"))
        if name in undeclared or (each is not None and not each.is_required):
            column = column._replace(is_required=False)
        if column != there:
            yield name, column


def _widened(
    wanted: WantedTable, fields: Mapping[str, WantedColumn], standing: SchemaTable, wider: Mapping[str, StandingColumn]
) -> Iterator[Found]:
    """Yield the change that gives a table its wider columns, or the reason of each field why it cannot be copied."""
    text = copied_text(wanted.name, standing, wider)
    if text is None:
        yield from (
            f"{wanted.who}.{name} takes more than its column, and SQLite changes no column: the table {wanted.name} has"
            f" a view, a trigger or a column that a copy could lose: {_BY_HAND}"
            for name in wider
        )
        return
    for name, column in wider.items():
        if column.type == "REAL" != standing.columns[name].type:
            yield Leftover(
                f"{wanted.who}.{name} becomes a float, which rounds stored whole numbers beyond 2^53: Decimal keeps"
                " them"
            )
    table = f"{PREFIX['sqlserver']}{wanted.name}"
    lines = [
        f"ALTER TABLE {table} ALTER COLUMN {named(fields[name].name)} {fields[name].type('sqlserver')}"
        f"{' NOT NULL' if column.is_required else ' NULL'};"
        for name, column in wider.items()
        if name in fields
    ]
    if removed := [f"[{name}]" for name in wider if name not in fields]:
        lines += [  # the server itself knows the type of a column that no field has
            f"DECLARE @wider_{wanted.name} nvarchar(max) = (",
            "    SELECT STRING_AGG(CONVERT(nvarchar(max), CONCAT(",
            f"        N'ALTER TABLE {table} ALTER COLUMN ', QUOTENAME(name), N' ', system_type_name,",
            "        N' COLLATE ' + collation_name, N' NULL;')), N' ')",
            "      FROM sys.dm_exec_describe_first_result_set(",
            f"        N'SELECT {', '.join(removed)} FROM {table}', NULL, 0));",
            f"EXEC(@wider_{wanted.name});",
        ]
    about = ", ".join(f"{wanted.name}.{name}" for name in wider)
    yield SchemaChange(about, {"sqlite": text, "sqlserver": "\n".join(lines)}, alters=True, widens=True)


def copied_text(name: str, standing: SchemaTable, wider: Mapping[str, StandingColumn]) -> str | None:
    """Return the statements that copy a table, or None where a copy could lose a part of it."""

    def either(word: str) -> str:  # in brackets, in quotes, or plain
        return rf'[\["]?{re.escape(word)}[\]"]?'

    made, found = re.subn(rf"^(CREATE TABLE\s+){either(name)}(?=\s*\()", rf"\g<1>{name}_wider", standing.text)
    for column, new in wider.items():
        definition = f"{new.type}{' NOT NULL' if new.is_required else ''}"
        begins = r"[(,]\s*(?:--.*\n\s*)*"  # a column in a CREATE TABLE, after the comments of the one before
        written = rf"({begins}{either(column)}\s+)\w+(?:\s+NOT\s+NULL)?(?=\s*[,)])"
        made, count = re.subn(written, rf"\g<1>{definition}", made, flags=re.IGNORECASE)
        found = min(found, count) if count < 2 else 0
    if not found or re.search(r"\bAS\s*\(", made, re.IGNORECASE):  # a computed column
        return None
    columns = tuple(standing.columns)
    parts = [
        f"{made};\n",
        f"INSERT INTO {name}_wider {listed(columns)}\nSELECT {', '.join(map(named, columns))}\n  FROM {name};\n",
        f"DROP TABLE {name};\n",
        f"ALTER TABLE {name}_wider RENAME TO {name};",
    ]
    return "\n".join([*parts, *(f"\n{index};" for index in standing.indexes)])


def _added(wanted: WantedTable, each: WantedColumn, who: str) -> Found:
    if each.ours:
        return f"{wanted.who}: the table {wanted.name} has no column {each.name}, which the store fills: {_BY_HAND}"
    if not wanted.of_rows:
        return f"{who} is new, and stored windows lack its values: declare a new aggregate"
    if each.name in wanted.key:
        return f"{who} is new in the key of {wanted.name}: copy the rows to a new table, and {_BY_HAND}"
    if each.is_required:
        return f"{who} is new and never None, but existing rows have no value: allow None, or {_BY_HAND}"
    adds: Texts = {"sqlite": "ADD COLUMN", "sqlserver": "ADD"}
    texts: Texts = {
        engine: f"ALTER TABLE {PREFIX[engine]}{wanted.name} {add} {named(each.name)} {each.type(engine)};"
        for engine, add in adds.items()
    }
    return SchemaChange(f"{wanted.name}.{each.name}", texts, alters=True)


_FILLED = (  # the columns that the store fills, of the tables of rows and of aggregates
    {"stream_id", "partition_id", "sequence_number", "commit_number"}, {"run_number", "slice"}, {"staging_id", "slice"},
)  # fmt: skip
_YOURS = "-- Lines that no declared class needs: written by hand, or of a class that was removed.\n"


@dataclass(frozen=True, slots=True)
class NextMigration:
    """The text of the next migration for each engine, empty when none is needed, and the beginning of its name.

    `cannot` has a line for each difference that a person resolves, and `later` one for each column that a later
    migration may drop. `permissions` is the new text of permissions.sql, None when the file grants everything already.
    """

    texts: Texts
    cannot: tuple[str, ...]
    later: tuple[str, ...]
    permissions: str | None
    name_hint: str


def next_migration(row_classes: Sequence[type], aggregates: Sequence[Aggregate], room_folder: Path) -> NextMigration:
    """Compare the classes of a room with its migrations on SQLite. Classes of other rooms are left out.

    Raises InvalidTransform for classes of which no table can be made.
    """

    def is_here(one: type) -> bool:
        room = room_of(one.__module__)
        return room is None or room.folder.resolve() == room_folder.resolve()

    rows, sums = list(filter(is_here, row_classes)), [one for one in aggregates if is_here(one.of)]
    refuse_unfit(rows, sums)
    scripts = scripts_of(room_folder)
    found = list(_differences([table_of(each) for each in rows], sums, read_schema(scripts)))
    cannot = tuple(dict.fromkeys(one for one in found if isinstance(one, str)))
    later = tuple(dict.fromkeys(one.text for one in found if isinstance(one, Leftover)))
    changes = [one for one in found if isinstance(one, SchemaChange)]
    abouts, texts = [one.about for one in changes], {}
    for engine in ENGINES if changes else ():
        ordered = sorted(changes, key=lambda one: (not (one.widens and engine == "sqlite"), one.alters))
        heading = f"-- Made from the declared classes: {', '.join(abouts)}.\n"
        texts[engine] = "\n".join([heading, *(one.texts[engine].rstrip() + "\n" for one in ordered)])
    verb = "widen" if all(one.widens for one in changes) else "add"
    words = f"{verb} {' and '.join(abouts[:2])}" if scripts else room_folder.resolve().name
    hint = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")[:60] or "room"
    hint = f"add_{hint}" if hint.startswith(BREAKING) else hint
    return NextMigration(texts, cannot, later, _new_permissions(rights_text(rows, sums), room_folder), hint)


def _differences(rows: Sequence[WantedTable], aggregates: Sequence[Aggregate], standing: Schema) -> Iterator[Found]:
    yield from standing.unread
    levels = [tables_of_level(level) for one in aggregates for level in one.levels]
    for table in rows:
        if standing.lacks(table.name):
            yield _made(table.name, table.text)
    for one in aggregates:
        missing = [level.name for level in one.levels if standing.lacks(level.name)]
        if len(missing) == len(one.levels):
            yield _made(one.name, partial(migration_text, one))
        elif one.name in missing:
            yield f"{one.of.__name__}: {one.name} has no table, but its rollups have: {_BY_HAND}"
        elif missing:
            names = [name.removeprefix(f"{one.name}_") for name in missing]
            yield _made(missing[0], partial(added_text, one, names=names))
        for level in one.levels:
            if level.name not in missing and standing.lacks(level.staged):
                yield _made(level.staged, tables_of_level(level)[1].text)
    for table in (*rows, *(level for level, _ in levels)):
        for name, texts in table.indexes.items() if table.name.lower() in standing.tables else ():
            if standing.lacks(name):
                yield SchemaChange(name, texts)
    for one in aggregates:
        if one.name.lower() in standing.tables and standing.lacks(name := f"ix_{one.name}_source"):
            yield _made(name, partial(source_index_text, one))
    wanted = {table.name.lower(): table for table in (*rows, *(table for pair in levels for table in pair))}
    for name, table in wanted.items():
        if name in standing.tables and name not in standing.unclear:
            yield from _compared(table, standing.tables[name])
    for name in sorted(standing.tables.keys() - wanted.keys() - standing.unclear):
        if any(names <= standing.tables[name].columns.keys() for names in _FILLED):  # others are not ours to judge
            yield (
                f"no class has the table {name}: a replay may still retract its rows, so keep the class until then;"
                " drop the table by a later migration whose name begins with breaking_"
            )


def _made(about: str, text_of: Callable[[Engine], str]) -> SchemaChange:
    return SchemaChange(about, {engine: text_of(engine) for engine in ENGINES})


def _new_permissions(wanted: str, folder: Path) -> str | None:
    """Return the rights of the room, and after them the lines of its file that no class needs."""
    path = folder / "permissions.sql"
    there = path.read_text(encoding="utf-8-sig") if path.exists() else ""
    lines = wanted.splitlines()
    if {line for line in lines if line.startswith("GRANT")} <= {line.strip() for line in there.splitlines()}:
        return None
    others = [line for line in there.splitlines() if line.strip() and line not in lines and f"{line}\n" != _YOURS]
    return wanted if not others else "\n".join([wanted, _YOURS.rstrip(), *others, ""])
