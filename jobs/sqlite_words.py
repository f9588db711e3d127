"""The words of SQLite for `jobs/as_of.py`: values travel as they are stored, and instants are texts."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from core.model.ports import utc_text
from jobs.ranges import CommitSpan
from jobs.tables import quoted

_TYPES = {"bigint": "INTEGER"}


class SqliteWords:
    """The SQL of SQLite. Its CROSS JOIN keeps the order: each wanted window seeks."""

    prefix = ""
    join = "CROSS JOIN"

    def named(self, column: str) -> str:
        return f"[{column}]"

    def sent(self, value: str, column: str, kind: str) -> str:
        return f"{value} AS [{column}]"

    def documents(self, columns: Mapping[str, str]) -> str:
        return ""

    def member(self, column: str, kind: str) -> str:
        return f"r.[row] ->> '{column}'"

    def places(self, cut: Sequence[CommitSpan]) -> str:
        rows = json.dumps([[one.stream_id, one.partition_id, one.up_to] for one in cut])
        columns = "value ->> 0 AS stream_id, value ->> 1 AS partition_id, value ->> 2 AS up_to"
        return f"(SELECT {columns} FROM json_each({quoted(rows)})) AS c"

    def wanted(self, kinds: Mapping[str, str], windows: Sequence[Mapping[str, Any]]) -> str:
        """DISTINCT has the windows computed once, and a typed column can have an index where a join needs one."""
        rows = json.dumps([[_text(one[name], kind) for name, kind in kinds.items()] for one in windows])
        typed = (f"CAST(value ->> {place} AS {_TYPES.get(kind, 'TEXT')})" for place, kind in enumerate(kinds.values()))
        columns = ", ".join(f"{value} AS [{name}]" for value, name in zip(typed, kinds, strict=True))
        return f"(SELECT DISTINCT {columns} FROM json_each({quoted(rows)})) AS k"

    def same(self, column: str, wanted: str, kind: str) -> str:
        return f"{column} = {wanted}"


def _text(value: Any, kind: str) -> Any:
    if kind == "timestamp":
        return utc_text(value)
    return value.date().isoformat() if kind == "date" else value
