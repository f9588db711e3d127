"""The statements about row classes that are alike in both engines, and the keys of rows.

`core/store/<engine>/statements.py` has the others, in the words of its engine.
"""

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any

from core.model.aggregates import aggregate_table
from core.model.rows import ERASED, row_table, texts_of
from core.store.columns import Values, ValuesOf, fields_of, quoted, types_of
from core.store.queries import ASCII_TEXT, KEY_TEXT, among_subjects
from core.store.script import OfRows, RowVerb
from core.store.window_statements import WINDOW_BODIES
from core.transforms.loading import load_aggregates


def keyed(row_class: type, position: int, values_of: ValuesOf) -> ValuesOf:
    """Return a function from placed rows to values. Before the columns, the values have a position of this length.

    For states, only the newest of each key, by its `newest_by` or the last one, in the order of the keys: two commits
    lock them in one order. The function raises ValueError for a key that ends with a space, in every engine: SQL Server
    ignores that space. The key of an aggregate of the rows is such a key too.
    """
    table = row_table(row_class)
    places = {name: place for place, name in enumerate(table.columns, position)}
    grouped_by = (each.name for one in load_aggregates((row_class,)) for each in one.grouped_by)
    texts = {f"{table.name}.{name}": places[name] for name in dict.fromkeys((*table.key, *grouped_by))}
    key_of, ranked_by = [places[name] for name in table.key], places.get(table.newest_by)

    def values_with_keys(*given: Any) -> list[Values]:
        values = values_of(*given)
        for name, place in texts.items():
            if padded := [text for each in values if isinstance(text := each[place], str) and text[-1:] == " "]:
                raise ValueError(
                    f"the key {name} ends with a space, which SQL Server ignores: it takes the key for the one without"
                    f" the space; remove the space in the transform: {padded[0][-40:]!r}"
                )
        if ranked_by is not None:  # a stable sort: of equal values, the last one stays
            values.sort(key=itemgetter(ranked_by))
        if not key_of:
            return values
        # In the order of the values, so that the last one of a key stays.
        newest = {tuple([str(each[place]) for place in key_of]): each for each in values}
        return [newest[key] for key in sorted(newest)]

    return values_with_keys if texts or key_of else values_of


ERASED_AT = 2**63 - 1  # in place of the commit number of a replay: an erasure took the row away
RETRACTED = "stream_id, partition_id, commit_number, table_name, sequence_number, ordinal, row_commit_number, row"
STANDING = "t.stream_id, t.partition_id, t.sequence_number, "  # the columns that name the writer of a state


def of_partition(alias: str) -> str:
    """Return the condition that a row belongs to the partition."""
    return f"{alias}.stream_id = :stream_id AND {alias}.partition_id = :partition_id"


def in_range(alias: str) -> str:
    """Return the condition that a row is in a range of the partition."""
    ends = ":first_sequence_number AND :last_sequence_number"
    return f"{of_partition(alias)}\n   AND {alias}.sequence_number BETWEEN {ends}"


_OF_EVENTS = (
    f" WHERE {of_partition('t')} AND t.sequence_number IN (\n"
    "       SELECT n.sequence_number FROM rows(:sequence_numbers) AS n (sequence_number bigint))"
)


def key_type(row_class: type, name: str) -> str:
    """Return the type to read a text of a key in: an nvarchar would have SQL Server convert the column of each row.

    Of a text that is not of ASCII, a varchar has similar letters. So a text that others send is compared whole too.
    """
    text = texts_of(row_class).get(name)
    return ASCII_TEXT if text is not None and text.ascii else KEY_TEXT


def _of_subjects(row_class: type) -> str:
    """Return the condition that a row is in a range of the partition, and of some subjects."""
    name = row_table(row_class).subject
    kind = key_type(row_class, name) if str in types_of(dict(fields_of(row_class))[name]) else "bigint"
    return f"{in_range('t')}\n   AND {among_subjects(f't.{quoted(name)}', kind)}"


