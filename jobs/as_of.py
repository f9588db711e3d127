"""The SQL of the rows that count at a cut, for every engine.

A row has the commit that wrote it, and, once a replay removed it, the commit of that replay. It counts at the cut C of
its partition when written <= C, and not removed or removed > C. A run (f, t] adds the rows with f < written <= t that
count at t, and takes away the rows that counted at f and were removed in (f, t]. So its result follows from its cuts,
whenever it is computed. Rows that stand and rows that were removed are read in one statement, which sees one moment:
no replay moves a row from one table to the other between two reads.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from core.model.aggregates import WINDOW_START, Aggregate
from core.model.ports import utc_text
from core.model.rows import ERASED, OURS, row_table, texts_of
from jobs.ranges import CommitSpan, Slice, checkpoints_of, commits_where, place_where, quoted, rows_where
from jobs.transforms import source_columns, window_columns

WRITTEN, REMOVED = f"{OURS}written_by", f"{OURS}removed_by"  # the commits of a row
NEVER = 2**63 - 1  # in place of the commit that removed a row: it stands
EACH = 1_000  # windows of a statement
COUNTED = 50  # counts of one statement
ASCII = "ascii"  # the type of a wanted text whose column has a byte for each letter, which Spark does not know
SINCE, UNTIL = f"{OURS}since", f"{OURS}until"  # the columns of a wanted window, with those of the key
Window = Mapping[str, Any]  # the key of a window


class Words:
    """The SQL of SQLite, whose CROSS JOIN keeps the order: each wanted window seeks. SQL Server has other words.

    `prefix` is before the names of tables, `join` keeps the order where there is a choice, and `zone` ends the text of
    an instant. A column is given with its type in Spark.
    """

    prefix: str = ""
    join: str = "CROSS JOIN"
    zone: str = "Z"

    def named(self, column: str) -> str:
        """Return a column's name in SQL."""
        return f"[{column}]"

    def sent(self, value: str, column: str, kind: str) -> str:
        """Return a value in the form in which it travels, under the name of its column."""
        return f"{value} AS [{column}]"

    def documents(self, columns: Mapping[str, str]) -> str:
        """Return the join that opens the documents of removed rows, if the engine needs one."""
        return ""

    def member(self, column: str, kind: str) -> str:
        """Return a column of a removed row."""
        return f"r.[row] ->> '{column}'"

    def places(self, cut: Sequence[CommitSpan]) -> str:
        """Return the table of the last commits of partitions, with the alias c."""
        rows = json.dumps([[one.stream_id, one.partition_id, one.up_to] for one in cut])
        columns = "value ->> 0 AS stream_id, value ->> 1 AS partition_id, value ->> 2 AS up_to"
        return f"(SELECT {columns} FROM json_each({quoted(rows)})) AS c"

    def wanted(self, kinds: Mapping[str, str], windows: Sequence[Window]) -> str:
        """Return the table of wanted windows, with the alias k.

        DISTINCT has the windows computed once, and a typed column can have an index where a join needs one.
        """
        columns, values = [], []
        for place, (name, kind) in enumerate(kinds.items()):
            columns.append(f"CAST(value ->> {place} AS {'INTEGER' if kind == 'bigint' else 'TEXT'}) AS [{name}]")
            found = [one[name].date().isoformat() if kind == "date" else one[name] for one in windows]
            values.append(list(map(utc_text, found)) if kind == "timestamp" else found)
        rows = json.dumps(list(zip(*values, strict=True)))
        return f"(SELECT DISTINCT {', '.join(columns)} FROM json_each({quoted(rows)})) AS k"

    def same(self, column: str, wanted: str, kind: str) -> str:
        """Return the condition that a column has the value of a wanted window."""
        return f"{column} = {wanted}"


def counting(of: Aggregate, sql: Words) -> str:
    """Return the query of all rows of an aggregate's source: those that stand, and those that replays removed."""
    columns = _sent(source_columns(of), "s", sql)
    commits = f"s.commit_number AS {WRITTEN}, {NEVER} AS {REMOVED}"
    standing = f"s.stream_id, s.partition_id, s.sequence_number, {commits}"
    return f"SELECT {standing}, {columns} FROM {_source(of, sql)} AS s UNION ALL {removed(of, sql)}"


