"""Checksums of a commit: of the rows that it appended, and of its own row in the ledger.

The checksum of rows is the sum, table by table, of 64 bits of SHA-256 over the rows as one JSON array: each row is an
array of sequence number, ordinal and columns, in this order, and the rows are sorted by the first two. Stream,
partition and commit are left out: a row that moves between them changes the checksums of both.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

import orjson

from core.model.rows import PlacedRow, row_table
from core.store.columns import compiled_values, instant_texts

POSITION = ("sequence_number", "ordinal")
LEDGER_ROW = (
    "first_sequence_number", "last_sequence_number", "written", "filtered", "dead_lettered", "held", "absent",
    "rows_written", "rows_appended", "transform_version", "invocation_id", "committed_at",
)  # fmt: skip
_MODULUS, _SIGN = 1 << 64, 1 << 63

PositionedValues = Sequence[Sequence[Any]]  # of each row: sequence number, ordinal, columns


class RowsDigest:
    """The checksum of one table's rows, which are given in order and in any number of parts."""

    __slots__ = ("_hash", "_started")

    def __init__(self, table: str) -> None:
        self._hash = hashlib.sha256(table.encode())
        self._started = False

    def add(self, values: PositionedValues) -> None:
        """Add rows after those that were given before."""
        text = orjson.dumps(values, default=_text_of)
        self._hash.update(b"," + text[1:-1] if self._started else text[:-1])
        self._started = True

    def total(self) -> int:
        """Return the checksum as 64 bits with a sign; 0 without rows."""
        if not self._started:
            return 0
        whole = self._hash.copy()
        whole.update(b"]")
        return int.from_bytes(whole.digest()[:8], "big", signed=True)


class CommitDigest:
    """The checksum of all rows of a commit, which are given by table, in order and in any number of parts."""

    __slots__ = ("_tables",)

    def __init__(self) -> None:
        self._tables: dict[str, RowsDigest] = {}

    def add(self, table: str, values: PositionedValues) -> None:
        """Add rows of a table after those that were given before."""
        if values:
            self._tables.setdefault(table, RowsDigest(table)).add(values)

    def total(self) -> int:
        """Return the checksum as 64 bits with a sign."""
        whole = 0
        for digest in self._tables.values():
            whole = added(whole, digest.total())
        return whole


def checksum_of(table: str, values: PositionedValues) -> int:
    """Return the checksum of all rows that a commit appended to a table."""
    digest = RowsDigest(table)
    if values:
        digest.add(values)
    return digest.total()


def checksum_of_rows(row_class: type, rows: Sequence[PlacedRow]) -> int:
    """Return the checksum of rows that are not values yet."""
    return checksum_of(row_table(row_class).name, positioned_values(row_class)(rows))


def added(one: int, other: int) -> int:
    """Return the sum of two checksums, as 64 bits with a sign."""
    return (one + other + _SIGN) % _MODULUS - _SIGN


def ledger_checksum(kind: str, values: Mapping[str, Any]) -> int:
    """Return the checksum of a commit's row in the ledger, without the commit number, which SQL gives."""
    text = orjson.dumps([kind, *(values[name] for name in LEDGER_ROW)])
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big", signed=True)


def with_checksums(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a ledger row with its checksums; a step that appends rows adds theirs to `rows_checksum`."""
    return {**values, "kind": kind, "ledger_checksum": ledger_checksum(kind, values), "rows_checksum": 0}


@cache
def positioned_values(row_class: type) -> Callable[[Sequence[PlacedRow]], PositionedValues]:
    """Return the function from placed rows to the values that a checksum covers."""
    values_of = compiled_values(row_class, POSITION, instant_texts)
    return lambda rows: values_of(rows, 0, "", 0)


def _text_of(value: object) -> str:
    """Return the text of a value that JSON has no form for."""
    if isinstance(value, Decimal):
        return exact_text(value)
    return value.hex() if isinstance(value, bytes) else str(value)


def exact_text(number: Decimal) -> str:
    """Return the same text for equal decimals: without an exponent, and without zeros at the end of the fraction."""
    text = f"{number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
