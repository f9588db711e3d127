"""The statements about row classes for SQL Server, built from the classes' fields: this engine's only SQL in Python.

The rows of a class come in one JSON variable, `@rows_of_<table>`: arrays of position and columns.
"""

import re
import sys
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

from core.errors import InvalidTransform
from core.model.aggregates import aggregate_table
from core.model.rows import LINEAGE, OURS, STATE_LINEAGE, RowTable, row_table
from core.store.columns import (
    Values,
    ValuesOf,
    compiled_values,
    fields_of,
    is_float,
    quoted,
    types_of,
)
from core.store.dialects import BY_CODE_POINT, server_part, server_text
from core.store.queries import ROWS, Param, Query
from core.store.row_keys import keyed
from core.store.rows import (
    ASCII_TEXT,
    KEY_TEXT,
    RETRACTED,
    STANDING,
    common_body,
    is_older,
    key_text,
    of_partition,
    ordinal_text,
)
from core.store.script import OfRows
from core.store.sqlserver.json import server_instant_texts
from core.store.sqlserver.windows import WINDOW_TEXTS

_TYPES: dict[type, str] = {
    str: "nvarchar(max)",
    int: "bigint",
    bool: "bit",
    float: "float",
    Decimal: "decimal(38, 10)",
    datetime: "datetime2(7)",
    date: "date",
}
ROWS_OF = "rows_of_"  # and the name of the table
TAKEN = f"{OURS}taken"  # the number of the event whose state a replay takes back
_DECLARED = {  # the types of all parameters, in the order in which a batch declares them
    "stream_id": "int",
    "partition_id": "varchar(8000)",
    "sequence_number": "bigint",
    "first_sequence_number": "bigint",
    "last_sequence_number": "bigint",
    "commit_number": "bigint",
    "sequence_numbers": "nvarchar(max)",
    "keys": "nvarchar(max)",
    "subjects": "nvarchar(max)",
    "staging_id": "varchar(8000)",
    "first_slice": "int",
    "last_slice": "int",
    "run_number": "bigint",
    "key_value": "nvarchar(4000)",
    "since_at": "datetime2(7)",
    "until_at": "datetime2(7)",
    "most": "int",
}


@cache
def rows_query(of: OfRows) -> Query:
    """Return the statement of a verb, with its parameters."""
    text = _text(of)
    used = set(re.findall(r"@(\w+)", text))
    params = [Param(name, kind) for name, kind in _DECLARED.items() if name in used]
    params += [Param(name, ROWS) for name in used if name.startswith(ROWS_OF)]
    return Query(str(of), "", tuple(params), text)


def _text(of: OfRows) -> str:
    if (body := common_body(of, _document)) is not None:
        return server_text(body, _DECLARED)
    if of.verb in WINDOW_TEXTS:
        return WINDOW_TEXTS[of.verb](aggregate_table(of.row_class))
    return _TEXTS[of.verb](of.row_class)


@cache
def rows_values(row_class: type) -> ValuesOf:
    """Return a function from placed rows to the values to send: for states, only the newest of each key.

    ValueError for a float that the server does not have: its `float` begins with the smallest normal number.
    """
    lineage = _position(row_table(row_class))
    compiled = compiled_values(row_class, lineage, server_instant_texts)
    floats = [place for place, (_, hint) in enumerate(fields_of(row_class), len(lineage)) if is_float(hint)]

    def normal(*given: Any) -> list[Values]:
        values = compiled(*given)
        for number in (row[place] for row in values for place in floats):
            if number and isinstance(number, float) and abs(number) < sys.float_info.min:
                raise ValueError(f"{number} is nearer to zero than a float of SQL Server can be")
        return values

    return keyed(row_class, len(lineage), normal if floats else compiled)


def rows_variable(table: RowTable) -> str:
    """Return the name of the variable that holds a table's rows; no parameter has this name."""
    return f"{ROWS_OF}{table.name}"


def _position(table: RowTable) -> tuple[str, ...]:
    return ("sequence_number",) if table.key and not table.newest_by else ("sequence_number", "ordinal")


def _append(row_class: type) -> str:
    table = row_table(row_class)
    columns = ", ".join((*LINEAGE, *map(quoted, table.columns)))
    given = ", ".join(f"r.{quoted(name)}" for name in table.columns)
    return (
        f"INSERT INTO hubledger.{table.name} ({columns})\n"
        f"SELECT @stream_id, @partition_id, @commit_number, r.sequence_number, r.ordinal, {given}\n"
        f"  FROM {_open_json(row_class)};"
    )


def _set(row_class: type) -> str:
    """Update the states that exist and are older, and insert the others: MERGE has known races."""
    return _upsert(row_class, _LINEAGE, is_older(row_class, "t", "@", "r"))


def _replace_states(row_class: type) -> str:
    if not row_table(row_class).newest_by:
        return _upsert(row_class, "", f"{_OF_PARTITION} AND t.sequence_number <= r.sequence_number")
    takes = f"{_OF_PARTITION} AND t.sequence_number = r.{TAKEN}"
    return _upsert(row_class, _LINEAGE, f"{takes} OR {is_older(row_class, 't', '@', 'r')}")


def _retract_states(row_class: type) -> str:
    table, gives_way = row_table(row_class), "t.sequence_number <= r.sequence_number"
    if table.newest_by:
        gives_way = f"(t.sequence_number = r.{TAKEN} OR {is_older(row_class, 't', '@', 'r')})"
    return (
        f"INSERT INTO hubledger.retracted_row ({RETRACTED})\n"
        f"SELECT t.stream_id, t.partition_id, @commit_number, '{table.name}', t.sequence_number,"
        f" {ordinal_text(row_class)}, t.commit_number, {_document(row_class)}\n"
        f"  FROM {_joined(row_class)}\n WHERE {_OF_PARTITION} AND {gives_way}\n{_BY_KEY};"
    )