def is_older(row_class: type, standing: str, own: str, new: str) -> str:
    """Return the condition that a new state takes the place of a standing one, in the words of an engine.

    `own` is what precedes the partition that writes. Between equal values of `newest_by` the position decides, so that
    every order of commits ends in the same row.
    """
    stream, partition = f"{standing}.stream_id {{}} {own}stream_id", f"{standing}.partition_id {{}} {own}partition_id"
    number = f"{standing}.sequence_number < {new}.sequence_number"
    if not (newest_by := row_table(row_class).newest_by):
        return f"{stream.format('<>')} OR {partition.format('<>')} OR {number}"
    column = f"{standing}.{quoted(newest_by)} {{}} {new}.{quoted(newest_by)}"
    place = f"{partition.format('<')} OR {partition.format('=')} AND {number}"
    return (
        f"({column.format('<')} OR {column.format('=')}"
        f" AND ({stream.format('<')} OR {stream.format('=')} AND ({place})))"
    )


def in_table_order(row_classes: Iterable[type]) -> list[type]:
    """Return row classes by the names of their tables, which is the lock order of the tables of states."""
    return sorted(row_classes, key=lambda row_class: row_table(row_class).name)


def common_body(of: OfRows, document: Callable[[type], str]) -> str | None:
    """Return the body of a verb that is alike in both engines, or None for any other verb. `document` returns the
    expression of an engine for the columns of a row as JSON."""
    if of.verb == "find_row_faults":
        return _row_faults(of.row_classes)
    if of.verb == "retract":
        return _retract(of.row_class, document(of.row_class))
    if of.verb in WINDOW_BODIES:
        return WINDOW_BODIES[of.verb](aggregate_table(of.row_class))
    return _BODIES[of.verb](of.row_class) if of.verb in _BODIES else None


def _retract(row_class: type, document: str) -> str:
    """Copy the rows of some events."""
    table = row_table(row_class).name
    return (
        f"INSERT INTO retracted_row ({RETRACTED})\n"
        f"SELECT t.stream_id, t.partition_id, :commit_number, '{table}', t.sequence_number, t.ordinal,"
        f" t.commit_number, {document}\n  FROM {table} AS t\n{_OF_EVENTS};"
    )


def _columns(row_class: type) -> str:
    return "".join(f", t.{quoted(name)}" for name in row_table(row_class).columns)


def _placed(row_class: type) -> str:
    """Select the rows of one event in order: ordinal (NULL for a state), commit number and columns."""
    table = row_table(row_class)
    ordinal = "NULL" if table.key else "t.ordinal"
    where = f"{of_partition('t')} AND t.sequence_number = :sequence_number"
    order = ", ".join(f"t.{quoted(name)}" for name in table.key or ("ordinal",))
    selected = f"SELECT {ordinal}, t.commit_number{_columns(row_class)}"
    return f"{selected}\n  FROM {table.name} AS t\n WHERE {where}\n ORDER BY {order};"


def _count_rows(row_class: type) -> str:
    """Count the rows of a range, and those whose commit is not in the ledger or does not cover their number.

    The ledger rows of purged commits are gone, so a purged commit covers all numbers up to the last purged one.
    """
    return (
        "WITH hubledger_purged AS (\n"
        "    SELECT MAX(k.purged_commit) AS commit_number, MAX(k.purged_to) AS number\n"
        f"      FROM event_hub_checkpoint AS k\n     WHERE {of_partition('k')}\n)\n"
        "SELECT COUNT(*), COALESCE(SUM(CASE WHEN l.commit_number IS NULL\n"
        "       AND (p.commit_number IS NULL OR t.commit_number > p.commit_number OR t.sequence_number > p.number)\n"
        "       THEN 1 ELSE 0 END), 0)\n"
        f"  FROM {row_table(row_class).name} AS t\n CROSS JOIN hubledger_purged AS p\n"
        "  LEFT JOIN batch_ledger AS l ON l.stream_id = t.stream_id AND l.partition_id = t.partition_id"
        " AND l.commit_number = t.commit_number\n"
        "   AND t.sequence_number BETWEEN l.first_sequence_number AND l.last_sequence_number\n"
        f" WHERE {in_range('t')};"
    )


def _select_subject(row_class: type) -> str:
    """Select the rows of some subjects in a range: commit number, sequence number, ordinal (0 for a state), columns."""
    table = row_table(row_class)
    ordinal = "0" if table.key else "t.ordinal"
    return (
        f"SELECT t.commit_number, t.sequence_number, {ordinal}{_columns(row_class)}\n  FROM {table.name} AS t\n"
        f" WHERE {_of_subjects(row_class)}\n ORDER BY t.sequence_number;"
    )


