"""The statements about aggregates that are alike in both engines. `core/store/<engine>/statements.py` has the others.

A job stages the windows of each level with the number of their slice, and after them the facts of each level and slice:
the number of its windows, and a hash of its rows with all their values. The hash is a sum over the rows, so that
their order does not matter: of the CRC-32 of the row's text in UTF-8 in SQLite, and of the first 32 bits of the SHA-256
of the text in UTF-16 on SQL Server, because each is the fastest function that Spark has too.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.model.aggregates import Aggregate, Measure, aggregate_table
from core.store.columns import instant_of, quoted
from core.store.queries import ASCII_TEXT, BY_CODE_POINT, KEY_TEXT, among_subjects
from core.store.script import RowVerb

SEPARATOR = "|"  # of the values of a row's text
MOST = 2**63 - 1  # of a bigint
WINDOW_VERBS: tuple[RowVerb, ...] = (
    "find_overflow", "verify_slices", "replace_windows", "add_windows", "find_staging", "remove_staged",
    "remove_windows", "read_windows", "read_last_window",
    "find_subject_windows", "remove_subject_windows", "remove_subject_staged",
)  # fmt: skip


def of_portion(alias: str) -> str:
    """Return the condition that a staged window belongs to a range of slices."""
    return f"{alias}.staging_id = :staging_id AND {alias}.slice BETWEEN :first_slice AND :last_slice"


def of_facts(one: Aggregate) -> str:
    """Return the number of a level's windows in a range of slices, as the facts of their job have it."""
    place = f"e.level = '{one.name}' AND {of_portion('e')}"
    return f"(SELECT SUM(e.windows) FROM staged_slice AS e WHERE {place})"


def keys_match(one: Aggregate, left: str, right: str) -> str:
    """Return the condition that two windows have the same key."""
    return " AND ".join(f"{left}.{quoted(name)} = {right}.{quoted(name)}" for name in one.key)


def column_list(one: Aggregate, alias: str = "") -> str:
    """Return the list of all columns of a window."""
    return ", ".join(f"{alias}{quoted(name)}" for name in one.columns)


def merged(measure: Measure, standing: str, staged: str) -> str:
    """Return the value of a measure of a window and a part of it."""
    if measure.kind == "count" or (measure.kind == "sum" and not measure.is_optional):
        return f"{standing} + {staged}"
    if measure.kind == "sum":
        return f"CASE WHEN {standing} IS NULL THEN {staged} ELSE {standing} + COALESCE({staged}, 0) END"
    order = "<=" if measure.kind == "least" else ">="
    return f"CASE WHEN {standing} {order} {staged} OR {staged} IS NULL THEN {standing} ELSE {staged} END"


def overflows(one: Aggregate) -> Mapping[str, str]:
    """Return the conditions, by measure, that a window and a part of it add up to more than 64 bits hold.

    No expression leaves 64 bits itself: SQLite would go on in floats, and SQL Server would end the statement.
    """
    found = {}
    for name in (measure.name for measure in one.measures if measure.kind in ("count", "sum")):
        standing, staged = f"a.{quoted(name)}", f"g.{quoted(name)}"
        above, below = (f"CASE WHEN {standing} {sign} 0 THEN {standing} ELSE 0 END" for sign in "><")
        found[name] = f"({staged} > {MOST} - {above} OR {staged} < -{MOST} - 1 - {below})"
    return found


def texts_of_row(one: Aggregate) -> tuple[str, ...]:
    """Return the columns of a row's text that hold texts: they come first, with a blank for each end of a line."""
    return tuple(each.name for each in one.keys if each.kind is str)


def others_of_row(one: Aggregate) -> tuple[str, ...]:
    """Return the other columns of a row's text, which follow."""
    names = ("is_whole", *one.columns)
    return tuple(name for name in names if name not in texts_of_row(one))


