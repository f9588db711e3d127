"""The words of SQL Server for `jobs/as_of.py`: instants and days travel as microseconds since 1970."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from core.model.aggregates import EPOCH
from core.model.ports import utc_text
from core.model.rows import OURS
from jobs.ranges import CommitSpan
from jobs.tables import quoted

TIMES = ("timestamp", "date")
MICROS = "CONVERT(bigint, DATEDIFF_BIG(microsecond, CONVERT(datetime2(7), '1970-01-01'), {}))"
BY_CODE_POINT = " COLLATE Latin1_General_100_BIN2"
_SENT = {"string": "nvarchar(max)", "bigint": "bigint", "timestamp": "varchar(40)", "date": "varchar(40)"}
_MEMBERS = {
    "string": f"j.[{{}}]{BY_CODE_POINT}",  # a text of a document has the database's collation, ids have this one
    "bigint": "j.[{}]",
    "timestamp": "CONVERT(datetime2(7), j.[{}], 127)",  # with a T and a Z
    "date": "CONVERT(date, j.[{}], 23)",
}


@dataclass(frozen=True, slots=True)
class ServerWords:
    """The SQL of SQL Server; tests name that of their stand-in.

    An instant never travels as a JDBC timestamp, because Java reads that in the time zone of its machine. `members`:
    columns of a removed row by their type in Spark; `instant`: a literal from its text or its microseconds.
    """

    prefix: str = "hubledger."
    join: str = "INNER JOIN"
    micros: str = MICROS
    name: str = "[{}]"
    opened: str = "CROSS APPLY OPENJSON(r.[row]) WITH ({}) AS j"
    members: Mapping[str, str] = field(default_factory=lambda: _MEMBERS)
    instant: str = "CONVERT(datetime2(7), '{text}', 126)"
    text: str = "N{}"
    by_code_point: str = BY_CODE_POINT

    def named(self, column: str) -> str:
        return self.name.format(column)

    def sent(self, value: str, column: str, kind: str) -> str:
        if kind in TIMES:
            return f"{self.micros.format(value)} AS {self.named(f'{OURS}{column}')}"
        return f"{value} AS {self.named(column)}"

    def documents(self, columns: Mapping[str, str]) -> str:
        typed = (f"""{self.named(name)} {_SENT[kind]} '$."{name}"'""" for name, kind in columns.items())
        return self.opened.format(", ".join(typed))

    def member(self, column: str, kind: str) -> str:
        return self.members[kind].format(column)

    def places(self, cut: Sequence[CommitSpan]) -> str:
        rows = ", ".join(f"({one.stream_id}, {quoted(one.partition_id)}, {one.up_to})" for one in cut)
        return f"(VALUES {rows}) AS c (stream_id, partition_id, up_to)"

    def wanted(self, kinds: Mapping[str, str], windows: Sequence[Mapping[str, Any]]) -> str:
        rows = (", ".join(self._literal(one[name], kind) for name, kind in kinds.items()) for one in windows)
        values = ", ".join(f"({row})" for row in rows)
        return f"(VALUES {values}) AS k ({', '.join(map(self.named, kinds))})"

    def same(self, column: str, wanted: str, kind: str) -> str:
        return f"{column} = {wanted}{self.by_code_point if kind == 'string' else ''}"

    def _literal(self, value: Any, kind: str) -> str:
        if kind in ("string", "ascii"):  # the column itself is converted where it has bytes and the literal has not
            return quoted(value) if kind == "ascii" and value.isascii() else self.text.format(quoted(value))
        if kind == "timestamp":
            text, micros = utc_text(value)[:-1], (value - EPOCH) // timedelta(microseconds=1)
            return self.instant.format(text=text, micros=micros)
        return f"CONVERT(date, '{value.date().isoformat()}', 23)" if kind == "date" else str(value)