def _stub_subject(row_class: type) -> str:
    """Leave a retracted row without its columns for each row of some subjects in a range."""
    table = row_table(row_class)
    return (
        f"INSERT INTO retracted_row ({RETRACTED})\n"
        f"SELECT t.stream_id, t.partition_id, {ERASED_AT}, '{table.name}', t.sequence_number, t.ordinal,"
        f" t.commit_number, '{ERASED}'\n  FROM {table.name} AS t\n WHERE {_of_subjects(row_class)}"
    )


def _lettered(row_class: type) -> str:
    """Find letters of a range that are not resolved, although rows of their number exist."""
    table = row_table(row_class).name
    rows = f"SELECT 1 FROM {table} AS t WHERE {of_partition('t')} AND t.sequence_number = d.sequence_number"
    return (
        "SELECT d.sequence_number, d.status\n  FROM event_hub_dead_letter AS d\n"
        f" WHERE {in_range('d')}\n   AND d.status <> 'resolved' AND EXISTS ({rows})\n"
        " ORDER BY d.sequence_number LIMIT :most;"
    )


def _row_faults(row_classes: tuple[type, ...]) -> str:
    """Find the commits that lie wholly in a range and appended a different number of rows than the tables hold.

    Rows that replays retracted count as held.
    """
    tables = [row_table(row_class).name for row_class in row_classes if not row_table(row_class).key]
    named = ", ".join(f"'{name}'" for name in tables) or "NULL"
    counted = [
        f"    SELECT t.commit_number, COUNT(*) AS row_count FROM {table} AS t\n"
        f"     WHERE {in_range('t')}\n     GROUP BY t.commit_number"
        for table in tables
    ]
    counted.append(
        "    SELECT r.row_commit_number AS commit_number, COUNT(*) AS row_count FROM retracted_row AS r\n"
        f"     WHERE {in_range('r')}\n       AND r.table_name IN ({named})\n     GROUP BY r.row_commit_number"
    )
    union = "\n    UNION ALL\n".join(counted)
    return (
        f"WITH hubledger_counted AS (\n{union}\n), hubledger_summed AS (\n"
        "    SELECT n.commit_number, SUM(n.row_count) AS row_count\n"
        "      FROM hubledger_counted AS n GROUP BY n.commit_number\n)\n"
        "SELECT l.commit_number, l.kind, l.first_sequence_number, l.last_sequence_number,"
        " l.rows_appended, COALESCE(s.row_count, 0) AS row_count\n"
        "  FROM batch_ledger AS l\n  LEFT JOIN hubledger_summed AS s ON s.commit_number = l.commit_number\n"
        f" WHERE {of_partition('l')}\n"
        "   AND l.first_sequence_number >= :first_sequence_number\n"
        "   AND l.last_sequence_number <= :last_sequence_number\n"
        "   AND l.rows_appended <> COALESCE(s.row_count, 0)\n ORDER BY l.commit_number LIMIT :most;"
    )


def ordinal_text(row_class: type) -> str:
    """Number the states of one event by their keys, because a state has no ordinal."""
    order = ", ".join(f"t.{quoted(name)}" for name in row_table(row_class).key)
    return f"ROW_NUMBER() OVER (PARTITION BY t.sequence_number ORDER BY {order}) - 1"


def _rows(row_class: type) -> str:
    return f"FROM {row_table(row_class).name} AS t\n"


_BODIES: Mapping[RowVerb, Callable[[type], str]] = {
    "delete": lambda of: f"DELETE {_rows(of)}{_OF_EVENTS};",
    "select_placed": _placed,
    "count_states": lambda of: (
        f"SELECT COUNT(*) AS states {_rows(of)} WHERE {in_range('t')} AND t.commit_number < :commit_number;"
    ),
    "count_rows": _count_rows,
    "next_partition": lambda of: (
        f"SELECT MIN(t.partition_id) {_rows(of)} WHERE t.stream_id = :stream_id AND t.partition_id > :partition_id;"
    ),
    "next_number": lambda of: (
        f"SELECT MIN(t.sequence_number) {_rows(of)}"
        f" WHERE {of_partition('t')} AND t.sequence_number >= :first_sequence_number;"
    ),
    "find_lettered": _lettered,
    "select_subject": _select_subject,
    "stub_subject": _stub_subject,
    "delete_subject": lambda of: f"DELETE {_rows(of)} WHERE {_of_subjects(of)}",
}
