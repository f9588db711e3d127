"""The statements about row classes and aggregates for SQLite, built from their declarations."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any
from zlib import crc32

from core.model.aggregates import Aggregate, aggregate_table
from core.model.rows import LINEAGE, STATE_LINEAGE, row_table
from core.store.columns import ValuesOf, compiled_values, fields_of, instant_texts, is_float, quoted
from core.store.queries import sqlite_text
from core.store.row_statements import RETRACTED, STANDING, common_body, is_older, keyed, of_partition, ordinal_text
from core.store.script import OfRows, RowVerb, Step
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

ROWS_HASH = "rows_hash"  # the function that the database defines on each connection
LINE = b"\n"
NEXT = ",\n       "


def rows_hash(lines: bytes) -> int:
    """Return the hash of the texts of rows, one to a line."""
    return sum(map(crc32, lines.split(LINE)))


def _find_overflow(one: Aggregate) -> str:
    """Find a staged part that its window cannot take, by one seek for each part."""
    found = overflows(one)
    named = " ".join(f"WHEN {condition} THEN '{name}'" for name, condition in found.items())
    return (
        f"SELECT CASE {named} END AS measure, g.window_start\n  FROM {one.staged} AS g\n"
        f" CROSS JOIN {one.name} AS a\n    ON {keys_match(one, 'a', 'g')}\n"
        f" WHERE g.staging_id = :staging_id AND g.is_whole = 0\n   AND ({' OR '.join(found.values())})\n LIMIT 1"
    )


def _verify_slices(one: Aggregate) -> str:
    """Return the statement that compares slices with their facts.

    The texts are hashed before the window function: it would copy them to a temporary table.
    """
    texts = f" || '{SEPARATOR}' || ".join(f"g.{quoted(name)}" for name in texts_of_row(one))
    blanked = f"replace({texts}, char(10), ' ') || " if texts else ""
    numbers = {"is_whole", *(each.name for each in one.measures if each.kind == "count")}
    others = others_of_row(one)
    form = SEPARATOR.join("%d" if name in numbers else "%s" for name in others)  # %d is faster, but 0 for NULL
    columns = ", ".join(f"g.{quoted(name)}" for name in others)
    text = f"{blanked}printf('{SEPARATOR if texts else ''}{form}', {columns})"
    return (
        "UPDATE staged_slice AS d\n   SET is_verified = 1\n"
        "  FROM (SELECT s.slice, s.windows, s.rows_hash, SUM(s.windows) OVER () AS portion_windows\n"
        f"          FROM (SELECT g.slice, COUNT(*) AS windows,\n"
        f"                       {ROWS_HASH}(CAST(group_concat({text}, char(10)) AS BLOB)) AS rows_hash\n"
        f"                  FROM {one.staged} AS g\n                 WHERE {of_portion('g')}\n"
        "                 GROUP BY g.slice) AS s) AS f\n"
        f" WHERE d.staging_id = :staging_id AND d.level = '{one.name}' AND d.slice = f.slice\n"
        "   AND d.windows = f.windows AND d.rows_hash = f.rows_hash\n"
        f"   AND f.portion_windows = {of_facts(one)}"
    )


def _replace_windows(one: Aggregate) -> str:
    key = ", ".join(map(quoted, one.key))
    staged = ", ".join(f"g.{quoted(name)}" for name in one.key)
    return (
        f"DELETE FROM {one.name}\n WHERE ({key}) IN (\n       SELECT {staged}\n         FROM {one.staged} AS g\n"
        f"        WHERE {of_portion('g')} AND g.is_whole = 1)"
    )


def _add_windows(one: Aggregate) -> str:
    values = [
        f"{quoted(each.name)} = {merged(each, f'{one.name}.{quoted(each.name)}', f'excluded.{quoted(each.name)}')}"
        for each in one.measures
    ]
    kept = [f"{name} = excluded.{name}" for name in ("run_number", "slice")]
    return (
        f"INSERT INTO {one.name} ({column_list(one)}, run_number, slice)\n"
        f"SELECT {column_list(one, 'g.')}, :run_number, g.slice\n  FROM {one.staged} AS g\n"
        f" WHERE {of_portion('g')} AND g.{quoted(one.count)} > 0\n"
        f"    ON CONFLICT ({', '.join(map(quoted, one.key))}) DO UPDATE SET\n       {NEXT.join([*values, *kept])}"
    )


WINDOW_TEXTS: Mapping[RowVerb, Callable[[Aggregate], str]] = {
    "find_overflow": _find_overflow,
    "verify_slices": _verify_slices,
    "replace_windows": _replace_windows,
    "add_windows": _add_windows,
}

EXACT_FLOAT = "exact_float"  # the function that the database defines on each connection
MEMBERS = 50  # of one json_object: SQLite takes 100 arguments, or 127
_OF_PARTITION = "{0}.stream_id = excluded.stream_id AND {0}.partition_id = excluded.partition_id"
_NOT_NEWER = f"{_OF_PARTITION} AND {{0}}.sequence_number <= excluded.sequence_number"


@cache
def rows_text(of: OfRows) -> str:
    """Return the statement of a verb."""
    if (body := common_body(of, _document)) is not None:
        return sqlite_text(body)
    if of.verb in WINDOW_TEXTS:
        return WINDOW_TEXTS[of.verb](aggregate_table(of.row_class))
    return _TEXTS[of.verb](of.row_class)


def many_values(step: Step, values: Mapping[str, Any]) -> Sequence[Any]:
    """Return the values of each run of a step of many."""
    many = step.many or ()
    if isinstance(step.statement, str):
        return [{**values, **each} for each in many]
    row_class, place = step.statement.row_class, (values["stream_id"], values["partition_id"], values["commit_number"])
    if step.statement.verb == "retract_states":
        return [{**values, "keys": json.dumps(_keys_of(row_class)(many, *place), default=str)}]
    return _values_of(row_class, step.statement.verb)(many, *place)


def _replace(row_class: type) -> str:
    table = row_table(row_class)
    if not table.newest_by:
        return _upsert(row_class, _NOT_NEWER.format(table.name))
    takes = f"{_OF_PARTITION.format(table.name)} AND {table.name}.sequence_number = ?"
    return _upsert(row_class, f"{takes} OR {is_older(row_class, table.name, 'excluded.', 'excluded')}")


def _upsert(row_class: type, when: str) -> str:
    table = row_table(row_class)
    given = [*STATE_LINEAGE, *(quoted(name) for name in table.columns if name not in table.key)]
    return (
        f"{_insert(row_class, STATE_LINEAGE)} ON CONFLICT ({', '.join(map(quoted, table.key))}) DO UPDATE SET "
        + ", ".join(f"{name} = excluded.{name}" for name in given)
        + f" WHERE {when}"
    )


def _insert(row_class: type, lineage: tuple[str, ...]) -> str:
    table = row_table(row_class)
    columns = (*lineage, *map(quoted, table.columns))
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def _retract_states(row_class: type) -> str:
    """Copy the states that will be replaced. `keys` is a JSON array of [sequence number, number that is taken back,
    `newest_by` or null, key...]."""
    table = row_table(row_class)
    matches = " AND ".join(f"t.{quoted(name)} = k.value ->> {place}" for place, name in enumerate(table.key, 3))
    gives_way = "t.sequence_number <= k.value ->> 0"
    if table.newest_by:
        column = f"t.{quoted(table.newest_by)}"
        by_number = f"{column} = k.value ->> 2 AND t.sequence_number < k.value ->> 0"
        gives_way = f"(t.sequence_number = k.value ->> 1 OR {column} < k.value ->> 2 OR {by_number})"
    return (
        f"INSERT INTO retracted_row ({RETRACTED})\n"
        f"SELECT t.stream_id, t.partition_id, :commit_number, '{table.name}', t.sequence_number,"
        f" {ordinal_text(row_class)}, t.commit_number, {_document(row_class)}\n"
        f"  FROM json_each(:keys) AS k CROSS JOIN {table.name} AS t ON {matches}\n"
        f" WHERE {of_partition('t')} AND {gives_way}"
    )


def _select_states(row_class: type, before: str = "") -> str:
    """Select states by their keys. `keys` is a JSON array of arrays of key values."""
    table = row_table(row_class)
    columns = before + ", ".join(f"t.{quoted(name)}" for name in table.columns)
    matches = " AND ".join(f"t.{quoted(name)} = k.value ->> {position}" for position, name in enumerate(table.key))
    return f"SELECT {columns} FROM json_each(:keys) AS k CROSS JOIN {table.name} AS t ON {matches}"


def _document(row_class: type) -> str:
    """Return the columns of a row as JSON, joined from objects that one function of SQLite can make."""
    columns = [(name, f"t.{quoted(name)}", is_float(hint)) for name, hint in fields_of(row_class)]
    members = [f"'{name}', " + (f"{EXACT_FLOAT}({one})" if exact else one) for name, one, exact in columns]
    objects = [f"json_object({', '.join(members[at : at + MEMBERS])})" for at in range(0, len(members), MEMBERS)]
    if len(objects) == 1:
        return objects[0]
    joined = " || ',' || ".join(f"substr({each}, 2, length({each}) - 2)" for each in objects)
    return f"'{{' || {joined} || '}}'"


@cache
def _values_of(row_class: type, verb: RowVerb) -> ValuesOf:
    """Return the function that writes the rows of a verb. Where a state is taken back, its number comes last."""
    table = row_table(row_class)
    last = ("ordinal",) if table.newest_by and verb == "replace_states" else ()
    values_of = compiled_values(row_class, table.lineage, instant_texts, last)
    return keyed(row_class, len(table.lineage), values_of)


@cache
def _keys_of(row_class: type) -> ValuesOf:
    """Return a function from placed states to the number, the order and the key of each state that will be set."""
    table, values_of = row_table(row_class), _values_of(row_class, "replace_states")
    places = {name: place for place, name in enumerate((*STATE_LINEAGE, *table.columns))}
    number, ranked_by = places["sequence_number"], places.get(table.newest_by)

    def keys(*given: Any) -> list[tuple[Any, ...]]:
        return [
            (values[number], values[-1], ranked_by and values[ranked_by], *(values[places[name]] for name in table.key))
            for values in values_of(*given)
        ]

    return keys


_TEXTS: Mapping[str, Callable[[type], str]] = {
    "append": lambda of: _insert(of, LINEAGE),
    "set": lambda of: _upsert(of, is_older(of, row_table(of).name, "excluded.", "excluded")),
    "retract_states": _retract_states,
    "replace_states": _replace,
    "select_states": _select_states,
    "select_standing": lambda of: _select_states(of, STANDING),
}
