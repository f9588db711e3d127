"""Reads the rows that the store wrote into either database, as the same values."""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, TypeVar, cast, get_type_hints

from core.model.rows import Row, declared, row_table
from core.store.columns import fields_of, quoted, types_of
from tests.fakes.kept import KeptAttempt, KeptGap, KeptLetter, KeptRange, KeptRetracted, KeptRow

PLACE = ("stream_id", "partition_id", "sequence_number")
COLUMNS = {"offset": "offset_token", "first": "first_sequence_number", "last": "last_sequence_number"}
Kept = TypeVar("Kept")


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
        return self._kept(KeptLetter, "event_hub_dead_letter", ("sequence_number",))

    def ledger(self) -> list[KeptRange]:
        return self._ranges("batch")

    def retries(self) -> list[KeptRange]:
        return self._ranges("retry")

    def replays(self) -> list[KeptRange]:
        return self._ranges("replay")

    def attempts(self) -> list[KeptAttempt]:
        return self._kept(KeptAttempt, "dead_letter_attempt", ("sequence_number", "attempt"))

    def retracted(self) -> list[KeptRetracted]:
        order = ("commit_number", "table_name", "sequence_number", "ordinal")
        return self._kept(KeptRetracted, "retracted_row", order)

    def gaps(self) -> list[KeptGap]:
        return self._kept(KeptGap, "sequence_gap", ("first_sequence_number",))

    def staged(self) -> list[tuple[str, int]]:
        return [one[1:] for one in self._select("staged_event", PLACE, ("sequence_number",))]

    def _ranges(self, kind: str) -> list[KeptRange]:
        kinds = self._select("batch_ledger", ("kind",), ("commit_number",))
        ranges = self._kept(KeptRange, "batch_ledger", ("commit_number",))
        return [one for one, (found,) in zip(ranges, kinds, strict=True) if found == kind]

    def _kept(self, of: type[Kept], table: str, order: tuple[str, ...]) -> list[Kept]:
        """Read a table whose columns have the names of the fields, or those of COLUMNS."""
        hints = get_type_hints(of)
        names = [one.name for one in fields(of)]  # type: ignore[arg-type]
        found = self._select(table, tuple(COLUMNS.get(name, name) for name in names), order)
        made = []
        for one in found:
            values = dict(zip(names, one, strict=True))
            read = {name: _value(hints[name], value) for name, value in values.items() if name != "row"}
            made.append(of(**read, **({"row": _retracted(values)} if "row" in values else {})))
        return made

    def _select(self, table: str, columns: tuple[str, ...], order: tuple[str, ...]) -> list[tuple[Any, ...]]:
        chosen, ordered = (", ".join(f"t.{quoted(name)}" for name in names) for names in (columns, order))
        return [tuple(one) for one in self.read_in_order(f"SELECT {chosen} FROM {{p}}{table} AS t", ordered)]


def instant(value: Any) -> datetime:
    """Return an instant of a column: SQLite gives a text, SQL Server a time without a zone, and its JSON a text."""
    given = datetime.fromisoformat(value) if isinstance(value, str) else value
    return cast(datetime, given if given.tzinfo else given.replace(tzinfo=UTC))


READERS: Mapping[Any, Callable[[Any], object]] = {
    datetime: instant,
    date: lambda value: date.fromisoformat(value) if isinstance(value, str) else value,
    Decimal: lambda value: Decimal(str(value)),
    bool: bool,
    float: float,
    bytes: bytes,
    Mapping[str, object]: json.loads,
}


def _row(row_class: type, values: tuple[Any, ...]) -> Row:
    typed = zip(fields_of(row_class), values, strict=True)
    return cast(Row, row_class(*(_value(hint, value) for (_, hint), value in typed)))


def _value(hint: Any, value: Any) -> Any:
    kind = hint if hint in READERS else next((one for one in types_of(hint) if one in READERS), None)
    return value if value is None or kind is None else READERS[kind](value)


def _retracted(values: Mapping[str, Any]) -> Row:
    row_class = {row_table(each).name: each for each in declared()}[values["table_name"]]
    columns = json.loads(values["row"])
    return _row(row_class, tuple(columns[name] for name in row_table(row_class).columns))
