"""The statements about aggregates for SQLite, built from their declarations."""

from collections.abc import Callable, Mapping
from zlib import crc32

from core.model.aggregates import Aggregate
from core.store.columns import quoted
from core.store.script import RowVerb
from core.store.windows import (
    SEPARATOR,
    columns_of,
    joined,
    keys_match,
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
    numbers = ("is_whole", *(each.name for each in one.measures if each.kind == "count"))
    places = dict.fromkeys(numbers, "%d")  # faster than %s, but 0 for NULL
    text = blanked + _printed([f"g.{quoted(name)}" for name in others_of_row(one)], places, SEPARATOR if texts else "")
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
        f"{quoted(each.name)} = {joined(each, f'{one.name}.{quoted(each.name)}', f'excluded.{quoted(each.name)}')}"
        for each in one.measures
    ]
    kept = [f"{name} = excluded.{name}" for name in ("run_number", "slice")]
    return (
        f"INSERT INTO {one.name} ({columns_of(one)}, run_number, slice)\n"
        f"SELECT {columns_of(one, 'g.')}, :run_number, g.slice\n  FROM {one.staged} AS g\n"
        f" WHERE {of_portion('g')} AND g.{quoted(one.count)} > 0\n"
        f"    ON CONFLICT ({', '.join(map(quoted, one.key))}) DO UPDATE SET\n       {NEXT.join([*values, *kept])}"
    )


def _printed(columns: list[str], places: Mapping[str, str], before: str = "") -> str:
    """Return an expression for the values of columns as a text; one that is NULL is empty, except for a %d."""
    form = SEPARATOR.join(places.get(column.removeprefix("g.").strip("[]"), "%s") for column in columns)
    return f"printf('{before}{form}', {', '.join(columns)})"


WINDOW_TEXTS: Mapping[RowVerb, Callable[[Aggregate], str]] = {
    "find_overflow": _find_overflow,
    "verify_slices": _verify_slices,
    "replace_windows": _replace_windows,
    "add_windows": _add_windows,
}
