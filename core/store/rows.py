"""The statements about row classes that are alike in both engines; `core/store/<engine>/rows.py` has the others.

`prefix` goes before the name of a table ("hubledger."), `mark` before the name of a parameter ("@" or ":").
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from core.model.rows import ERASED, row_table
from core.store.columns import fields_of, quoted, types_of
from core.store.script import OfRows

ERASED_AT = 2**63 - 1  # in place of the commit number of a replay: an erasure took the row away
RETRACTED = "stream_id, partition_id, commit_number, table_name, sequence_number, ordinal, row_commit_number, row"
STANDING = "t.stream_id, t.partition_id, t.sequence_number, "  # the columns that name the writer of a state


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words in which the engines differ here: `top` goes after SELECT, `limit` to the end, `delete` before a
    table. `texts` and `numbers` read the JSON array of [subject as a text, as a number or null]."""

    prefix: str
    mark: str
    top: str
    limit: str
    delete: str
    texts: str
    numbers: str

    def of_partition(self, alias: str) -> str:
        """Return the condition that a row belongs to the partition."""
        return f"{alias}.stream_id = {self.mark}stream_id AND {alias}.partition_id = {self.mark}partition_id"

    def in_range(self, alias: str) -> str:
        """Return the condition that a row is in a range of the partition."""
        ends = f"{self.mark}first_sequence_number AND {self.mark}last_sequence_number"
        return f"{self.of_partition(alias)}\n   AND {alias}.sequence_number BETWEEN {ends}"

    def of_subjects(self, row_class: type) -> str:
        """Return the condition that a row is in a range of the partition, and of some subjects."""
        name = row_table(row_class).subject
        listed = self.texts if str in types_of(dict(fields_of(row_class))[name]) else self.numbers
        return f"{self.in_range('t')}\n   AND t.{quoted(name)} IN (\n       {listed})"


def in_table_order(row_classes: Iterable[type]) -> list[type]:
    """Return row classes by the names of their tables, which is the lock order of the tables of states."""
    return sorted(row_classes, key=lambda row_class: row_table(row_class).name)


def common_text(of: OfRows, sql: Dialect) -> str | None:
    """Return the statement of a verb that is alike in both engines; None for any other verb."""
    if of.verb == "find_row_faults":
        return _row_faults(of.row_classes, sql)
    text = _TEXTS.get(of.verb)
    return None if text is None else text(of.row_class, sql)


def _placed(row_class: type, sql: Dialect) -> str:
    """Select the rows of one event in order: ordinal (NULL for a state), commit number and columns."""
    table = row_table(row_class)
    ordinal = "NULL" if table.key else "t.ordinal"
    columns = "".join(f", t.{quoted(name)}" for name in table.columns)
    where = f"{sql.of_partition('t')} AND t.sequence_number = {sql.mark}sequence_number"
    order = ", ".join(f"t.{quoted(name)}" for name in table.key or ("ordinal",))
    table_text = f"{sql.prefix}{table.name} AS t"
    return f"SELECT {ordinal}, t.commit_number{columns}\n  FROM {table_text}\n WHERE {where}\n ORDER BY {order};"


def _count_states(row_class: type, sql: Dialect) -> str:
    """Count the states of a range that were written before a commit."""
    where = f"{sql.in_range('t')} AND t.commit_number < {sql.mark}commit_number"
    return f"SELECT COUNT(*) AS states FROM {sql.prefix}{row_table(row_class).name} AS t\n WHERE {where};"


def _count_rows(row_class: type, sql: Dialect) -> str:
    """Count the rows of a range, and those whose commit is not in the ledger or does not cover their number.

    The ledger rows of purged commits are gone, so a purged commit covers all numbers up to its link's last one.
    """
    return (
        "WITH purged AS (\n    SELECT MAX(k.commit_number) AS commit_number, MAX(k.last_sequence_number) AS number\n"
        f"      FROM {sql.prefix}purge_stub AS k\n     WHERE {sql.of_partition('k')}\n)\n"
        "SELECT COUNT(*), COALESCE(SUM(CASE WHEN l.commit_number IS NULL\n"
        "       AND (p.commit_number IS NULL OR t.commit_number > p.commit_number OR t.sequence_number > p.number)\n"
        "       THEN 1 ELSE 0 END), 0)\n"
        f"  FROM {sql.prefix}{row_table(row_class).name} AS t\n CROSS JOIN purged AS p\n"
        f"  LEFT JOIN {sql.prefix}batch_ledger AS l ON l.stream_id = t.stream_id AND l.partition_id = t.partition_id"
        " AND l.commit_number = t.commit_number\n"
        "   AND t.sequence_number BETWEEN l.first_sequence_number AND l.last_sequence_number\n"
        f" WHERE {sql.in_range('t')};"
    )


def _next_partition(row_class: type, sql: Dialect) -> str:
    """Find the next partition by its text that has rows."""
    where = f"t.stream_id = {sql.mark}stream_id AND t.partition_id > {sql.mark}partition_id"
    return f"SELECT MIN(t.partition_id) FROM {sql.prefix}{row_table(row_class).name} AS t\n WHERE {where};"


def _next_number(row_class: type, sql: Dialect) -> str:
    """Find the next number of a partition that has rows."""
    where = f"{sql.of_partition('t')} AND t.sequence_number >= {sql.mark}first_sequence_number"
    return f"SELECT MIN(t.sequence_number) FROM {sql.prefix}{row_table(row_class).name} AS t\n WHERE {where};"


