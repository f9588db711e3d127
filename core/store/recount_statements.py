"""The statements of row classes for audits: count the rows of a range, and hold them against what commits appended.

Beside core/store/row_statements.py and core/store/replay_statements.py the third place in Python that holds SQL text.
"""

from functools import cache

from core.model.rows import row_table

OF_RANGE = ("stream_id", "partition_id", "first_sequence_number", "last_sequence_number")
OF_FAULTS = (*OF_RANGE, "most")

_IN_RANGE = (
    "{0}.stream_id = @stream_id AND {0}.partition_id = @partition_id\n"
    "   AND {0}.sequence_number BETWEEN @first_sequence_number AND @last_sequence_number"
)


@cache
def server_count_rows(row_class: type) -> str:
    """Count the rows of a range, and those whose commit is not in the ledger or does not reach their number."""
    return (
        "SELECT COUNT(*), COALESCE(SUM(CASE WHEN l.commit_number IS NULL THEN 1 ELSE 0 END), 0)\n"
        f"  FROM hubledger.{row_table(row_class).name} AS t\n"
        "  LEFT JOIN hubledger.batch_ledger AS l ON l.stream_id = t.stream_id AND l.partition_id = t.partition_id"
        " AND l.commit_number = t.commit_number\n"
        "   AND t.sequence_number BETWEEN l.first_sequence_number AND l.last_sequence_number\n"
        f" WHERE {_IN_RANGE.format('t')};"
    )


@cache
def sqlite_count_rows(row_class: type) -> str:
    """The same in SQLite's."""
    return _for_sqlite(server_count_rows(row_class))


@cache
def server_row_faults(row_classes: tuple[type, ...]) -> str:
    """Commits wholly in a range that appended another number of rows than there are of them, or were taken away."""
    tables = [row_table(row_class).name for row_class in row_classes if not row_table(row_class).key]
    named = ", ".join(f"'{name}'" for name in tables)
    counted = "\n    UNION ALL\n".join([*(_rows_by_commit(name) for name in tables), _retracted_by_commit(named)])
    return (
        f"WITH counted AS (\n{counted}\n), summed AS (\n"
        "    SELECT n.commit_number, SUM(n.row_count) AS row_count FROM counted AS n GROUP BY n.commit_number\n)\n"
        "SELECT TOP (@most) l.commit_number, l.kind, l.first_sequence_number, l.last_sequence_number,"
        " l.rows_appended, COALESCE(s.row_count, 0) AS row_count\n"
        "  FROM hubledger.batch_ledger AS l\n  LEFT JOIN summed AS s ON s.commit_number = l.commit_number\n"
        " WHERE l.stream_id = @stream_id AND l.partition_id = @partition_id AND l.rows_appended IS NOT NULL\n"
        "   AND l.first_sequence_number >= @first_sequence_number\n"
        "   AND l.last_sequence_number <= @last_sequence_number\n"
        "   AND l.rows_appended <> COALESCE(s.row_count, 0)\n ORDER BY l.commit_number;"
    )


@cache
def sqlite_row_faults(row_classes: tuple[type, ...]) -> str:
    """The same in SQLite's."""
    text = _for_sqlite(server_row_faults(row_classes))
    return text.replace("TOP (:most) ", "").replace("l.commit_number;", "l.commit_number LIMIT :most;")


def _rows_by_commit(table: str) -> str:
    return (
        f"    SELECT t.commit_number, COUNT(*) AS row_count FROM hubledger.{table} AS t\n"
        f"     WHERE {_IN_RANGE.format('t')}\n     GROUP BY t.commit_number"
    )


def _retracted_by_commit(named: str) -> str:
    return (
        "    SELECT r.row_commit_number AS commit_number, COUNT(*) AS row_count FROM hubledger.retracted_row AS r\n"
        f"     WHERE {_IN_RANGE.format('r')}\n       AND r.table_name IN ({named or 'NULL'})\n"
        "     GROUP BY r.row_commit_number"
    )


def _for_sqlite(text: str) -> str:
    return text.replace("hubledger.", "").replace("@", ":")
