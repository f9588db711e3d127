"""core/store/columns.py: a value from the columns of a row, by the types of its fields."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import msgspec
import pytest

from core.model.events import SequenceNumber, Span
from core.store.columns import decoded, decoder

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
TEXT = "2026-01-01T12:00:00.000000Z"
ID = UUID("00000000-0000-0000-0000-000000000001")


@dataclass(frozen=True)
class Leaves:
    at: datetime
    day: date | None
    amount: Decimal | None
    id: UUID
    holds: bool
    body: bytes
    number: SequenceNumber | None


class Struck(msgspec.Struct):
    name: str
    properties: Mapping[str, object]


@dataclass(frozen=True)
class Whole:
    first: int
    span: Span | None
    struck: Struck
    last: int | None = None


def test_a_leaf_is_read_by_its_type_and_null_is_none() -> None:
    row = (TEXT, "2026-01-02", "1.50", str(ID), 1, memoryview(b"x"), 2**60)
    assert decoder(Leaves)(row) == Leaves(AT, date(2026, 1, 2), Decimal("1.50"), ID, True, b"x", SequenceNumber(2**60))
    of_a_server = (AT.replace(tzinfo=None), date(2026, 1, 2), Decimal("1.50"), ID.hex, True, b"x", 2**60)
    assert decoder(Leaves)(of_a_server) == decoder(Leaves)(row)
    none = decoder(Leaves)((TEXT, None, None, str(ID), 0, b"", None))
    assert (none.day, none.amount, none.holds, none.number) == (None, None, False, None)


def test_a_value_within_a_value_takes_a_column_for_each_of_its_fields_and_may_be_missing() -> None:
    rows = [(1, 2, 3, "a", '{"k": 7}', 9), (1, None, None, "b", "{}", None)]
    assert decoded(Whole, rows) == (
        Whole(1, Span(SequenceNumber(2), SequenceNumber(3)), Struck("a", {"k": 7}), 9),
        Whole(1, None, Struck("b", {}), None),
    )


def test_a_row_with_another_number_of_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="Whole has 6 columns, and the row 5"):
        decoder(Whole)((1, 2, 3, "a", "{}"))
