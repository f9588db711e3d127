"""Fields: their types and the names of their columns."""

import pytest

from core.model.aggregates import ADDED
from hubledger.cli.output import Refused
from hubledger.cli.scaffold.design import checked, column_of, field_of, new_field


def test_a_field_is_read_as_it_is_written() -> None:
    for given in ("id:text(32)", "id:ascii(8)?", "n:integer", "p:decimal?", "at:instant", "raw:json", "d:date"):
        assert f"{field_of(given).name}:{field_of(given).written}" == given


def test_a_text_without_a_length_has_the_usual_one() -> None:
    assert field_of("note:text").length == 200
    assert field_of("note: text? ").is_optional


@pytest.mark.parametrize(
    "given", ["id", "id:int", ":text", "id:integer(4)", "id:text(0)", "id:text(4001)", "id:json(9)"]
)
def test_a_field_that_is_no_field_is_refused(given: str) -> None:
    with pytest.raises(Refused):
        field_of(given)


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "x" * 101])
def test_a_name_that_no_body_can_declare_is_refused(name: str) -> None:
    with pytest.raises(Refused):
        new_field(name, "text")


def test_columns_are_named_in_words_of_ascii() -> None:
    names = {"orderId": "order_id", "HTTPCode": "http_code", "_id": "id", "Größe": "grosse", "9lives": "n_9lives"}
    assert {name: column_of(name) for name in names} == names
    assert column_of("日本") == "u_65e5_672c"


def test_a_column_never_hides_a_word_of_python_or_a_column_of_the_store() -> None:
    words = ["class", "None", "sequence_number", "partition_id", "window_start", "str", "datetime", "field", "self"]
    words += ADDED
    assert [column_of(name) for name in words] == [f"{name.lower()}_" for name in words]
    assert column_of("hubledger_taken") == "taken"  # the names of our own begin so
    assert column_of("select") == "select"  # tables have words of SQL in brackets


def test_fields_that_differ_in_case_only_have_columns_of_their_own() -> None:
    found = checked([field_of("orderId:text"), field_of("order_id:text"), field_of("ORDER_ID:text")])
    assert [one.column for one in found] == ["order_id", "order_id_2", "order_id_3"]


def test_a_field_that_is_named_twice_is_refused() -> None:
    with pytest.raises(Refused, match="twice"):
        checked([field_of("a:text"), field_of("a:integer")])


def test_no_field_and_too_many_fields_are_refused() -> None:
    for fields in ([], [field_of(f"f{number}:integer") for number in range(1001)]):
        with pytest.raises(Refused, match="1 to 1000"):
            checked(fields)