def window_reader(declared: type) -> Callable[[Sequence[Any]], Any]:
    """Return a function that makes a window of a class from its columns."""
    one = aggregate_table(declared)
    places = frozenset(place for place, name in enumerate(one.columns) if name in one.instants)

    def read(values: Sequence[Any]) -> Any:
        return declared(*(instant_of(value) if place in places else value for place, value in enumerate(values)))

    return read


def _find_staging(one: Aggregate) -> str:
    """Find the staged windows of closed runs, also those of results that lost a race or are incomplete."""
    is_open = "r.run_id = g.run_id AND r.status IN ('submitting', 'submitted')"
    return (
        f"SELECT DISTINCT g.staging_id\n  FROM {one.staged} AS g\n"
        f" WHERE NOT EXISTS (SELECT 1 FROM aggregation_run AS r WHERE {is_open});"
    )


def _of_value(one: Aggregate) -> str:
    """Return the condition that a window is of a value of the first column of the key."""
    column = f"a.{quoted(one.keys[0].name)}"
    if not one.keys[0].ascii:
        return f"{column} = :key_value"
    narrow = "CONVERT(varchar(8000), :key_value)"  # it has similar letters for those that are not of ASCII
    return f"{column} = {narrow} AND {narrow} = :key_value {BY_CODE_POINT}"


def _read_windows(one: Aggregate) -> str:
    read = {name: f"CONVERT(varchar(33), a.{quoted(name)}, 126) AS {quoted(name)}" for name in one.instants}
    columns = ", ".join(read.get(name, f"a.{quoted(name)}") for name in one.columns)
    order = ", ".join(f"a.{quoted(name)}" for name in one.key[1:])
    return (
        f"SELECT {columns}\n  FROM {one.name} AS a\n WHERE {_of_value(one)}"
        f" AND a.window_start >= :since_at AND a.window_start < :until_at\n ORDER BY {order};"
    )


def _windows_of_subjects(one: Aggregate, alias: str) -> str:
    """Return the condition that a window is one of some subjects: never, where a window adds up several."""
    if one.subject is None:
        return "1 = 0"
    text = ASCII_TEXT if one.subject.ascii else KEY_TEXT
    return among_subjects(f"{alias}.{quoted(one.subject.name)}", text if one.subject.kind is str else "bigint")


def _remove_subjects(table: str, one: Aggregate, *key: str) -> str:
    columns = ", ".join(map(quoted, key))
    return f"DELETE FROM {table}\n WHERE {_windows_of_subjects(one, table)}\n LIMIT :most BY {columns};"


WINDOW_BODIES: Mapping[RowVerb, Callable[[Aggregate], str]] = {
    "find_staging": _find_staging,
    "remove_staged": lambda one: (
        f"DELETE FROM {one.staged}\n WHERE staging_id = :staging_id"
        f" LIMIT :most BY {', '.join(map(quoted, ('staging_id', 'slice', *one.key)))};"
    ),
    "remove_windows": lambda one: (
        f"DELETE FROM {one.name}\n WHERE window_start < :until_at LIMIT :most BY {', '.join(map(quoted, one.key))};"
    ),
    "read_windows": _read_windows,
    "read_last_window": lambda one: (
        f"SELECT CONVERT(varchar(33), MAX(a.window_start), 126) AS window_start\n  FROM {one.name} AS a\n"
        f" WHERE {_of_value(one)} AND a.window_start < :until_at;"
    ),
    "find_subject_windows": lambda one: (
        "SELECT CONVERT(varchar(33), MIN(a.window_start), 126) AS first_start,"
        " CONVERT(varchar(33), MAX(a.window_start), 126) AS last_start\n"
        f"  FROM {one.name} AS a\n WHERE {_windows_of_subjects(one, 'a')}"
    ),
    "remove_subject_windows": lambda one: _remove_subjects(one.name, one, *one.key),
    "remove_subject_staged": lambda one: _remove_subjects(one.staged, one, "staging_id", "slice", *one.key),
}
