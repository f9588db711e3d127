"""The statements about row classes and aggregates for SQL Server, and the JSON that carries their values.

The rows of a class come in one JSON variable, `@rows_of_<table>`: arrays of position and columns.
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import orjson

from core.errors import DataRefused, InvalidTransform
from core.model.aggregates import Aggregate, aggregate_table
from core.model.rows import LINEAGE, OURS, STATE_LINEAGE, RowTable, row_table
from core.store.columns import (
    Values,
    ValuesOf,
    compiled_values,
    day_text,
    fields_of,
    instant_text,
    instant_texts,
    is_float,
    quoted,
    types_of,
)
from core.store.queries import ASCII_TEXT, BY_CODE_POINT, KEY_TEXT, ROWS, Param, Query, server_part, server_text
from core.store.row_statements import (
    RETRACTED,
    STANDING,
    common_body,
    is_older,
    key_type,
    keyed,
    of_partition,
    ordinal_text,
)
from core.store.script import OfRows, RowVerb
from core.store.window_statements import (
    SEPARATOR,
    column_list,
    keys_match,
    merged,
    of_facts,
    of_portion,
    others_of_row,
    overflows,
    texts_of_row,
)

PLACES = 10  # decimal places that OPENJSON is asked for


def server_instant_text(moment: datetime) -> str:
    """Return an instant for T-SQL, whose datetime2 has no zone: it is UTC by convention, and the Z is left out."""
    return instant_text(moment)[:-1]


def server_instant_texts(moments: Sequence[datetime]) -> list[str]:
    """Return a column of instants for T-SQL."""
    return [text[:-1] for text in instant_texts(moments)]


def without_zone(value: Any) -> Any:
    """Return an instant's text without its Z, or any other value unchanged."""
    return value.removesuffix("Z") if isinstance(value, str) else value


def rows_json(rows: Sequence[Sequence[Any]]) -> str:
    """Return rows as a JSON array of arrays. Raises DataRefused for a value that JSON cannot hold."""
    try:
        return orjson.dumps(rows, default=_json_form, option=orjson.OPT_PASSTHROUGH_DATETIME).decode()
    except (orjson.JSONEncodeError, ValueError) as error:
        raise DataRefused(f"the rows cannot be written as JSON: {error.__cause__ or error}") from error


