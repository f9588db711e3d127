"""core/model/rows.py: rows name their table once, and references are looked up by it."""

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


def test_an_appended_row_names_its_table_and_columns() -> None:
    assert row_table(Seen) == RowTable("thing_seen", ("thing_id", "times"), ())


def test_a_state_names_its_key_in_the_order_given() -> None:
    assert row_table(Thing) == RowTable("thing", ("thing_id", "kind", "colour"), ("kind", "thing_id"))
    assert ReferenceKey.of(Thing("t", "k", None)) == ReferenceKey(Thing, ("k", "t"))


def test_a_class_that_was_never_declared_is_no_row() -> None:
    with pytest.raises(InvalidTransform, match="str is not a row: declare it"):
        row_table(str)


def test_a_declaration_is_not_inherited() -> None:
    class Heir(Home):
        pass

    with pytest.raises(InvalidTransform, match="Heir"):
        row_table(Heir)


def test_a_reference_is_found_by_the_values_of_its_key() -> None:
    thing = Thing("t", "k", "red")
    references = References({ReferenceKey.of(thing): thing, ReferenceKey.of(home("t")): home("t")})
    assert references.find(Thing, "k", "t") is thing
    assert references.get(Thing, "k", "t") is thing
    assert references.find(Thing, "t", "k") is None
    assert references.find(Home, "t") == home("t")


def test_a_missing_reference_is_named() -> None:
    with pytest.raises(MissingReference, match=r"^thing k, t is not registered$"):
        References({}).get(Thing, "k", "t")


def test_learning_does_not_reach_back_to_the_rows_that_were_read() -> None:
    read = {ReferenceKey.of(home()): home(armed=False)}
    References(read).learn(home(armed=True))
    assert read == {ReferenceKey.of(home()): home(armed=False)}
