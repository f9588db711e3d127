"""The statements about aggregates for SQL Server, built from their declarations."""

from collections.abc import Callable, Mapping

from core.model.aggregates import Aggregate
from core.store.columns import quoted
from core.store.dialects import server_part
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
    columns += [_instant(f"g.{quoted(name)}", name, one) for name in others_of_row(one)]
    row = f"SUBSTRING(HASHBYTES('SHA2_256', {_concatenated(columns)}), 1, 4)"
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


def _instant(column: str, name: str, one: Aggregate) -> str:
    """Return an expression for a column's text; an instant has six digits, a T and a Z, or is NULL."""
    if name not in one.instants:
        return column
    return f"STUFF(LEFT(CAST({column} AS varchar(33)), 26), 11, 1, 'T') + 'Z'"


def _replace_windows(one: Aggregate) -> str:
    return (
        f"DELETE FROM a\n  FROM hubledger.{one.staged} AS g\n"
        f" INNER JOIN hubledger.{one.name} AS a ON {keys_match(one, 'a', 'g')}\n"
        f" WHERE {_PORTION} AND g.is_whole = 1\n{_BY_STAGED};"
    )


def _add_windows(one: Aggregate) -> str:
    """Update the windows that exist, and insert the others: MERGE has known races."""
    values = [
        f"{quoted(each.name)} = {joined(each, f'a.{quoted(each.name)}', f'g.{quoted(each.name)}')}"
        for each in one.measures
    ]
    staged, match = f"{_PORTION} AND g.{quoted(one.count)} > 0", keys_match(one, "a", "g")
    return (
        f"UPDATE a\n   SET {NEXT.join([*values, 'run_number = @run_number', 'slice = g.slice'])}\n"
        f"  FROM hubledger.{one.staged} AS g\n INNER JOIN hubledger.{one.name} AS a ON {match}\n"
        f" WHERE {staged}\n{_BY_STAGED};\n"
        f"INSERT INTO hubledger.{one.name} ({columns_of(one)}, run_number, slice)\n"
        f"SELECT {columns_of(one, 'g.')}, @run_number, g.slice\n  FROM hubledger.{one.staged} AS g\n WHERE {staged}\n"
        f"       AND NOT EXISTS (SELECT 1 FROM hubledger.{one.name} AS a WHERE {match})\n{_BY_STAGED};"
    )


def _concatenated(values: list[str]) -> str:
    """Return an expression for a text; CONCAT takes NULL for an empty text."""
    return f"CONCAT(N'', {f', {chr(39)}{SEPARATOR}{chr(39)}, '.join(values)})"


WINDOW_TEXTS: Mapping[RowVerb, Callable[[Aggregate], str]] = {
    "find_overflow": _find_overflow,
    "verify_slices": _verify_slices,
    "replace_windows": _replace_windows,
    "add_windows": _add_windows,
}
