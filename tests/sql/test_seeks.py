"""Statements that meet large tables seek: their conditions are those of an index, as no plan can be read here."""

import re

from core.store.queries import load_queries
from tests.offenders import holds_for
from tests.sql.indexes import indexes, sought

LETTERS = "event_hub_dead_letter"
OPEN, HELD = f"ix_{LETTERS}_open", f"ix_{LETTERS}_held"
OF_KEY = ("stream_id", "partition_id", "key_hash")
SEEKS = {  # statement, alias: table, index, the columns that are sought
    ("read_open_keys", "d"): (LETTERS, OPEN, OF_KEY),
    ("find_open_letters", "o"): (LETTERS, OPEN, (*OF_KEY, "sequence_number")),
    ("free_letters", "d"): (LETTERS, HELD, ("stream_id", "partition_id", "held_behind")),
    ("free_letters", "o"): (LETTERS, OPEN, (*OF_KEY, "sequence_number")),
    ("order_letters", "o"): (LETTERS, OPEN, OF_KEY),
    ("free_without_order", "d"): (LETTERS, HELD, ("stream_id",)),
    ("free_without_order", "o"): (LETTERS, OPEN, (*OF_KEY, "sequence_number")),
}


def texts_of(name: str) -> set[str]:
    """Return the texts of a statement, with and without its filters."""
    query = load_queries("sqlserver")[name]
    return {query.text_without(missing) for missing in (frozenset(), query.optional)}


@holds_for(SEEKS)
def test_a_statement_seeks_in_its_index(use: tuple[str, str]) -> None:
    table, name, columns = SEEKS[use]
    index = indexes()[table][name]
    for text in texts_of(use[0]):
        assert re.search(rf"hubledger\.{table} AS {use[1]}\b", text)
        assert sought(text, use[1], index) == columns
        for column in index.filters:
            wanted = re.escape(index.condition) if column == "status" and index.name == OPEN else rf"{column} "
            assert re.search(rf"\b{use[1]}\.{wanted}", text), f"the condition of {name}"


def test_a_column_in_an_expression_is_not_sought() -> None:
    """The texts that this test was made for: they read all earlier letters for each letter."""
    index = indexes()[LETTERS][OPEN]
    place = "o.stream_id = d.stream_id AND o.partition_id = d.partition_id AND"
    assert sought(f"{place} (o.partition_key + N'.') COLLATE x = d.partition_key + N'.'", "o", index) == OF_KEY[:2]
    assert sought(f"{place} o.key_hash = d.key_hash AND o.sequence_number < 7", "o", index) == index.keys
    assert sought("o.stream_id = 1 AND o.partition_id > '0' AND o.key_hash = 0x00", "o", index) == OF_KEY[:2]
    assert sought("o.partition_id = '0'", "o", index) == ()


def test_each_letter_of_a_key_is_found_by_one_seek_and_not_by_a_walk_over_all_earlier_ones() -> None:
    for name in ("find_open_letters", "free_letters"):
        text = load_queries("sqlserver")[name].text
        assert re.search(r"APPLY \(\s+SELECT TOP \(1\) .* ORDER BY o\.sequence_number DESC\) AS \w", text, re.S)
        assert text.endswith("\nOPTION (LOOP JOIN, FORCE ORDER);")
