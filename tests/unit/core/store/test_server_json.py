"""core/store/server_json.py: what is sent holds no escape, and what cannot be sent is refused or mended."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.store.sqlserver.json import FOLDED, LONGEST, PLAIN, can_stand, rows_json, storable_json

UNFOLD = str.maketrans(FOLDED, PLAIN)
REFUSED = ["\x00", *map(chr, range(0xFDD0, 0xFDF0)), "\ufffe", "\uffff"]
SENDABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=REFUSED))


def test_each_folded_character_stands_for_one() -> None:
    assert len(PLAIN) == len(FOLDED) == len(set(PLAIN)) == len(set(FOLDED)) == 33
    assert all(json.dumps(character, ensure_ascii=False)[1] == "\\" for character in PLAIN)


@given(st.lists(st.tuples(SENDABLE, st.integers(-(2**63), 2**63 - 1), st.none()), min_size=1))
def test_rows_are_read_again_without_a_single_escape(rows: list[tuple[str, int, None]]) -> None:
    written, folded = rows_json(rows)
    assert "\\" not in written
    read = [[text.translate(UNFOLD) if folded else text, *rest] for text, *rest in json.loads(written)]
    assert read == [list(row) for row in rows]


def test_texts_that_need_no_folding_stay_as_they_are() -> None:
    assert rows_json([["ß 👩‍👩‍👧 /", True]]) == ('[["ß 👩‍👩‍👧 /",true]]', False)


def test_values_are_written_as_t_sql_reads_them() -> None:
    row = [datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), date(2026, 1, 2), Decimal("1E+3"), Decimal("-0.1"), 0.5, None]
    assert rows_json([row])[0] == '[["2026-01-02T03:04:05.000006","2026-01-02","1000","-0.1",0.5,null]]'


@pytest.mark.parametrize("text", [*REFUSED, "a\x00b", "\ud800", "x" * (LONGEST + 1), "👩" * 2_001, 'x"' * 2_001])
def test_a_text_that_the_server_would_harm_is_refused(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        rows_json([["fine", text]])
    assert not can_stand(("fine", text))


@pytest.mark.parametrize("text", ["x" * LONGEST, "👩" * 2_000, '"' * LONGEST, "ß" * LONGEST])
def test_a_text_of_the_longest_length_is_sent(text: str) -> None:
    written, folded = rows_json([[text]])
    assert json.loads(written)[0][0].translate(UNFOLD if folded else {}) == text
    assert can_stand((text,))


@pytest.mark.parametrize("value", ["0.00000000001", "NaN", "Infinity", "-Infinity", "1E-11"])
def test_a_number_that_the_server_would_round_is_refused(value: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        rows_json([[Decimal(value)]])


@pytest.mark.parametrize("value", ["0.0000000001", "0.10000000000000", "-0", "1E+20", "1E-10"])
def test_a_number_of_ten_places_is_sent_exactly(value: str) -> None:
    assert Decimal(json.loads(rows_json([[Decimal(value)]])[0])[0][0]) == Decimal(value)


@pytest.mark.parametrize("value", [object(), b"bytes", 2**64, datetime(2026, 1, 1)])  # noqa: DTZ001
def test_a_value_without_a_form_is_refused(value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        rows_json([[value]])


@pytest.mark.parametrize("key", [("a", 1), (date(2026, 1, 1),), (datetime(2026, 1, 1, tzinfo=UTC),), (Decimal("1.5"),)])
def test_a_key_of_any_type_can_stand(key: tuple[Any, ...]) -> None:
    assert can_stand(key)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\x00b", "a\ufffdb"),
        ("\ud83d", "\ufffd"),
        ("\ufdd1", "\ufffd"),
        ('say "no"\n', 'say "no"\n'),
        ("x" * LONGEST, "x" * LONGEST),
        ("x" * (LONGEST + 1), "x" * (LONGEST - 1) + "…"),
        ("x" + "👩" * LONGEST, "x" + "👩" * 1_999 + "…"),
        ("👩" * LONGEST, "👩" * 1_999 + "…"),
    ],
)
def test_a_text_of_a_letter_is_mended_and_never_refused(text: str, kept: str) -> None:
    ((read, number, nothing),) = json.loads(storable_json([[text, 7, None]]))
    assert (read.translate(UNFOLD), number, nothing) == (kept, 7, None)


@given(st.text())
def test_a_letter_is_sent_whatever_it_says(text: str) -> None:
    assert "\\" not in storable_json([[text]])
