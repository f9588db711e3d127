"""Reads the rows that the store wrote into either database, as the same values."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, cast

from core.model.rows import Row, declared, row_table
from core.store.columns import fields_of, quoted, types_of
from tests.fakes.kept import KeptAttempt, KeptGap, KeptLetter, KeptRange, KeptRetracted, KeptRow

PLACE = ("stream_id", "partition_id", "sequence_number")
LETTER = (
    *PLACE, "offset_token", "enqueued_at", "partition_key", "properties", "body", "error_class", "error_type", "error",
    "fingerprint", "transform_version", "status", "attempts", "due_at", "failed_at",
    "body_kept", "lost_claims", "claimed_by", "claimed_until", "began_at", "settled_at", "settled_why",
)  # fmt: skip
GAP = (
    "stream_id", "partition_id", "first_sequence_number", "last_sequence_number", "found_at", "status", "attempts",
)  # fmt: skip
RANGE = (
    "stream_id", "partition_id", "commit_number", "first_sequence_number", "last_sequence_number", "written",
    "filtered", "dead_lettered", "absent", "rows_written", "transform_version", "invocation_id", "committed_at",
)  # fmt: skip
ATTEMPT = (
    *PLACE, "attempt", "touched_by", "kind", "status", "error_class", "error", "commit_number", "done_by", "why",
)  # fmt: skip
RETRACTED = (
    "stream_id", "partition_id", "commit_number", "table_name", "sequence_number", "ordinal", "row_commit_number",
    "row",
)  # fmt: skip


class Eyes:
    """Reads through separate statements, on a connection that its subclass has."""

    def read_in_order(self, text: str, order: str) -> list[Any]:
        """Run a SELECT with `{p}` before its table, ordered by partition and then by these columns."""
        raise NotImplementedError

    def rows(self, row_class: type) -> list[KeptRow]:
        table = row_table(row_class)
        ordinal = () if table.key else ("ordinal",)
        columns = (*PLACE, *ordinal, "commit_number", *table.columns)
        found = self._select(table.name, columns, ("sequence_number", *(table.key or ordinal)))
        lineage = 5 - bool(table.key)
        kept: list[list[Any]] = [
            [*one[:3], None if table.key else one[3], one[lineage - 1], _row(row_class, one[lineage:])] for one in found
        ]
        return [KeptRow(*one) for one in kept]

    def letters(self) -> list[KeptLetter]:
        return [_letter(list(one)) for one in self._select("event_hub_dead_letter", LETTER, ("sequence_number",))]

    def ledger(self) -> list[KeptRange]:
        return self._ranges("batch")

    def retries(self) -> list[KeptRange]:
        return self._ranges("retry")

    def replays(self) -> list[KeptRange]:
        return self._ranges("replay")

    def attempts(self) -> list[KeptAttempt]:
        found = self._select("dead_letter_attempt", ATTEMPT, ("sequence_number", "attempt"))
        return [KeptAttempt(*one) for one in found]

    def retracted(self) -> list[KeptRetracted]:
        order = ("commit_number", "table_name", "sequence_number", "ordinal")
        return [_retracted(one) for one in self._select("retracted_row", RETRACTED, order)]

    def gaps(self) -> list[KeptGap]:
        found = self._select("sequence_gap", GAP, ("first_sequence_number",))
        kept: list[list[Any]] = [[*one[:4], instant(one[4]), *one[5:]] for one in found]
        return [KeptGap(*one) for one in kept]

    def staged(self) -> list[tuple[str, int]]:
        return [one[1:] for one in self._select("staged_event", PLACE, ("sequence_number",))]

    def _ranges(self, kind: str) -> list[KeptRange]:
        found = self._select("batch_ledger", (*RANGE, "kind"), ("commit_number",))
        kept: list[list[Any]] = [[*one[:-2], instant(one[-2])] for one in found if one[-1] == kind]
        return [KeptRange(*one) for one in kept]

    def _select(self, table: str, columns: tuple[str, ...], order: tuple[str, ...]) -> list[tuple[Any, ...]]:
        chosen, ordered = (", ".join(f"t.{quoted(name)}" for name in names) for names in (columns, order))
        return [tuple(one) for one in self.read_in_order(f"SELECT {chosen} FROM {{p}}{table} AS t", ordered)]


def instant(value: Any) -> datetime:
    """Return an instant of a column: SQLite gives a text, SQL Server a time without a zone, and its JSON a text."""
    given = datetime.fromisoformat(value) if isinstance(value, str) else value
    return cast(datetime, given if given.tzinfo else given.replace(tzinfo=UTC))


READERS: Mapping[type, Callable[[Any], object]] = {
    datetime: instant,
    date: lambda value: date.fromisoformat(value) if isinstance(value, str) else value,
    Decimal: lambda value: Decimal(str(value)),
    bool: bool,
    float: float,
}


def _row(row_class: type, values: tuple[Any, ...]) -> Row:
    typed = zip(fields_of(row_class), values, strict=True)
    return cast(Row, row_class(*(_value(hint, value) for (_, hint), value in typed)))


def _value(hint: Any, value: Any) -> Any:
    kind = next((one for one in types_of(hint) if one in READERS), None)
    return value if value is None or kind is None else READERS[kind](value)


def _retracted(one: tuple[Any, ...]) -> KeptRetracted:
    row_class = {row_table(each).name: each for each in declared()}[one[3]]
    columns = json.loads(one[7])
    values: list[Any] = [*one[:7], _row(row_class, tuple(columns[name] for name in row_table(row_class).columns))]
    return KeptRetracted(*values)


def _letter(values: list[Any]) -> KeptLetter:
    for at in (4, 15, 16, 20, 21, 22):
        values[at] = None if values[at] is None else instant(values[at])
    values[6], values[7], values[17] = json.loads(values[6]), bytes(values[7]), bool(values[17])
    return KeptLetter(*values)