# A small table of states would be hashed and scanned, and a scan waits for rows that other partitions lock. With this,
# each row of the JSON seeks its key.
_BY_KEY = "OPTION (LOOP JOIN, FORCE ORDER)"
_OF_PARTITION = server_part(of_partition("t"))
_LINEAGE = "stream_id = @stream_id, partition_id = @partition_id, "


def _upsert(row_class: type, lineage: str, when: str) -> str:
    return f"{_update(row_class, lineage)}\n WHERE {when}\n{_BY_KEY};\n{_insert_missing(row_class)}"


def _update(row_class: type, lineage: str) -> str:
    table = row_table(row_class)
    columns = "".join(f"{quoted(name)} = r.{quoted(name)}, " for name in table.columns if name not in table.key)
    return (
        f"UPDATE t SET {columns}{lineage}sequence_number = r.sequence_number, commit_number = @commit_number\n"
        f"  FROM {_joined(row_class)}"
    )


def _insert_missing(row_class: type) -> str:
    table = row_table(row_class)
    given = ", ".join(f"r.{quoted(name)}" for name in table.columns)
    standing = f"SELECT 1 FROM hubledger.{table.name} AS t WHERE {_matches(row_class, 'r')}"
    return (
        f"INSERT INTO hubledger.{table.name} ({', '.join(map(quoted, table.columns))}, {', '.join(STATE_LINEAGE)})\n"
        f"SELECT {given}, @stream_id, @partition_id, r.sequence_number, @commit_number\n"
        f"  FROM {_open_json(row_class)}\n WHERE NOT EXISTS ({standing})\n{_BY_KEY};"
    )


def _select_states(row_class: type, before: str = "") -> str:
    """Select states by their keys; `@keys` is a JSON array of arrays of key values."""
    table = row_table(row_class)
    columns = before + ", ".join(f"t.{quoted(name)}" for name in table.columns)
    typed = [f"{quoted(name)} {_type(row_class, name)} '$[{at}]'" for at, name in enumerate(table.key)]
    matches = _matches(row_class, "k")
    for at, name in enumerate(table.key):
        if _type(row_class, name) == ASCII_TEXT:
            sent = quoted(f"{at}")  # no field has such a name
            typed.append(f"{sent} {KEY_TEXT} '$[{at}]'")
            matches += f" AND k.{sent} = k.{quoted(name)} {BY_CODE_POINT}"
    return (
        f"SELECT {columns}\n  FROM OPENJSON(@keys) WITH ({', '.join(typed)}) AS k\n"
        f" INNER JOIN hubledger.{table.name} AS t ON {matches}\n{_BY_KEY};"
    )


def _open_json(row_class: type) -> str:
    """Return the expression that reads the rows of a class from their variable: the position, then the columns."""
    table = row_table(row_class)
    number = TAKEN if table.key else "ordinal"
    types = [(name, "bigint") for name in ("sequence_number", number)[: len(_position(table))]]
    types += [(quoted(name), _type(row_class, name)) for name in table.columns]
    columns = ", ".join(f"{name} {kind} '$[{place}]'" for place, (name, kind) in enumerate(types))
    return f"OPENJSON(@{rows_variable(table)}) WITH ({columns}) AS r"


def _joined(row_class: type) -> str:
    """Return the rows of a class, each with the state that has its key."""
    return (
        f"{_open_json(row_class)} INNER JOIN hubledger.{row_table(row_class).name} AS t ON {_matches(row_class, 'r')}"
    )


def _matches(row_class: type, source: str) -> str:
    """Return the condition that the keys match. Texts from JSON have the database's collation, so they are collated by
    code point, as the columns of ids are."""
    hints = dict(fields_of(row_class))
    return " AND ".join(
        f"t.{quoted(name)} = {source}.{quoted(name)}{f' {BY_CODE_POINT}' if str in types_of(hints[name]) else ''}"
        for name in row_table(row_class).key
    )


def _type(row_class: type, name: str) -> str:
    hint = dict(fields_of(row_class))[name]
    for kind in types_of(hint):
        if kind in _TYPES:
            return key_text(row_class, name) if name in row_table(row_class).key and kind is str else _TYPES[kind]
    raise InvalidTransform(f"{hint} is not a type that a column can hold: use one of {', '.join(map(str, _TYPES))}")


def _document(row_class: type) -> str:
    columns = ((f"t.{quoted(name)}", quoted(name), hint) for name, hint in fields_of(row_class))
    members = ", ".join(f"{_json_value(column, hint)} AS {name}" for column, name, hint in columns)
    return f"(SELECT {members} FOR JSON PATH, INCLUDE_NULL_VALUES, WITHOUT_ARRAY_WRAPPER)"


def _json_value(column: str, hint: Any) -> str:
    """Return the JSON value of a column. Instants get the T and the Z of RFC 3339, which a cast to text leaves out.

    FOR JSON writes 16 digits of a float, and two floats may share them; style 3 of CONVERT writes 17, which are exact.
    """
    types = types_of(hint)
    if is_float(hint):
        return f"CONVERT(varchar(40), {column}, 3)"
    if datetime in types:
        return f"REPLACE(CAST({column} AS varchar(33)), ' ', 'T') + 'Z'"
    return f"CAST({column} AS varchar(10))" if date in types else column


_TEXTS: Mapping[str, Callable[[type], str]] = {
    "append": _append,
    "set": _set,
    "retract_states": _retract_states,
    "replace_states": _replace_states,
    "select_states": _select_states,
    "select_standing": lambda row_class: _select_states(row_class, STANDING),
}