def _range(row_class: type, sql: Dialect) -> str:
    """Select the rows of a range in order: commit number, sequence number, ordinal and columns."""
    table = row_table(row_class)
    columns = "".join(f", t.{quoted(name)}" for name in table.columns)
    return (
        f"SELECT t.commit_number, t.sequence_number, t.ordinal{columns}\n  FROM {sql.prefix}{table.name} AS t\n"
        f" WHERE {sql.in_range('t')}\n ORDER BY t.sequence_number, t.ordinal;"
    )


def _select_subject(row_class: type, sql: Dialect) -> str:
    """Select the rows of some subjects in a range: commit number, sequence number, ordinal (0 for a state), columns."""
    table = row_table(row_class)
    columns = "".join(f", t.{quoted(name)}" for name in table.columns)
    ordinal = "0" if table.key else "t.ordinal"
    return (
        f"SELECT t.commit_number, t.sequence_number, {ordinal}{columns}\n  FROM {sql.prefix}{table.name} AS t\n"
        f" WHERE {sql.of_subjects(row_class)}\n ORDER BY t.sequence_number;"
    )


def _stub_subject(row_class: type, sql: Dialect) -> str:
    """Leave a retracted row without its columns for each row of some subjects in a range."""
    table = row_table(row_class)
    return (
        f"INSERT INTO {sql.prefix}retracted_row ({RETRACTED})\n"
        f"SELECT t.stream_id, t.partition_id, {ERASED_AT}, '{table.name}', t.sequence_number, t.ordinal,"
        f" t.commit_number, '{ERASED}'\n  FROM {sql.prefix}{table.name} AS t\n WHERE {sql.of_subjects(row_class)};"
    )


def _delete_subject(row_class: type, sql: Dialect) -> str:
    """Delete the rows of some subjects in a range."""
    return f"{sql.delete}{row_table(row_class).name} AS t\n WHERE {sql.of_subjects(row_class)};"


def _lettered(row_class: type, sql: Dialect) -> str:
    """Find letters of a range that are not resolved, although rows of their number exist."""
    table = f"{sql.prefix}{row_table(row_class).name}"
    rows = f"SELECT 1 FROM {table} AS t WHERE {sql.of_partition('t')} AND t.sequence_number = d.sequence_number"
    return (
        f"SELECT {sql.top}d.sequence_number, d.status\n  FROM {sql.prefix}event_hub_dead_letter AS d\n"
        f" WHERE {sql.in_range('d')}\n   AND d.status <> 'resolved' AND EXISTS ({rows})\n"
        f" ORDER BY d.sequence_number{sql.limit};"
    )


def _row_faults(row_classes: tuple[type, ...], sql: Dialect) -> str:
    """Find the commits that lie wholly in a range and appended a different number of rows than the tables hold.

    Rows that replays retracted count as held.
    """
    tables = [row_table(row_class).name for row_class in row_classes if not row_table(row_class).key]
    named = ", ".join(f"'{name}'" for name in tables) or "NULL"
    counted = [
        f"    SELECT t.commit_number, COUNT(*) AS row_count FROM {sql.prefix}{table} AS t\n"
        f"     WHERE {sql.in_range('t')}\n     GROUP BY t.commit_number"
        for table in tables
    ]
    counted.append(
        f"    SELECT r.row_commit_number AS commit_number, COUNT(*) AS row_count FROM {sql.prefix}retracted_row AS r\n"
        f"     WHERE {sql.in_range('r')}\n       AND r.table_name IN ({named})\n     GROUP BY r.row_commit_number"
    )
    union = "\n    UNION ALL\n".join(counted)
    return (
        f"WITH counted AS (\n{union}\n), summed AS (\n"
        "    SELECT n.commit_number, SUM(n.row_count) AS row_count FROM counted AS n GROUP BY n.commit_number\n)\n"
        f"SELECT {sql.top}l.commit_number, l.kind, l.first_sequence_number, l.last_sequence_number,"
        " l.rows_appended, COALESCE(s.row_count, 0) AS row_count\n"
        f"  FROM {sql.prefix}batch_ledger AS l\n  LEFT JOIN summed AS s ON s.commit_number = l.commit_number\n"
        f" WHERE {sql.of_partition('l')}\n"
        f"   AND l.first_sequence_number >= {sql.mark}first_sequence_number\n"
        f"   AND l.last_sequence_number <= {sql.mark}last_sequence_number\n"
        f"   AND l.rows_appended <> COALESCE(s.row_count, 0)\n ORDER BY l.commit_number{sql.limit};"
    )


def ordinal_text(row_class: type) -> str:
    """Number the states of one event by their keys, because a state has no ordinal."""
    order = ", ".join(f"t.{quoted(name)}" for name in row_table(row_class).key)
    return f"ROW_NUMBER() OVER (PARTITION BY t.sequence_number ORDER BY {order}) - 1"


_TEXTS: Mapping[str, Callable[[type, Dialect], str]] = {
    "select_placed": _placed,
    "count_states": _count_states,
    "count_rows": _count_rows,
    "next_partition": _next_partition,
    "next_number": _next_number,
    "select_range": _range,
    "find_lettered": _lettered,
    "select_subject": _select_subject,
    "stub_subject": _stub_subject,
    "delete_subject": _delete_subject,
}
