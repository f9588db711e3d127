import re
from collections.abc import Callable

import pytest

from core.model.aggregates import ADDED
from hubledger.cli.output import Refused
from hubledger.cli.scaffold import design as scaffold_design
from hubledger.cli.scaffold.design import Design, Wish, base_of, camel, checked, column_of, field_of, refuse_name
from hubledger.cli.scaffold.modules import aggregate_text


def test_a_field_is_read_as_it_is_written() -> None:
    for given in ("id:text(32)", "id:ascii(8)?", "n:integer", "p:decimal?", "at:instant", "raw:json", "d:date"):
        assert f"{field_of(given).name}:{field_of(given).written}" == given
    assert field_of("note:text").length == 200
    assert field_of("note: text? ").is_optional


def scans(table: str) -> None:
    scaffold_design.refuse_tables(
        design(Wish("parcels", table=table or None)), {"parcels_by_hour_staged": "apps/scans"}
    )


REFUSED: dict[str, tuple[Callable[..., object], tuple[object, ...]]] = {  # by what is said
    "field": (field_of, ("id", "id:int", ":text", "id:integer(4)", "id:text(0)", "id:text(4001)", "id:json(9)")),
    "name": (lambda name: scaffold_design.new_field(name, "text"), ('a"b', "a\\b", "a\nb", "x" * 101)),
    "twice": (checked, ([field_of("a:text"), field_of("a:integer")],)),
    "1 to 1000": (checked, ([], [field_of(f"f{number}:integer") for number in range(1001)])),
    "the name": (
        refuse_name, ("my-room", "a.b", "class", "match", "tests", "Parcels", "", "1x", "_x", "é", "x" * 41),
    ),
    "belongs to apps/scans": (scans, ("",)),
    "--table": (scans, ("order", "my-table", "x" * 128)),
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSED)
def test_what_no_room_can_have_is_refused(why: str) -> None:
    call, wrong = REFUSED[why]
    for given in wrong:
        with pytest.raises(Refused, match=why):
            call(given)
    for name in ("parcels", "lost_parcels2", "print"):
        refuse_name(name)


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
    found = checked([field_of("orderId:text"), field_of("order_id:text"), field_of("ORDER_ID:text")])
    assert [one.column for one in found] == ["order_id", "order_id_2", "order_id_3"]


FIELDS = (
    *("at:instant?", "scanned:instant", "parcel:text(40)", "depot:text", "weight:float", "count:integer"),
    "story:text(451)",
)


def design(wish: Wish, *fields: str, **lengths: int) -> Design:
    return scaffold_design.design_of(wish, [field_of(one) for one in fields or FIELDS], lengths, ())


def test_an_event_is_named_by_the_singular() -> None:
    names = {
        "parcels": "parcel", "order_events": "order", "deliveries": "delivery", "addresses": "address",
        "boxes": "box", "status": "status", "analysis": "analysis", "gas": "ga",
    }  # fmt: skip
    assert {name: base_of(name) for name in names} == names
    assert camel("lost_parcel") == "LostParcel"


def test_without_a_choice_the_first_fitting_fields_are_taken_and_a_key_makes_a_state() -> None:
    found = design(Wish("parcels"))
    assert (found.key, found.at, found.by) == ((), field_of("scanned:instant"), field_of("parcel:text(40)"))
    assert found.tables == ("parcel_event", "parcels_by_hour", "parcels_by_hour_staged")
    found = design(Wish("parcels", key=("depot", "count")))
    assert ([one.name for one in found.key], found.by) == (["depot", "count"], field_of("depot:text"))
    assert "parcel_state" in found.tables
    assert design(Wish("parcels", key=("parcel",), table="scan")).tables[:2] == ("scan", "scan_state")
    assert design(Wish("x", key=("order_id",)), "orderId:text").key[0].name == "orderId"
    for fields in (("name:text", "day:date"), ("at:instant", "weight:float"), ("at:instant", "story:text(400)")):
        assert not design(Wish("x"), *fields).has_aggregate


def test_the_texts_of_a_key_get_a_length_that_a_key_holds_and_other_texts_keep_theirs() -> None:
    fields = ("a:text(4000)", "b:text(4000)", "c:text(4000)", "d:text(9)", "at:instant")
    found = design(Wish("x", key=("a", "d")), *fields, a=5, b=5)
    assert [one.written for one in found.fields[:4]] == ["text(200)", "text(4000)", "text(4000)", "text(9)"]
    found = design(Wish("x", key=("a", "b", "c")), *fields, a=5, b=21, c=5)
    assert [one.length for one in found.key] == [40, 100, 40]


def test_a_grouping_is_chosen_only_for_an_aggregate_and_from_texts_that_a_key_can_have() -> None:
    assert design(Wish("x"), "a:text(4000)", a=5).fields == (field_of("a:text(4000)"),)
    found = design(Wish("x"), "story:text(4000)", "padded:text(4000)", "a:text(4000)", "at:epoch_ms", story=101, a=100)
    assert (found.by, found.at) == (field_of("a:text(200)"), field_of("at:epoch_ms"))
    assert [one.length for one in found.fields[:2]] == [4000, 4000]
    assert design(Wish("x"), "maybe:text(9)?", "a:text(9)", "at:instant").by == field_of("a:text(9)")
    assert design(Wish("x", key=("a",)), "a:text(9)").by is None


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        (Wish("x", key=("nope",)), "no such field"),
        (Wish("x", key=("at",)), "a key needs one"),
        (Wish("x", key=("weight",)), "it is float"),
        (Wish("x", key=("story",)), "--key story: its texts are too long for a key, or one ends with a blank"),
        (Wish("x", at="at"), "instant with a zone that every event has"),
        (Wish("x", at="depot"), "it is text"),
    ],
)
def test_a_choice_that_does_not_fit_is_refused(wish: Wish, why: str) -> None:
    with pytest.raises(Refused, match=why):
        design(wish)


def test_numbers_that_name_a_thing_or_a_time_are_not_summed() -> None:
    names = (
        "serial", "serial_number", "customer_no", "zip", "seq", "offset", "epoch_ms", "timestamp", "created_at_ms",
        "unix_time", "ts", "year", "device_key", "imei", "count", "total_ms", "keyboards", "amount", "offers",
    )  # fmt: skip
    found = design(Wish("orders"), "id:ascii", "at:instant", *(f"{name}:integer" for name in names))
    assert found.at is not None
    assert found.by is not None
    text = aggregate_text(found, found.at, found.by)
    assert re.findall(r'Sum\("(\w+)"\)', text) == ["count", "total_ms", "keyboards", "amount", "offers"]
