"""The statements about aggregates for SQL Server, built from their declarations."""

from collections.abc import Callable, Mapping

from core.model.aggregates import Aggregate, aggregate_table
from core.store.columns import quoted
from core.store.dialects import BY_CODE_POINT
from core.store.rows import Dialect
from core.store.script import OfRows, RowVerb
from core.store.windows import (
    SEPARATOR,
    columns_of,
    joined,
    keys_match,
    of_facts,
    of_portion,
    others_of_row,
    summed,
    texts_of_row,
    window_text,
)

# Each staged window seeks its key: without the hint, the table of windows could be hashed, and so be read whole.
_BY_STAGED = "OPTION (LOOP JOIN, FORCE ORDER)"
NEXT = ",\n       "
WINDOW_TYPES = {
    "staging_id": "varchar(8000)",
    "first_slice": "int",
    "last_slice": "int",
    "run_number": "bigint",
    "most": "int",
    "key_value": "nvarchar(4000)",
    "since_at": "datetime2(7)",
    "until_at": "datetime2(7)",
}


def windows_text(of: OfRows, sql: Dialect) -> str:
    """Return the statement of a verb."""
    common = window_text(of, sql)
    return common if common is not None else _TEXTS[of.verb](aggregate_table(of.row_class), sql)


def _verify_slices(one: Aggregate, sql: Dialect) -> str:
    sums = _concatenated([f"SUM(CONVERT(decimal(38, 0), g.{quoted(name)}))" for name in summed(one)])
    columns = [f"REPLACE(g.{quoted(name)}, NCHAR(10), N' ')" for name in texts_of_row(one)]
    columns += [_instant(f"g.{quoted(name)}", name, one) for name in others_of_row(one)]
    row = f"SUBSTRING(HASHBYTES('SHA2_256', {_concatenated(columns)}), 1, 4)"
    return (
        "UPDATE d\n   SET is_verified = 1\n"
        f"  FROM {sql.prefix}staged_slice AS d\n"
        f" INNER JOIN (SELECT g.slice, COUNT_BIG(*) AS windows, SUM(COUNT_BIG(*)) OVER () AS portion_windows,\n"
        f"                    {sums} AS sums,\n"
        f"                    SUM(CONVERT(bigint, {row})) AS rows_hash\n"
        f"               FROM {sql.prefix}{one.staged} AS g\n              WHERE {of_portion('g', sql)}\n"
        "              GROUP BY g.slice) AS f\n"
        "    ON f.slice = d.slice AND f.windows = d.windows AND f.rows_hash = d.rows_hash\n"
        f"   AND d.sums = f.sums {BY_CODE_POINT}\n"
        f" WHERE d.staging_id = @staging_id AND d.level = '{one.name}' AND f.portion_windows = {of_facts(one, sql)};"
    )


def _instant(column: str, name: str, one: Aggregate) -> str:
    """Return an expression for a column's text; an instant has six digits, a T and a Z, or is NULL."""
    if name not in one.instants:
        return column
    return f"STUFF(LEFT(CAST({column} AS varchar(33)), 26), 11, 1, 'T') + 'Z'"


def _replace_windows(one: Aggregate, sql: Dialect) -> str:
    return (
        f"DELETE FROM a\n  FROM {sql.prefix}{one.staged} AS g\n"
        f" INNER JOIN {sql.prefix}{one.name} AS a ON {keys_match(one, 'a', 'g')}\n"
        f" WHERE {of_portion('g', sql)} AND g.is_whole = 1\n{_BY_STAGED};"
    )


def _add_windows(one: Aggregate, sql: Dialect) -> str:
    """Update the windows that exist, and insert the others: MERGE has known races."""
    values = [
        f"{quoted(each.name)} = {joined(each, f'a.{quoted(each.name)}', f'g.{quoted(each.name)}')}"
        for each in one.measures
    ]
    staged, match = f"{of_portion('g', sql)} AND g.{quoted(one.count)} > 0", keys_match(one, "a", "g")
    return (
        f"UPDATE a\n   SET {NEXT.join([*values, 'run_number = @run_number', 'slice = g.slice'])}\n"
        f"  FROM {sql.prefix}{one.staged} AS g\n INNER JOIN {sql.prefix}{one.name} AS a ON {match}\n"
        f" WHERE {staged}\n{_BY_STAGED};\n"
        f"INSERT INTO {sql.prefix}{one.name} ({columns_of(one)}, run_number, slice)\n"
        f"SELECT {columns_of(one, 'g.')}, @run_number, g.slice\n  FROM {sql.prefix}{one.staged} AS g\n WHERE {staged}\n"
        f"       AND NOT EXISTS (SELECT 1 FROM {sql.prefix}{one.name} AS a WHERE {match})\n{_BY_STAGED};"
    )


def _remove_staged(one: Aggregate, sql: Dialect) -> str:
    return f"DELETE TOP (@most) FROM {sql.prefix}{one.staged}\n WHERE staging_id = @staging_id;"


def _remove_windows(one: Aggregate, sql: Dialect) -> str:
    return f"DELETE TOP (@most) FROM {sql.prefix}{one.name}\n WHERE window_start < @until_at;"


def _read_windows(one: Aggregate, sql: Dialect) -> str:
    columns = ", ".join(
        f"CONVERT(varchar(33), a.{quoted(name)}, 126) AS {quoted(name)}"
        if name in one.instants
        else f"a.{quoted(name)}"
        for name in one.columns
    )
    first, order = quoted(one.keys[0].name), ", ".join(f"a.{quoted(name)}" for name in one.key[1:])
    return (
        f"SELECT {columns}\n  FROM {sql.prefix}{one.name} AS a\n WHERE a.{first} = @key_value"
        f" AND a.window_start >= @since_at AND a.window_start < @until_at\n ORDER BY {order};"
    )


def _read_last_window(one: Aggregate, sql: Dialect) -> str:
    first = quoted(one.keys[0].name)
    return (
        f"SELECT CONVERT(varchar(33), MAX(a.window_start), 126) AS window_start\n  FROM {sql.prefix}{one.name} AS a\n"
        f" WHERE a.{first} = @key_value AND a.window_start < @until_at;"
    )


def _concatenated(values: list[str]) -> str:
    """Return an expression for a text; CONCAT takes NULL for an empty text."""
    return f"CONCAT(N'', {f', {chr(39)}{SEPARATOR}{chr(39)}, '.join(values)})"


_TEXTS: Mapping[RowVerb, Callable[[Aggregate, Dialect], str]] = {
    "verify_slices": _verify_slices,
    "replace_windows": _replace_windows,
    "add_windows": _add_windows,
    "remove_staged": _remove_staged,
    "remove_windows": _remove_windows,
    "read_windows": _read_windows,
    "read_last_window": _read_last_window,
}
