from dataclasses import dataclass

import pytest

from core.errors import InvalidTransform, MissingReference
from core.model.rows import ReferenceKey, References, RowTable, appended_to, row_table, state_of
from examples.home_security.transform import Home
from tests.fakes.builders import home


@appended_to("thing_seen")
@dataclass(frozen=True, slots=True)
class Seen:
    thing_id: str
    times: int


@state_of("thing", key=("kind", "thing_id"))
@dataclass(frozen=True, slots=True)
class Thing:
    thing_id: str
    kind: str
    colour: str | None


def test_a_row_names_its_table_its_columns_and_the_key_of_a_state_in_the_order_given() -> None:
    assert row_table(Seen) == RowTable("thing_seen", ("thing_id", "times"), ())
    assert row_table(Thing) == RowTable("thing", ("thing_id", "kind", "colour"), ("kind", "thing_id"))
    assert ReferenceKey.of(Thing("t", "k", None)) == ReferenceKey(Thing, ("k", "t"))


def test_a_class_that_was_never_declared_is_no_row_and_a_declaration_is_not_inherited() -> None:
    class Heir(Home):
        pass

    for of, match in ((str, "str is not a row: declare it"), (Heir, "Heir")):
        with pytest.raises(InvalidTransform, match=match):
            row_table(of)


def test_a_reference_is_found_by_the_values_of_its_key_and_a_missing_one_is_named() -> None:
    thing = Thing("t", "k", "red")
    references = References({ReferenceKey.of(thing): thing, ReferenceKey.of(home("t")): home("t")})
    assert references.find(Thing, "k", "t") is references.get(Thing, "k", "t") is thing
    assert references.find(Thing, "t", "k") is None
    assert references.find(Home, "t") == home("t")
    with pytest.raises(MissingReference, match=r"^thing k, t is not registered$"):
        References({}).get(Thing, "k", "t")


def test_learning_does_not_reach_back_to_the_rows_that_were_read() -> None:
    read = {ReferenceKey.of(home()): home(armed=False)}
    References(read).learn(home(armed=True))
    assert read == {ReferenceKey.of(home()): home(armed=False)}
