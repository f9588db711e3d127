"""The next migration of a room: the difference between its declared classes and what its migrations make."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from core.model.aggregates import WINDOW_START, Aggregate
from core.model.rows import row_table
from core.store.migrations import BREAKING
from core.transforms.loading import room_of
from hubledger.cli.ddl.aggregates import (
    added_text,
    migration_text,
    retention_index_text,
    source_index_text,
    staged_text,
)
from hubledger.cli.ddl.compare import Found, Leftover, SchemaChange, compare_table
from hubledger.cli.ddl.room import refuse_unfit, rights_text
from hubledger.cli.ddl.rows import place_index_name, place_index_text, row_table_text
from hubledger.cli.ddl.schema import Schema, SchemaTable, WantedTable, read_schema, scripts_of, wanted_tables
from hubledger.cli.ddl.types import ENGINES, Engine

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