def many_json(many: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return the further parameters of a statement of many as a JSON array of arrays, in the order of the columns."""

    def sent(name: str, value: Any) -> Any:
        if isinstance(value, bytes):
            return value.hex()
        return without_zone(value) if name.endswith("_at") else value

    return rows_json([[sent(name, each[name]) for name in columns] for each in many])


def _json_form(value: object) -> str:
    """Return a value in the form that T-SQL reads. Raises TypeError for a value of any other type, and ValueError for a
    number that the server would round."""
    if isinstance(value, Decimal):
        text = f"{value:f}"
        if not value.is_finite() or len(text.partition(".")[2].rstrip("0")) > PLACES:
            raise ValueError(f"{text} is not a number with at most {PLACES} decimal places")
        return text
    if isinstance(value, datetime):
        return server_instant_text(value)
    if isinstance(value, date):
        return day_text(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


# Each staged window seeks its key: without the hint, the table of windows could be hashed, and so be read whole.
_BY_STAGED = "OPTION (LOOP JOIN, FORCE ORDER)"
NEXT = ",\n       "
_PORTION = server_part(of_portion("g"))


def _find_overflow(one: Aggregate) -> str:
    """Find a staged part that its window cannot take, by one seek for each part."""
    found = overflows(one)
    named = " ".join(f"WHEN {condition} THEN '{name}'" for name, condition in found.items())
    return (
        f"SELECT TOP (1) CASE {named} END AS measure,\n"
        "       CONVERT(varchar(33), g.window_start, 126) AS window_start\n"
        f"  FROM hubledger.{one.staged} AS g\n INNER JOIN hubledger.{one.name} AS a ON {keys_match(one, 'a', 'g')}\n"
        f" WHERE g.staging_id = @staging_id AND g.is_whole = 0\n   AND ({' OR '.join(found.values())})\n{_BY_STAGED};"
    )


def _verify_slices(one: Aggregate) -> str:
    columns = [f"REPLACE(g.{quoted(name)}, NCHAR(10), N' ')" for name in texts_of_row(one)]
    instant = "STUFF(LEFT(CAST({} AS varchar(33)), 26), 11, 1, 'T') + 'Z'"  # six digits, a T and a Z, or NULL
    for name in others_of_row(one):
        columns.append((instant if name in one.instants else "{}").format(f"g.{quoted(name)}"))
    text = f"CONCAT(N'', {f', {chr(39)}{SEPARATOR}{chr(39)}, '.join(columns)})"  # it takes NULL for an empty text
    row = f"SUBSTRING(HASHBYTES('SHA2_256', {text}), 1, 4)"
    return (
        "UPDATE d\n   SET is_verified = 1\n"
        f"  FROM hubledger.staged_slice AS d\n"
        f" INNER JOIN (SELECT g.slice, COUNT_BIG(*) AS windows, SUM(COUNT_BIG(*)) OVER () AS portion_windows,\n"
        f"                    SUM(CONVERT(bigint, {row})) AS rows_hash\n"
        f"               FROM hubledger.{one.staged} AS g\n              WHERE {_PORTION}\n"
        "              GROUP BY g.slice) AS f\n"
        "    ON f.slice = d.slice AND f.windows = d.windows AND f.rows_hash = d.rows_hash\n"
        f" WHERE d.staging_id = @staging_id AND d.level = '{one.name}'"
        f" AND f.portion_windows = {server_part(of_facts(one))};"
    )


def _replace_windows(one: Aggregate) -> str:
    return (
        f"DELETE FROM a\n  FROM hubledger.{one.staged} AS g\n"
        f" INNER JOIN hubledger.{one.name} AS a ON {keys_match(one, 'a', 'g')}\n"
        f" WHERE {_PORTION} AND g.is_whole = 1\n{_BY_STAGED};"
    )


def _add_windows(one: Aggregate) -> str:
    """Update the windows that exist, and insert the others: MERGE has known races."""
    values = [
        f"{quoted(each.name)} = {merged(each, f'a.{quoted(each.name)}', f'g.{quoted(each.name)}')}"
        for each in one.measures
    ]
    staged, match = f"{_PORTION} AND g.{quoted(one.count)} > 0", keys_match(one, "a", "g")
    return (
        f"UPDATE a\n   SET {NEXT.join([*values, 'run_number = @run_number', 'slice = g.slice'])}\n"
        f"  FROM hubledger.{one.staged} AS g\n INNER JOIN hubledger.{one.name} AS a ON {match}\n"
        f" WHERE {staged}\n{_BY_STAGED};\n"
        f"INSERT INTO hubledger.{one.name} ({column_list(one)}, run_number, slice)\n"
        f"SELECT {column_list(one, 'g.')}, @run_number, g.slice\n  FROM hubledger.{one.staged} AS g\n WHERE {staged}\n"
        f"       AND NOT EXISTS (SELECT 1 FROM hubledger.{one.name} AS a WHERE {match})\n{_BY_STAGED};"
    )


WINDOW_TEXTS: Mapping[RowVerb, Callable[[Aggregate], str]] = {
    "find_overflow": _find_overflow,
    "verify_slices": _verify_slices,
    "replace_windows": _replace_windows,
    "add_windows": _add_windows,
}

_TYPES: dict[type, str] = {
    str: "nvarchar(max)",
    int: "bigint",
    bool: "bit",
    float: "float",
    Decimal: "decimal(38, 10)",
    datetime: "datetime2(6)",
    date: "date",
}
ROWS_OF = "rows_of_"  # the variable of a table's rows, with its name; no parameter is named so
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
    "since_at": "datetime2(6)",
    "until_at": "datetime2(6)",
    "most": "int",
}


@cache
def rows_query(of: OfRows) -> Query:
    """Return the statement of a verb, with its parameters."""
    if (body := common_body(of, _document)) is not None:
        text = server_text(body, _DECLARED)
    elif of.verb in WINDOW_TEXTS:
        text = WINDOW_TEXTS[of.verb](aggregate_table(of.row_class))
    else:
        text = _TEXTS[of.verb](of.row_class)
    used = set(re.findall(r"@(\w+)", text))
    params = [Param(name, kind) for name, kind in _DECLARED.items() if name in used]
    params += [Param(name, ROWS) for name in used if name.startswith(ROWS_OF)]
    return Query(str(of), "", tuple(params), text)


@cache
def rows_values(row_class: type) -> ValuesOf:
    """Return a function from placed rows to the values to send: for states, only the newest of each key.

    ValueError for a float that the server does not have: its `float` begins with the smallest normal number.
    """
    lineage = _position_columns(row_table(row_class))
    compiled = compiled_values(row_class, lineage, server_instant_texts)
    floats = [place for place, (_, hint) in enumerate(fields_of(row_class), len(lineage)) if is_float(hint)]

    def normal(*given: Any) -> list[Values]:
        values = compiled(*given)
        for number in (row[place] for row in values for place in floats):
            if number and isinstance(number, float) and abs(number) < sys.float_info.min:
                raise ValueError(f"{number} is nearer to zero than a float of SQL Server can be")
        return values

    return keyed(row_class, len(lineage), normal if floats else compiled)


def _position_columns(table: RowTable) -> tuple[str, ...]:
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
        f"  FROM {_with_standing(row_class)}\n WHERE {_OF_PARTITION} AND {gives_way}\n{_BY_KEY};"
    )


# A small table of states would be hashed and scanned, and a scan waits for rows that other partitions lock. With this,
# each row of the JSON seeks its key.
_BY_KEY = "OPTION (LOOP JOIN, FORCE ORDER)"
_OF_PARTITION = server_part(of_partition("t"))
_LINEAGE = "stream_id = @stream_id, partition_id = @partition_id, "


def _upsert(row_class: type, lineage: str, when: str) -> str:
    """Update the states that exist, and insert the others: MERGE has known races."""
    table = row_table(row_class)
    columns = "".join(f"{quoted(name)} = r.{quoted(name)}, " for name in table.columns if name not in table.key)
    given = ", ".join(f"r.{quoted(name)}" for name in table.columns)
    standing = f"SELECT 1 FROM hubledger.{table.name} AS t WHERE {_same_key(row_class, 'r')}"
    return (
        f"UPDATE t SET {columns}{lineage}sequence_number = r.sequence_number, commit_number = @commit_number\n"
        f"  FROM {_with_standing(row_class)}\n WHERE {when}\n{_BY_KEY};\n"
        f"INSERT INTO hubledger.{table.name} ({', '.join(map(quoted, table.columns))}, {', '.join(STATE_LINEAGE)})\n"
        f"SELECT {given}, @stream_id, @partition_id, r.sequence_number, @commit_number\n"
        f"  FROM {_open_json(row_class)}\n WHERE NOT EXISTS ({standing})\n{_BY_KEY};"
    )


def _select_states(row_class: type, before: str = "") -> str:
    """Select states by their keys. `@keys` is a JSON array of arrays of key values."""
    table = row_table(row_class)
    columns = before + ", ".join(f"t.{quoted(name)}" for name in table.columns)
    typed = [f"{quoted(name)} {_column_type(row_class, name)} '$[{at}]'" for at, name in enumerate(table.key)]
    matches = _same_key(row_class, "k")
    for at, name in enumerate(table.key):
        if _column_type(row_class, name) == ASCII_TEXT:
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
    types = [(name, "bigint") for name in ("sequence_number", number)[: len(_position_columns(table))]]
    types += [(quoted(name), _column_type(row_class, name)) for name in table.columns]
    columns = ", ".join(f"{name} {kind} '$[{place}]'" for place, (name, kind) in enumerate(types))
    return f"OPENJSON(@{ROWS_OF}{table.name}) WITH ({columns}) AS r"


def _with_standing(row_class: type) -> str:
    """Return the rows of a class, each with the state that has its key."""
    return (
        f"{_open_json(row_class)} INNER JOIN hubledger.{row_table(row_class).name} AS t ON {_same_key(row_class, 'r')}"
    )


def _same_key(row_class: type, source: str) -> str:
    """Return the condition that the keys match. Texts from JSON have the database's collation, so they are collated by
    code point, as the columns of ids are."""
    hints = dict(fields_of(row_class))
    return " AND ".join(
        f"t.{quoted(name)} = {source}.{quoted(name)}{f' {BY_CODE_POINT}' if str in types_of(hints[name]) else ''}"
        for name in row_table(row_class).key
    )


def _column_type(row_class: type, name: str) -> str:
    hint = dict(fields_of(row_class))[name]
    for kind in types_of(hint):
        if kind in _TYPES:
            return key_type(row_class, name) if name in row_table(row_class).key and kind is str else _TYPES[kind]
    raise InvalidTransform(f"{hint} is not a type that a column can hold: use one of {', '.join(map(str, _TYPES))}")


def _document(row_class: type) -> str:
    columns = ((f"t.{quoted(name)}", quoted(name), hint) for name, hint in fields_of(row_class))
    members = ", ".join(f"{_json_value(column, hint)} AS {name}" for column, name, hint in columns)
    return f"(SELECT {members} FOR JSON PATH, INCLUDE_NULL_VALUES, WITHOUT_ARRAY_WRAPPER)"


def _json_value(column: str, hint: Any) -> str:
    """Return the JSON value of a column. Instants get the T and the Z of RFC 3339, which a cast to text leaves out.

    FOR JSON writes 16 digits of a float, and two floats may share them. Style 3 of CONVERT writes 17, which are exact.
    """
    types = types_of(hint)
    if is_float(hint):
        return f"CONVERT(varchar(40), {column}, 3)"
    if datetime in types:
        return f"REPLACE(CAST({column} AS varchar(33)), ' ', 'T') + 'Z'"
    return f"CAST({column} AS varchar(10))" if date in types else column


_TEXTS: Mapping[str, Callable[[type], str]] = {
    "append": _append,
    "set": lambda of: _upsert(of, _LINEAGE, is_older(of, "t", "@", "r")),
    "retract_states": _retract_states,
    "replace_states": _replace_states,
    "select_states": _select_states,
    "select_standing": lambda of: _select_states(of, STANDING),
}
