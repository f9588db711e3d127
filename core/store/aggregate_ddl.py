"""`python -m core.store.aggregate_ddl NAME`: print the tables of an aggregate, and the index of its source, for a new
migration, in both dialects."""

import argparse
import sys
from datetime import datetime
from typing import Literal

from core.errors import HubledgerError
from core.model.aggregates import Aggregate, KeyColumn, Measure
from core.model.rows import row_table
from core.transforms.aggregates import find_aggregate

Engine = Literal["sqlite", "sqlserver"]
ENGINES: tuple[Engine, ...] = ("sqlite", "sqlserver")
BY_CODE_POINT = "COLLATE Latin1_General_100_BIN2"
_TYPES: dict[Engine, dict[object, str]] = {
    "sqlite": {str: "TEXT", int: "INTEGER", bool: "INTEGER", datetime: "TEXT"},
    "sqlserver": {int: "bigint", bool: "bit", datetime: "datetime2(7)"},
}
_IDS: dict[Engine, dict[str, str]] = {
    "sqlite": {"staging_id": "TEXT", "run_id": "TEXT", "slice": "INTEGER", "run_number": "INTEGER"},
    "sqlserver": {
        "staging_id": f"varchar(80) {BY_CODE_POINT}",
        "run_id": f"varchar(40) {BY_CODE_POINT}",
        "slice": "int",
        "run_number": "bigint",
    },
}


def tables_text(one: Aggregate, engine: Engine) -> str:
    """Return the statements that create the table of an aggregate and the table in which jobs stage its windows."""
    return f"{_windows(one, engine)}\n\n{_staged(one, engine)}\n"


def migration_text(one: Aggregate, engine: Engine) -> str:
    """Return the tables of an aggregate, and the index by which a job finds the rows of a window."""
    return f"{tables_text(one, engine)}\n{source_index_text(one, engine)}\n"


def source_index_text(one: Aggregate, engine: Engine) -> str:
    """Return the statement that creates the index of the source by partition, time and key.

    Each partition appends to its own end of it, so that an insert touches no more pages than without.
    """
    source = row_table(one.source).name
    columns = ", ".join(("stream_id", "partition_id", one.at, *(each.name for each in one.grouped_by)))
    prefix, option = (
        ("hubledger.", "\n    WITH (ONLINE = ON, DATA_COMPRESSION = PAGE)") if engine == "sqlserver" else ("", "")
    )
    return f"CREATE INDEX ix_{one.name}_source\n    ON {prefix}{source} ({columns}){option};"


def _windows(one: Aggregate, engine: Engine) -> str:
    ids = _IDS[engine]
    lines = [_column(each, engine, may_lack=False) for each in one.keys]
    lines += [_column(each, engine, may_lack=False) for each in one.measures]
    lines += [
        f"run_number {ids['run_number']} NOT NULL,  -- of the run that touched it last",
        f"slice {ids['slice']},  -- of its key; NULL: no run has touched it since there are slices",
    ]
    return _table(one.name, lines, one.key, engine)


def _staged(one: Aggregate, engine: Engine) -> str:
    ids, key = _IDS[engine], ("staging_id", "slice", *one.key)
    lines = [f"{name} {ids[name]} NOT NULL," for name in ("staging_id", "slice")]
    lines += [_column(each, engine, may_lack=False) for each in one.keys]
    lines += [f"run_id {ids['run_id']} NOT NULL,"]
    lines += [f"is_whole {_TYPES[engine][bool]} NOT NULL,  -- replaces the window, and does not add to it"]
    lines += [_column(each, engine, may_lack=each.kind != "count") for each in one.measures]
    return _table(one.staged, lines, key, engine, "IGNORE_DUP_KEY = ON")


def _column(each: KeyColumn | Measure, engine: Engine, *, may_lack: bool) -> str:
    if isinstance(each, Measure):
        kind, is_optional = _TYPES[engine][each.holds], may_lack or each.is_optional
    else:
        kind, is_optional = _key_type(each, engine), False
    return f"{each.name} {kind}{'' if is_optional else ' NOT NULL'},"


def _key_type(each: KeyColumn, engine: Engine) -> str:
    if engine == "sqlserver" and each.kind is str:
        return f"{'varchar' if each.ascii else 'nvarchar'}({each.length}) {BY_CODE_POINT}"
    return _TYPES[engine][each.kind]


def _table(name: str, lines: list[str], key: tuple[str, ...], engine: Engine, option: str = "") -> str:
    is_server = engine == "sqlserver"
    using = f" WITH ({option})" if is_server and option else ""
    body = "\n".join(f"    {line}" for line in [*lines, f"CONSTRAINT pk_{name} PRIMARY KEY ({', '.join(key)}){using}"])
    end = ");" if is_server else ") STRICT, WITHOUT ROWID;"
    return f"CREATE TABLE {'hubledger.' if is_server else ''}{name} (\n{body}\n{end}"


def main(arguments: list[str] | None = None) -> int:
    """Print the tables of an aggregate; on a fault, print one line on stderr and return 1."""
    parser = argparse.ArgumentParser(prog="python -m core.store.aggregate_ddl", description=__doc__)
    parser.add_argument("name", help="the name of an aggregate of core/transforms/aggregates")
    parser.add_argument("--engine", choices=ENGINES, help="default: both")
    given = parser.parse_args(arguments)
    try:
        one = find_aggregate(given.name)
    except HubledgerError as error:
        print(f"aggregate_ddl: {error}", file=sys.stderr)  # noqa: T201
        return 1
    for engine in (given.engine,) if given.engine else ENGINES:
        heading = "" if given.engine else f"-- {engine}\n\n"
        print(f"{heading}{migration_text(one, engine)}", end="" if given.engine else "\n")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