def removed(of: Aggregate, sql: Words) -> str:
    """Return the query of the rows of an aggregate's source that replays removed."""
    columns = source_columns(of)
    members = ", ".join(sql.sent(sql.member(name, kind), name, kind) for name, kind in columns.items())
    table, name = f"{sql.prefix}retracted_row AS r {sql.documents(columns)}", quoted(row_table(of.source).name)
    lineage = f"r.stream_id, r.partition_id, r.sequence_number, r.row_commit_number AS {WRITTEN}"
    where = f"r.table_name = {name} AND {whole(sql)}"
    return f"SELECT {lineage}, r.commit_number AS {REMOVED}, {members} FROM {table} WHERE {where}"


def whole(sql: Words) -> str:
    """Return the condition that a removed row still has its columns: no erasure has blanked it."""
    return f"r.{sql.named('row')} <> '{ERASED}'"


def written_query(spans: Sequence[CommitSpan], sql: Words) -> str:
    """Return the query of the rows that the ledger counts for these spans, with the time of their first commit.

    Commits of every kind count, because each has the rows that it wrote itself. Purged commits are not counted.
    """
    ledger, place = f"{sql.prefix}batch_ledger", "SELECT stream_id, partition_id,"
    first_at = sql.sent("MIN(committed_at)", "first_at", "timestamp")
    written = (
        f"{place} COALESCE(SUM(CAST(rows_appended AS bigint)), 0) AS rows_appended, CAST(0 AS bigint) AS uncounted,"
        f" {first_at} FROM {ledger} WHERE {' OR '.join(f'({commits_where(one)})' for one in spans)}"
        " GROUP BY stream_id, partition_id"
    )
    begun = " OR ".join(f"({commits_where(one)})" for one in spans if one.after == 0)
    if not begun:
        return written
    return (
        f"{written} UNION ALL {place} CAST(0 AS bigint) AS rows_appended, MAX(commit_number) AS uncounted,"
        f" {first_at.replace('committed_at', 'purged_at')} FROM (SELECT stream_id, partition_id,"
        f" purged_commit AS commit_number, purged_at FROM {checkpoints_of(ledger)}) AS k WHERE {begun}"
        " GROUP BY stream_id, partition_id"
    )


def count_queries(table: str, slices: Sequence[Slice], spans: Sequence[CommitSpan], sql: Words) -> Iterator[str]:
    """Yield the SQL that counts by partition a table's rows in these slices, and the rows that the commits of these
    spans wrote and a replay removed. Without slices, it is a replay within the spans.

    Rows that an erasure took away count as removed. Both counts of a partition follow one another, so that a replay
    rarely comes between them.
    """
    parts = []
    for one in slices:
        found = f"{sql.prefix}{table} WHERE {rows_where(one, f'{sql.prefix}event_hub_dead_letter')}"
        parts.append((one.stream_id, one.partition_id, found))
    for span in spans:
        written = f"row_commit_number > {span.after} AND row_commit_number <= {span.up_to}"
        removed = f"commit_number > {span.after} AND table_name = {quoted(table)}"
        removed += "" if slices else f" AND (commit_number <= {span.up_to} OR NOT {whole(sql)})"
        found = f"{sql.prefix}retracted_row AS r WHERE {place_where(span)} AND {removed} AND {written}"
        parts.append((span.stream_id, span.partition_id, found))
    texts = [
        f"SELECT {stream_id} AS stream_id, {quoted(of)} AS partition_id, COUNT(*) AS rows_found FROM {counted}"
        for stream_id, of, counted in sorted(parts, key=lambda part: part[:2])
    ]
    for at in range(0, len(texts), COUNTED):
        yield " UNION ALL ".join(texts[at : at + COUNTED])


def counted_where(one: Slice, letters: str = "event_hub_dead_letter") -> str:
    """Return the condition of a slice's rows that count at its cut.

    The sign keeps an index of removals away: by its number, a slice seeks no more removed rows than it holds.
    """
    cut = NEVER - 1 if one.cut is None else one.cut
    return f"{rows_where(one, letters, WRITTEN)} AND +{REMOVED} > {cut}"


def removed_where(span: CommitSpan) -> str:
    """Return the condition of the rows that counted before a span, and that its replays removed."""
    counted = f"{place_where(span)} AND {WRITTEN} <= {span.after}"
    return f"{counted} AND {REMOVED} > {span.after} AND {REMOVED} <= {span.up_to}"


