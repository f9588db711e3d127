"""The next migration of a room: the difference between its declared classes and what its migrations make."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.model.aggregates import WINDOW_START, Aggregate
from core.model.rows import row_table
from core.store.migrations import BREAKING
from core.transforms.rooms import room_of
from hubledger.cli.ddl.aggregates import (
    added_text,
    migration_text,
    retention_index_text,
    source_index_text,
    staged_text,
)
from hubledger.cli.ddl.compare import Found, Leftover, SchemaChange, compare_table
from hubledger.cli.ddl.described import read_embedded
from hubledger.cli.ddl.parsed import read_server
from hubledger.cli.ddl.room import refuse_unfit, rights_text
from hubledger.cli.ddl.rows import place_index_name, place_index_text, row_table_text
from hubledger.cli.ddl.schema import Schema, SchemaScript, SchemaTable, scripts_of
from hubledger.cli.ddl.types import ENGINES, Engine
from hubledger.cli.ddl.wanted import WantedTable, wanted_tables

_READERS: Mapping[Engine, Callable[[Iterable[SchemaScript]], Schema]] = {
    "sqlite": read_embedded,
    "sqlserver": read_server,
}
_NOTHING = {
    "sqlite": "-- Nothing changes on SQLite: its texts have no length. Both engines have one sequence of migrations.\n",
    "sqlserver": "-- Nothing changes on SQL Server. Both engines have one sequence of migrations.\n",
}
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
    """Compare the classes of a room with its migrations; classes of other rooms are left out.

    Raises InvalidTransform for classes of which no table can be made.
    """
    room = _own(row_classes, aggregates, room_folder)
    refuse_unfit(room.row_classes, room.aggregates)
    standing = {engine: _READERS[engine](scripts_of(room_folder, engine)) for engine in ENGINES}
    unclear = frozenset(
        word for each in standing.values() for word in each.unclear
    )  # in one engine: written in neither
    found = {engine: _differences(room, engine, replace(each, unclear=unclear)) for engine, each in standing.items()}
    every = [one for all_of in found.values() for one in all_of]
    cannot = dict.fromkeys(one for one in every if isinstance(one, str))
    later = dict.fromkeys(one.text for one in every if isinstance(one, Leftover))
    made = _made_by_both(found, {one.partition(" ")[0] for one in cannot})
    abouts = tuple(dict.fromkeys(one.about for changes in made.values() for one in changes))
    texts = {engine: _text(abouts, changes, engine) for engine, changes in made.items()} if abouts else {}
    is_first = not any(scripts_of(room_folder, engine) for engine in ENGINES)
    verb = "widen" if all(one.widens for changes in made.values() for one in changes) else "add"
    hint = _hint(room_folder.resolve().name if is_first else f"{verb} {' and '.join(abouts[:2])}")
    return NextMigration(texts, tuple(cannot), tuple(later), _new_permissions(room, room_folder), hint)


def _made_by_both(found: Mapping[Engine, Sequence[Found]], stuck: set[str]) -> Mapping[Engine, list[SchemaChange]]:
    """Return the changes without those that widen a field which one engine cannot widen."""
    made = {engine: [one for one in all_of if isinstance(one, SchemaChange)] for engine, all_of in found.items()}
    for one in (one for changes in made.values() for one in changes):
        stuck |= one.widens if one.widens & stuck else set()
    return {engine: [one for one in changes if not one.widens & stuck] for engine, changes in made.items()}


def _own(row_classes: Sequence[type], aggregates: Sequence[Aggregate], room_folder: Path) -> _RoomTables:
    def is_here(one: type) -> bool:
        room = room_of(one.__module__)
        return room is None or room.folder.resolve() == room_folder.resolve()

    return _RoomTables(tuple(filter(is_here, row_classes)), tuple(one for one in aggregates if is_here(one.of)))


def _differences(room: _RoomTables, engine: Engine, standing: Schema) -> list[Found]:
    wanted = wanted_tables(room.row_classes, room.aggregates)
    return [
        *standing.unread,
        *_missing_tables(room, standing, engine),
        *_missing_places(room.row_classes, standing, engine),
        *_missing_indexes(room.aggregates, standing, engine),
        *_compared(wanted, standing, engine),
        *_undeclared(wanted, standing),
    ]


def _missing_tables(room: _RoomTables, standing: Schema, engine: Engine) -> Iterator[Found]:
    for each in room.row_classes:
        if _lacks(standing, (name := row_table(each).name)):
            yield SchemaChange(name, row_table_text(each, engine))
    for one in room.aggregates:
        missing = [level.name for level in one.levels if _lacks(standing, level.name)]
        if len(missing) == len(one.levels):
            yield SchemaChange(one.name, migration_text(one, engine))
        elif one.name in missing:
            yield f"{one.of.__name__}: {one.name} has no table, but its rollups have: write the migration by hand"
        elif missing:
            names = [name.removeprefix(f"{one.name}_") for name in missing]
            yield SchemaChange(missing[0], added_text(one, engine, names))
        for level in one.levels:
            if level.name not in missing and _lacks(standing, level.staged):
                yield SchemaChange(level.staged, f"{staged_text(level, engine)}\n")


def _missing_places(row_classes: Iterable[type], standing: Schema, engine: Engine) -> Iterator[SchemaChange]:
    """Yield the indexes by place that the standing tables of states lack."""
    for each in row_classes:
        table = row_table(each)
        if table.key and table.name.lower() in standing.tables and _lacks_index(standing, place_index_name(each)):
            yield SchemaChange(place_index_name(each), place_index_text(each, engine))


def _missing_indexes(aggregates: Iterable[Aggregate], standing: Schema, engine: Engine) -> Iterator[SchemaChange]:
    """Yield the indexes that the standing tables of aggregates lack."""
    for one in aggregates:
        if one.name.lower() not in standing.tables:
            continue
        if _lacks_index(standing, name := f"ix_{one.name}_source"):
            yield SchemaChange(name, f"{source_index_text(one, engine)}\n")
        for level in one.levels:
            name, option = f"ix_{level.name}_{WINDOW_START}", " WITH (ONLINE = ON)" if engine == "sqlserver" else ""
            if level.keep is not None and level.name.lower() in standing.tables and _lacks_index(standing, name):
                yield SchemaChange(name, f"{retention_index_text(level, engine, option)}\n")


def _compared(wanted: Mapping[str, WantedTable], standing: Schema, engine: Engine) -> Iterator[Found]:
    for name, table in wanted.items():
        if name in standing.tables and name not in standing.unclear:
            yield from compare_table(table, standing.tables[name], engine)


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
    ordered = sorted(changes, key=lambda one: one.place)
    return "\n".join(
        [heading, *(one.text.rstrip() + "\n" for one in ordered)] if changes else [heading + _NOTHING[engine]]
    )


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
