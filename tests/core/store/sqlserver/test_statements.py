"""core/store/sqlserver/statements.py: values are sent as they are, and one that cannot be sent is refused."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.errors import DataRefused
from core.store.sqlserver.statements import (
    many_json,
    rows_json,
    server_instant_text,
    server_instant_texts,
    without_zone,
)
from tests.sql.values import DECIMALS, LARGEST_DECIMAL

SENDABLE = st.text(st.characters(exclude_categories=["Cs"]))
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@given(st.lists(st.tuples(SENDABLE, st.integers(-(2**63), 2**63 - 1), st.none(), st.booleans()), min_size=1))
def test_rows_are_read_again_as_they_were(rows: list[tuple[str, int, None, bool]]) -> None:
    assert json.loads(rows_json(rows)) == [list(row) for row in rows]


@pytest.mark.parametrize(
    "text",
    ["x" * 5_000, '"' * 5_000, "\\", "\n\r\t\x1f", "\x00", "\ufdd0\ufffe\uffff", "👩‍👩‍👧" * 2_000, "\u2028\x7f"],
    ids=lambda text: f"{len(text)} {text[:3]!a}",
)
def test_a_text_is_sent_as_it_is_whatever_its_length_and_what_it_says(text: str) -> None:
    assert json.loads(rows_json([[text]])) == [[text]]


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(DataRefused, match=r"^the rows cannot be written as JSON: "):
        rows_json([["fine", "a\ud800"]])


def test_values_are_written_as_t_sql_reads_them() -> None:
    row = [datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), date(2026, 1, 2), Decimal("1E+3"), Decimal("-0.1"), 0.5, None]
    assert rows_json([row]) == '[["2026-01-02T03:04:05.000006","2026-01-02","1000","-0.1",0.5,null]]'


def test_an_instant_has_no_zone() -> None:
    assert server_instant_text(NOON) == "2026-01-02T12:00:00.000000"
    assert server_instant_texts([NOON, NOON]) == [server_instant_text(NOON)] * 2
    assert [without_zone(value) for value in ("2026-01-02T12:00:00.000000Z", None, 7)] == [
        "2026-01-02T12:00:00.000000",
        None,
        7,
    ]


def test_further_parameters_come_in_the_order_of_the_columns_with_bytes_in_hex_and_instants_without_a_zone() -> None:
    many = [{"body": b"\x00\xff", "due_at": "2026-01-02T12:00:00.000000Z", "error": "at Z", "more": 1}]
    columns = ("error", "due_at", "body")
    assert many_json(many, columns) == '[["at Z","2026-01-02T12:00:00.000000","00ff"]]'
    assert many_json([], columns) == "[]"


@pytest.mark.parametrize("value", ["0.00000000001", "NaN", "Infinity", "-Infinity", "1E-11"])
def test_a_number_that_the_server_would_round_is_refused(value: str) -> None:
    with pytest.raises(DataRefused):
        rows_json([[Decimal(value)]])


@pytest.mark.parametrize("value", ["0.0000000001", "0.10000000000000", "-0", "1E+20", "1E-10"])
def test_a_number_of_ten_places_is_sent_exactly(value: str) -> None:
    assert Decimal(json.loads(rows_json([[Decimal(value)]]))[0][0]) == Decimal(value)


@pytest.mark.parametrize("value", [object(), b"bytes", 2**64, datetime(2026, 1, 1)])  # noqa: DTZ001
def test_a_value_without_a_form_is_refused(value: object) -> None:
    with pytest.raises(DataRefused):
        rows_json([[value]])


@given(DECIMALS)
@example(LARGEST_DECIMAL)
@example(LARGEST_DECIMAL.copy_negate())
def test_every_decimal_that_a_server_holds_is_sent_with_all_its_digits(number: Decimal) -> None:
    ((text,),) = json.loads(rows_json([[number]]))
    assert (Decimal(text), len(text.lstrip("-").replace(".", "")) <= 38) == (number, True)