def rows_of_windows(of: Aggregate, windows: Sequence[Window], cut: Sequence[CommitSpan], sql: Words) -> str:
    """Return the query of the rows of some windows that count at a cut, which is a span from each first commit.

    Each partition seeks each time once, however many windows have it, and the keys match within the index.
    """
    kinds = source_columns(of)
    narrow = [name for name, text in texts_of(of.source).items() if text.ascii]
    wanted_kinds = _wanted_kinds(of, kinds[of.at], narrow)
    wanted = sql.wanted(wanted_kinds, [_with_ends(of, one) for one in windows])
    times = f"(SELECT DISTINCT {SINCE}, {UNTIL} FROM {wanted}) AS t"
    standing = {name: f"s.{sql.named(name)}" for name in kinds}
    gone = {name: sql.member(name, kind) for name, kind in kinds.items()}
    members = ", ".join(sql.sent(gone[name], name, kind) for name, kind in kinds.items())
    places, join, after = sql.places(cut), sql.join, "r.row_commit_number <= c.up_to AND r.commit_number > c.up_to"
    return (
        f"SELECT {_sent(kinds, 's', sql)} FROM {places} CROSS JOIN {times}"
        f" {join} {_source(of, sql)} AS s ON {_of_place('s', sql)} AND {_in_time(standing[of.at], 't')}"
        f" {join} {wanted} ON k.{SINCE} = t.{SINCE} AND {_of_key(of, standing, sql)}"
        f" WHERE s.commit_number <= c.up_to"
        f" UNION ALL SELECT {members} FROM {places}"
        f" {join} {sql.prefix}retracted_row AS r ON {_of_place('r', sql)} AND {after} {sql.documents(kinds)}"
        f" INNER JOIN {wanted} ON {_of_key(of, gone, sql)} AND {_in_time(gone[of.at], 'k')}"
        f" WHERE r.table_name = {quoted(row_table(of.source).name)} AND {whole(sql)}"
    )


def standing_windows(of: Aggregate, windows: Sequence[Window], sql: Words) -> str:
    """Return the query of the stored windows among some, with the run that touched each last."""
    kinds = window_columns(of)
    narrow = [one.name for one in of.grouped_by if one.ascii]
    wanted = sql.wanted(_wanted_kinds(of, "timestamp", narrow), [_with_ends(of, one) for one in windows])
    names = {one.name: sql.named(one.name) for one in of.grouped_by}
    keys = [sql.same(f"a.{text}", f"k.{text}", kinds[name]) for name, text in names.items()]
    match = " AND ".join([*keys, f"a.{WINDOW_START} = k.{SINCE}"])
    return (
        f"SELECT {_sent(kinds, 'a', sql)}, a.run_number FROM {wanted} {sql.join} {sql.prefix}{of.name} AS a ON {match}"
    )


def portions(windows: Sequence[Window]) -> Iterable[Sequence[Window]]:
    """Return windows in portions of few times, one for each statement."""
    by_time = sorted(windows, key=lambda one: one[WINDOW_START])
    return (by_time[at : at + EACH] for at in range(0, len(by_time), EACH))


def _of_place(alias: str, sql: Words) -> str:
    partition = sql.same(f"{alias}.partition_id", "c.partition_id", "string")
    return f"{alias}.stream_id = c.stream_id AND {partition}"


def _of_key(of: Aggregate, columns: Mapping[str, str], sql: Words) -> str:
    kinds = source_columns(of)
    keys = [sql.same(columns[one.name], f"k.{sql.named(one.name)}", kinds[one.name]) for one in of.grouped_by]
    return " AND ".join(keys)


def _in_time(at: str, alias: str) -> str:
    return f"{at} >= {alias}.{SINCE} AND {at} <= {alias}.{UNTIL}"


def _wanted_kinds(of: Aggregate, at: str, narrow: Sequence[str]) -> dict[str, str]:
    kinds = {**source_columns(of), **dict.fromkeys(narrow, ASCII)}
    return {**{one.name: kinds[one.name] for one in of.grouped_by}, SINCE: at, UNTIL: at}


def _with_ends(of: Aggregate, window: Window) -> Window:
    begin: datetime = window[WINDOW_START]
    return {**window, SINCE: begin, UNTIL: begin + (of.window - timedelta(microseconds=1))}  # year 10000 is no datetime


def _sent(columns: Mapping[str, str], alias: str, sql: Words) -> str:
    return ", ".join(sql.sent(f"{alias}.{sql.named(name)}", name, kind) for name, kind in columns.items())


def _source(of: Aggregate, sql: Words) -> str:
    return f"{sql.prefix}{row_table(of.source).name}"
