"""The tables that row classes and aggregates want, in both dialects: types, columns, keys, levels and indexes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Literal

from core.errors import InvalidTransform
from core.model.aggregates import WINDOW_START, Aggregate
from core.model.rows import COLUMN_TYPES, KEY_BYTES, PLACE, Text, bytes_in_key, row_table, texts_of
from core.store.columns import fields_of, quoted, types_of
from core.transforms.contract import is_plain

Engine = Literal["sqlite", "sqlserver"]
Texts = Mapping[Engine, str]
ENGINES: tuple[Engine, ...] = ("sqlite", "sqlserver")
BY_CODE_POINT = "COLLATE Latin1_General_100_BIN2"
PREFIX: Texts = {"sqlite": "", "sqlserver": "hubledger."}
_KINDS: Mapping[Engine, Mapping[type, str]] = {
    "sqlite": {
        str: "TEXT", int: "INTEGER", bool: "INTEGER", float: "REAL", Decimal: "TEXT", datetime: "TEXT", date: "TEXT",
    },
    "sqlserver": {
        int: "bigint", bool: "bit", float: "float", Decimal: "decimal(38, 10)", datetime: "datetime2(6)", date: "date",
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class WantedColumn:
    """A column: the type of its values beside None, and the length of a text. A text without one has no limit, and no
    index can hold it. `ours`: the store or a job fills it. `narrow`: its type in T-SQL where that is a shorter one.
    """

    name: str
    kind: type
    is_required: bool = True
    text: Text | None = None
    ours: bool = False
    narrow: str = ""

    def type(self, engine: Engine) -> str:
        """Return the type of the column as a table declares it."""
        if engine == "sqlite" or self.kind is not str:
            return (engine == "sqlserver" and self.narrow) or _KINDS[engine][self.kind]
        letters = "varchar" if self.text is not None and self.text.ascii else "nvarchar"
        return f"{letters}({'max' if self.text is None else self.text.length}) {BY_CODE_POINT}"


_OURS = {
    each.name: replace(each, ours=True)
    for each in (
        WantedColumn("stream_id", int, narrow="int"), WantedColumn("partition_id", str, text=Text(40, ascii=True)),
        WantedColumn("sequence_number", int), WantedColumn("ordinal", int, narrow="smallint"),
        WantedColumn("commit_number", int), WantedColumn("staging_id", str, text=Text(80, ascii=True)),
        WantedColumn("slice", int, narrow="int"), WantedColumn("run_id", str, text=Text(40, ascii=True)),
        WantedColumn("run_number", int), WantedColumn("is_whole", bool),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class WantedTable:
    """A table of the class `who`, with the options of the table and of its key in T-SQL, and its indexes by name.

    `of_rows`: a table of rows can get columns. The windows of an aggregate lack the values of a new one.
    """

    name: str
    who: str
    columns: tuple[WantedColumn, ...]
    key: tuple[str, ...]
    of_rows: bool = False
    option: str = ""
    key_option: str = ""
    indexes: Mapping[str, Texts] = field(default_factory=dict)

    def text(self, engine: Engine) -> str:
        """Return the statements that create the table and its indexes."""
        width, is_server = max(len(named(each.name)) for each in self.columns), engine == "sqlserver"
        lines = [
            f"    {named(each.name):<{width}} {each.type(engine)}{' NOT NULL' if each.is_required else ''},\n"
            for each in self.columns
        ]
        key = f"    CONSTRAINT pk_{self.name} PRIMARY KEY {listed(self.key)}{self.key_option if is_server else ''}\n"
        end = f"){self.option};" if is_server else ") STRICT, WITHOUT ROWID;"
        made = f"CREATE TABLE {PREFIX[engine]}{self.name} (\n{''.join(lines)}{key}{end}\n"
        return "\n".join([made, *(f"{texts[engine]}\n" for texts in self.indexes.values())])


def named(name: str) -> str:
    """Return the name of a column as a table declares it: in brackets where it is a word of SQL."""
    return name if is_plain(name) else quoted(name)


def listed(names: Sequence[str]) -> str:
    """Return the names of columns in round brackets."""
    return f"({', '.join(map(named, names))})"


def table_of(row_class: type) -> WantedTable:
    """Return the table of a row class.

    Raises InvalidTransform for a state whose key SQL Server cannot hold, on both engines: a room has one form.
    """
    table, texts = row_table(row_class), texts_of(row_class)
    own = {
        name: WantedColumn(name, kind, type(None) not in types_of(hint), texts.get(name))
        for name, hint in fields_of(row_class)
        for kind in [next(each for each in COLUMN_TYPES if each in types_of(hint))]
    }
    who, key = row_class.__name__, [own[name] for name in table.key]
    if endless := [each.name for each in key if each.kind is str and each.text is None]:
        raise InvalidTransform(
            *(
                f"{who}.{name} is in the key and has no length: write {name}: Annotated[str, Text(40)], or a"
                f" different length, because a key of SQL Server has at most {KEY_BYTES} bytes"
                for name in endless
            )
        )
    if (size := sum(bytes_in_key(each.kind, each.text) for each in key)) > KEY_BYTES:
        raise InvalidTransform(
            f"{who}: its key has up to {size} bytes, and a key of SQL Server has at most {KEY_BYTES}:"
            " shorten its texts, which take two bytes a character, or one with ascii=True"
        )
    if not table.key:
        columns = (*(_OURS[name] for name in (*PLACE, "commit_number")), *own.values())
        return WantedTable(table.name, who, columns, PLACE, True, " WITH (DATA_COMPRESSION = PAGE)")
    # An audit and a replay read a range of places, and the key of a state does not have its place.
    index, place = f"ix_{table.name}_place", ", ".join(PLACE[:3])
    texts_of_index: Texts = {
        "sqlite": f"CREATE INDEX {index}\n    ON {table.name} ({place}, commit_number);",
        "sqlserver": f"CREATE INDEX {index}\n    ON hubledger.{table.name} ({place}) INCLUDE (commit_number)"
        " WITH (ONLINE = ON);",
    }
    columns = (*own.values(), *(_OURS[name] for name in table.lineage))
    return WantedTable(table.name, who, columns, table.key, True, indexes={index: texts_of_index})


def tables_of_level(one: Aggregate) -> tuple[WantedTable, WantedTable]:
    """Return the table of a level, and the one in which jobs stage its windows."""
    who = one.of.__name__
    keys = [WantedColumn(each.name, each.kind, text=Text(each.length, each.ascii)) for each in one.keys]
    values = [WantedColumn(each.name, each.holds, not each.is_optional) for each in one.measures]
    staged = [WantedColumn(each.name, each.holds, each.kind == "count") for each in one.measures]
    columns = (*keys, *values, _OURS["run_number"], _OURS["slice"])
    place = (_OURS["staging_id"], _OURS["slice"])
    indexes: dict[str, Texts] = {}
    if one.keep is not None:  # retention finds old windows by it
        index = f"ix_{one.name}_{WINDOW_START}"
        made, on = f"CREATE INDEX {index} ON ", f"{one.name} ({WINDOW_START})"
        indexes[index] = {"sqlite": f"{made}{on};", "sqlserver": f"{made}hubledger.{on} WITH (ONLINE = ON);"}
    return (
        WantedTable(one.name, who, columns, one.key, indexes=indexes),
        WantedTable(
            one.staged,
            who,
            (*place, *keys, _OURS["run_id"], _OURS["is_whole"], *staged),
            (*(each.name for each in place), *one.key),
            key_option=" WITH (IGNORE_DUP_KEY = ON)",
        ),
    )


def tables_text(one: Aggregate, engine: Engine) -> str:
    """Return the statements that create, for each level, its table and the table in which jobs stage its windows."""
    return "\n".join(table.text(engine) for level in one.levels for table in tables_of_level(level))


def migration_text(one: Aggregate, engine: Engine) -> str:
    """Return the tables of an aggregate, and the index by which a job finds the rows of a window."""
    return f"{tables_text(one, engine)}\n{source_index_text(one, engine)}\n"


def source_index_text(one: Aggregate, engine: Engine) -> str:
    """Return the statement that creates the index of the source by partition, time and key.

    Each partition appends to its own end of it, so that an insert touches no more pages than without.
    """
    columns = listed(("stream_id", "partition_id", one.at, *(each.name for each in one.grouped_by)))
    option = "\n    WITH (ONLINE = ON, DATA_COMPRESSION = PAGE)" if engine == "sqlserver" else ""
    on = f"{PREFIX[engine]}{row_table(one.source).name} {columns}"
    return f"CREATE INDEX ix_{one.name}_source\n    ON {on}{option};"


def added_text(one: Aggregate, engine: Engine, names: Sequence[str]) -> str:
    """Return the statements that add rollups to an aggregate with runs: their tables, filled from the finer level.

    The levels of the job come first: their row is the lock of a commit, so none comes between these statements, and
    after them an app that does not know the levels cannot commit.
    """
    rollups = {level.name.removeprefix(f"{one.name}_"): (level, finer) for finer, level in pairwise(one.levels)}
    if unknown := [name for name in names if name not in rollups]:
        raise InvalidTransform(f"{one.name} has no rollup named {', '.join(unknown)}")
    levels = " ".join(level.name for level in one.levels)
    parts = [f"UPDATE {PREFIX[engine]}aggregation_cut\n   SET levels = '{levels}'\n WHERE job = '{one.name}';\n"]
    for level, finer in (pair for name, pair in rollups.items() if name in names):
        parts += [*(table.text(engine) for table in tables_of_level(level)), _filled(level, finer, engine)]
    return "\n".join(parts)


def _filled(one: Aggregate, finer: Aggregate, engine: Engine) -> str:
    """Return the statement that adds up the windows of the finer level, as jobs do."""
    joins = {"count": "SUM", "sum": "SUM", "least": "MIN", "most": "MAX"}
    seconds, prefix = one.window // timedelta(seconds=1), PREFIX[engine]
    # The beginning of the coarser window, from the seconds since the beginning of the day
    if engine == "sqlserver":
        day = "CONVERT(datetime2(6), CONVERT(date, a.window_start))"
        begins = f"DATEADD(second, DATEDIFF(second, {day}, a.window_start) / {seconds} * {seconds}, {day}) AS begins"
        selected, grouped, joined = "w.begins", "w.begins", f" CROSS APPLY (SELECT {begins}) AS w\n"
    else:
        day = "substr(a.window_start, 1, 10)"
        whole = f"(strftime('%s', a.window_start) - strftime('%s', {day})) / {seconds} * {seconds}"
        begins = f"strftime('%Y-%m-%dT%H:%M:%S.000000Z', {day}, '+' || ({whole}) || ' seconds')"
        selected, grouped, joined = f"{begins} AS begins", "begins", ""
    keys = [None if name == WINDOW_START else f"a.{quoted(name)}" for name in one.key]
    values = [f"{joins[each.kind]}(a.{quoted(each.name)})" for each in one.measures]
    select = ",\n       ".join([*(name or selected for name in keys), *values])
    return (
        f"INSERT INTO {prefix}{one.name}\n       ({', '.join(map(quoted, one.columns))},\n       run_number, slice)\n"
        f"SELECT {select},\n       MAX(a.run_number), MAX(a.slice)\n  FROM {prefix}{finer.name} AS a\n{joined}"
        f" GROUP BY {', '.join(name or grouped for name in keys)};\n"
    )
