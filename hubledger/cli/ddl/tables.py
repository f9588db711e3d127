"""The tables of row classes and aggregates in both dialects: types, columns, keys, levels, staging and indexes."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any, Literal

from core.errors import InvalidTransform
from core.model.aggregates import WINDOW_START, Aggregate, KeyColumn, Measure
from core.model.rows import COLUMN_TYPES, KEY_BYTES, PLACE, STATE_LINEAGE, Text, bytes_in_key, row_table, texts_of
from core.store.columns import fields_of, quoted, types_of
from core.transforms.contract import is_plain

Engine = Literal["sqlite", "sqlserver"]
ENGINES: tuple[Engine, ...] = ("sqlite", "sqlserver")
BY_CODE_POINT = "COLLATE Latin1_General_100_BIN2"
PREFIX: Mapping[Engine, str] = {"sqlite": "", "sqlserver": "hubledger."}
KINDS: Mapping[Engine, Mapping[type, str]] = {
    "sqlite": {
        str: "TEXT", int: "INTEGER", bool: "INTEGER", float: "REAL", Decimal: "TEXT", datetime: "TEXT", date: "TEXT",
    },
    "sqlserver": {
        int: "bigint", bool: "bit", float: "float", Decimal: "decimal(38, 10)", datetime: "datetime2(7)", date: "date",
    },
}  # fmt: skip


def type_of(kind: type, engine: Engine, text: Text | None = None) -> str:
    """Return the type of a column; a text without a length has no limit, and no index can hold it."""
    if engine == "sqlite" or kind is not str:
        return KINDS[engine][kind]
    letters = "varchar" if text is not None and text.ascii else "nvarchar"
    return f"{letters}({'max' if text is None else text.length}) {BY_CODE_POINT}"


def named(name: str) -> str:
    """Return the name of a column as a table declares it: in brackets where it is a word of SQL."""
    return name if is_plain(name) else quoted(name)


def listed(names: tuple[str, ...]) -> str:
    """Return the names of columns in round brackets."""
    return f"({', '.join(map(named, names))})"


_LINEAGE: Mapping[Engine, Mapping[str, str]] = {
    "sqlite": {
        "stream_id": "INTEGER", "partition_id": "TEXT", "sequence_number": "INTEGER", "ordinal": "INTEGER",
        "commit_number": "INTEGER",
    },
    "sqlserver": {
        "stream_id": "int", "partition_id": type_of(str, "sqlserver", Text(40, ascii=True)),
        "sequence_number": "bigint", "ordinal": "smallint", "commit_number": "bigint",
    },
}  # fmt: skip


def row_table_text(row_class: type, engine: Engine) -> str:
    """Return the statement that creates the table of a row class, and for a state that of its index by place.

    Raises InvalidTransform for a state whose key SQL Server cannot hold, on both engines: a room has one form.
    """
    if faults := list(_faults_of_key(row_class)):
        raise InvalidTransform(*faults)
    table = row_table(row_class)
    lineage = STATE_LINEAGE if table.key else (*PLACE, "commit_number")
    of_store = [(name, f"{_LINEAGE[engine][name]} NOT NULL") for name in lineage]
    of_class = [(named(name), column_text(row_class, name, engine)) for name in table.columns]
    columns = [*of_class, *of_store] if table.key else [*of_store, *of_class]
    width = max(len(name) for name, _ in columns)
    lines = "".join(f"    {name:<{width}} {text},\n" for name, text in columns)
    key = f"    CONSTRAINT pk_{table.name} PRIMARY KEY {listed(table.unique_by)}\n"
    index = f"\n{place_index_text(row_class, engine)}" if table.key else ""
    return f"CREATE TABLE {PREFIX[engine]}{table.name} (\n{lines}{key}{_end(engine, is_state=bool(table.key))}\n{index}"


def place_index_name(row_class: type) -> str:
    """Return the name of the index of a table of states by place."""
    return f"ix_{row_table(row_class).name}_place"


def place_index_text(row_class: type, engine: Engine) -> str:
    """Return the statement that creates the index of a table of states by the place of the event that wrote each.

    The key of the table does not have the place, so an audit and a replay would read the whole table for a range.
    """
    held = ") INCLUDE (commit_number) WITH (ONLINE = ON)" if engine == "sqlserver" else ", commit_number)"
    on = f"{PREFIX[engine]}{row_table(row_class).name} ({', '.join(PLACE[:3])}{held}"
    return f"CREATE INDEX {place_index_name(row_class)}\n    ON {on};\n"


def column_text(row_class: type, name: str, engine: Engine) -> str:
    """Return the type of the column of a field, with NOT NULL if the field is never None."""
    hint = dict(fields_of(row_class))[name]
    written = type_of(kind_of(hint), engine, texts_of(row_class).get(name))
    return written if type(None) in types_of(hint) else f"{written} NOT NULL"


def _end(engine: Engine, *, is_state: bool) -> str:
    if engine == "sqlite":
        return ") STRICT, WITHOUT ROWID;"
    return ");" if is_state else ") WITH (DATA_COMPRESSION = PAGE);"


def kind_of(hint: Any) -> type:
    """Return the type of the values of a column, beside None."""
    return next(kind for kind in COLUMN_TYPES if kind in types_of(hint))


def _faults_of_key(row_class: type) -> Iterator[str]:
    """Yield the texts of the key that have no length; then the key if it may be too long."""
    texts, hints = texts_of(row_class), dict(fields_of(row_class))
    kinds = {name: kind_of(hints[name]) for name in row_table(row_class).key}
    endless = [name for name, kind in kinds.items() if kind is str and name not in texts]
    for name in endless:
        yield (
            f"{row_class.__name__}.{name} is in the key and has no length: write {name}: Annotated[str, Text(40)], or a"
            f" different length, because a key of SQL Server has at most {KEY_BYTES} bytes"
        )
    if endless:
        return
    size = sum(bytes_in_key(kind, texts.get(name)) for name, kind in kinds.items())
    if size > KEY_BYTES:
        yield (
            f"{row_class.__name__}: its key has up to {size} bytes, and a key of SQL Server has at most {KEY_BYTES}:"
            " shorten its texts, which take two bytes a character, or one with ascii=True"
        )


_IDS: Mapping[Engine, Mapping[str, str]] = {
    "sqlite": {"staging_id": "TEXT", "run_id": "TEXT", "slice": "INTEGER", "run_number": "INTEGER"},
    "sqlserver": {
        "staging_id": f"varchar(80) {BY_CODE_POINT}",
        "run_id": f"varchar(40) {BY_CODE_POINT}",
        "slice": "int",
        "run_number": "bigint",
    },
}


def tables_text(one: Aggregate, engine: Engine) -> str:
    """Return the statements that create, for each level, its table and the table in which jobs stage its windows."""
    return "\n".join(_level(level, engine) for level in one.levels)


def added_text(one: Aggregate, engine: Engine, names: Sequence[str]) -> str:
    """Return the statements that add rollups to an aggregate with runs: their tables, filled from the finer level.

    The levels of the job come first: their row is the lock of a commit, so none comes between these statements, and
    after them an app that does not know the levels cannot commit.
    """
    rollups = {level.name.removeprefix(f"{one.name}_"): (level, finer) for finer, level in pairwise(one.levels)}
    unknown = [name for name in names if name not in rollups]
    if unknown:
        raise InvalidTransform(f"{one.name} has no rollup named {', '.join(unknown)}")
    added = [rollups[name] for name in rollups if name in names]
    made = (f"{_level(level, engine)}\n{_filled(level, finer, engine)}" for level, finer in added)
    return "\n".join([_of_job(one, engine), *made])


def _level(one: Aggregate, engine: Engine) -> str:
    text = f"{_windows(one, engine)}\n\n{staged_text(one, engine)}\n"
    if one.keep is None:
        return text
    return f"{text}\n-- Retention finds old windows by this index.\n{retention_index_text(one, engine)}\n"


def retention_index_text(one: Aggregate, engine: Engine, *, is_standing: bool = False) -> str:
    """Return the statement that creates the index of a level by the beginning of its windows."""
    option = " WITH (ONLINE = ON)" if is_standing and engine == "sqlserver" else ""
    return f"CREATE INDEX ix_{one.name}_{WINDOW_START} ON {PREFIX[engine]}{one.name} ({WINDOW_START}){option};"


def _of_job(one: Aggregate, engine: Engine) -> str:
    levels = " ".join(level.name for level in one.levels)
    return f"UPDATE {PREFIX[engine]}aggregation_cut\n   SET levels = '{levels}'\n WHERE job = '{one.name}';\n"


def _filled(one: Aggregate, finer: Aggregate, engine: Engine) -> str:
    """Return the statement that adds up the windows of the finer level, as jobs do."""
    joins = {"count": "SUM", "sum": "SUM", "least": "MIN", "most": "MAX"}
    begins, prefix = f"{_begins(one, engine)} AS begins", PREFIX[engine]
    selected, grouped, joined = begins, "begins", ""
    if engine == "sqlserver":
        selected, grouped, joined = "w.begins", "w.begins", f" CROSS APPLY (SELECT {begins}) AS w\n"
    values = [f"{joins[each.kind]}(a.{quoted(each.name)})" for each in one.measures]
    select = ",\n       ".join([*_keys(one, selected), *values])
    return (
        f"INSERT INTO {prefix}{one.name}\n       ({', '.join(map(quoted, one.columns))},\n       run_number, slice)\n"
        f"SELECT {select},\n       MAX(a.run_number), MAX(a.slice)\n  FROM {prefix}{finer.name} AS a\n{joined}"
        f" GROUP BY {', '.join(_keys(one, grouped))};\n"
    )


def _keys(one: Aggregate, begins: str) -> list[str]:
    return [begins if name == WINDOW_START else f"a.{quoted(name)}" for name in one.key]


def _begins(one: Aggregate, engine: Engine) -> str:
    """Return an expression for the beginning of the coarser window, from the seconds since the beginning of the day."""
    seconds = one.window // timedelta(seconds=1)
    if engine == "sqlserver":
        day = "CONVERT(datetime2(7), CONVERT(date, a.window_start))"
        return f"DATEADD(second, DATEDIFF(second, {day}, a.window_start) / {seconds} * {seconds}, {day})"
    day = "substr(a.window_start, 1, 10)"
    whole = f"(strftime('%s', a.window_start) - strftime('%s', {day})) / {seconds} * {seconds}"
    return f"strftime('%Y-%m-%dT%H:%M:%S.000000Z', {day}, '+' || ({whole}) || ' seconds')"


def migration_text(one: Aggregate, engine: Engine) -> str:
    """Return the tables of an aggregate, and the index by which a job finds the rows of a window."""
    return f"{tables_text(one, engine)}\n{source_index_text(one, engine)}\n"


def source_index_text(one: Aggregate, engine: Engine) -> str:
    """Return the statement that creates the index of the source by partition, time and key.

    Each partition appends to its own end of it, so that an insert touches no more pages than without.
    """
    source = row_table(one.source).name
    columns = listed(("stream_id", "partition_id", one.at, *(each.name for each in one.grouped_by)))
    option = "\n    WITH (ONLINE = ON, DATA_COMPRESSION = PAGE)" if engine == "sqlserver" else ""
    return f"CREATE INDEX ix_{one.name}_source\n    ON {PREFIX[engine]}{source} {columns}{option};"


def _windows(one: Aggregate, engine: Engine) -> str:
    ids = _IDS[engine]
    lines = [_column(each, engine) for each in one.keys]
    lines += [_column(each, engine) for each in one.measures]
    lines += [
        f"run_number {ids['run_number']} NOT NULL,  -- of the run that touched it last",
        f"slice {ids['slice']} NOT NULL,  -- of its key",
    ]
    return _table(one.name, lines, one.key, engine)


def staged_text(one: Aggregate, engine: Engine) -> str:
    """Return the statement that creates the table in which jobs stage the windows of a level."""
    ids, key = _IDS[engine], ("staging_id", "slice", *one.key)
    lines = [f"{name} {ids[name]} NOT NULL," for name in ("staging_id", "slice")]
    lines += [_column(each, engine) for each in one.keys]
    lines += [f"run_id {ids['run_id']} NOT NULL,"]
    lines += [f"is_whole {KINDS[engine][bool]} NOT NULL,  -- replaces the window, and does not add to it"]
    lines += [_column(each, engine, may_lack=each.kind != "count") for each in one.measures]
    return _table(one.staged, lines, key, engine, "IGNORE_DUP_KEY = ON")


def _column(each: KeyColumn | Measure, engine: Engine, *, may_lack: bool = False) -> str:
    if isinstance(each, KeyColumn):
        return f"{named(each.name)} {type_of(each.kind, engine, Text(each.length, each.ascii))} NOT NULL,"
    return f"{named(each.name)} {type_of(each.holds, engine)}{'' if may_lack or each.is_optional else ' NOT NULL'},"


def _table(name: str, lines: list[str], key: tuple[str, ...], engine: Engine, option: str = "") -> str:
    is_server = engine == "sqlserver"
    using = f" WITH ({option})" if is_server and option else ""
    body = "\n".join(f"    {line}" for line in [*lines, f"CONSTRAINT pk_{name} PRIMARY KEY {listed(key)}{using}"])
    end = ");" if is_server else ") STRICT, WITHOUT ROWID;"
    return f"CREATE TABLE {PREFIX[engine]}{name} (\n{body}\n{end}"
