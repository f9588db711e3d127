"""core/store/queries.py: named SQL keeps its form, or is refused."""

import pytest

from core.store.migrations import load_migrations
from core.store.queries import Param, Query, load_queries, parse_queries

TWO = """\
-- name: first_one
-- What it does,
-- in two lines.
-- params: a, b
SELECT :a
  FROM t WHERE b = :b;

-- name: second_one
-- Nothing to bind.
-- params:
SELECT 1; -- a remark
"""


def test_a_file_holds_statements_with_name_purpose_and_params() -> None:
    assert list(parse_queries(TWO, "two.sql")) == [
        Query(
            "first_one", "What it does, in two lines.", (Param("a"), Param("b")), "SELECT :a\n  FROM t WHERE b = :b;"
        ),
        Query("second_one", "Nothing to bind.", (), "SELECT 1; -- a remark"),
    ]


def test_a_file_without_statements_is_refused() -> None:
    with pytest.raises(ValueError):
        list(parse_queries("", "empty.sql"))


@pytest.mark.parametrize(
    "text",
    [
        "-- name: x\n-- params:\nSELECT 1;\n",
        "-- name: x\n-- What it does.\nSELECT 1;\n",
        "-- name:\n-- What it does.\n-- params:\nSELECT 1;\n",
        "-- name: two words\n-- What it does.\n-- params:\nSELECT 1;\n",
        TWO + "-- name: third\nSELECT 1;\n",
    ],
    ids=["no purpose", "no params", "no name", "a name of two words", "one of three"],
)
def test_a_statement_that_does_not_keep_the_form_is_refused_with_its_file(text: str) -> None:
    with pytest.raises(ValueError, match=r"^bad\.sql: a query needs a name, a line of purpose and its params$"):
        list(parse_queries(text, "bad.sql"))


TYPED = """\
-- name: typed
-- What it does.
-- params: a int, b nvarchar(4000), c datetime2(7), d rows (x, y, a), e
SELECT @a;
"""


def test_a_parameter_may_have_a_type_and_one_of_many_has_columns() -> None:
    (query,) = parse_queries(TYPED, "typed.sql")
    assert query.declared == (
        Param("a", "int"),
        Param("b", "nvarchar(4000)"),
        Param("c", "datetime2(7)"),
        Param("d", "rows", ("x", "y", "a")),
        Param("e"),
    )
    assert query.params == ("a", "b", "c", "x", "y", "e")


@pytest.mark.parametrize("params", ["a int b", "(x)", "a decimal(38, 10) (x) y", "@a int", "a-b"])
def test_a_header_with_a_parameter_that_is_none_is_refused_with_its_file(params: str) -> None:
    with pytest.raises(ValueError, match=r"^bad\.sql: .* is not a parameter: a name, a type, and columns in brackets"):
        list(parse_queries(TYPED.replace("a int, b", f"a int, {params}, b"), "bad.sql"))


def test_a_statement_may_declare_the_columns_of_its_rows() -> None:
    (query,) = parse_queries(TYPED.replace("SELECT", "-- answers: x varchar(128), y bigint\nSELECT"), "typed.sql")
    assert query.answers == (Param("x", "varchar(128)"), Param("y", "bigint"))
    assert query.text == "SELECT @a;"


FILTERED = """\
-- name: filtered
-- What it does.
-- params: a, b, c
SELECT a
  FROM t
 WHERE a = :a
   AND +b = :b  -- if given
   AND c = :c  -- if given
   AND c < :a;
"""


def test_a_line_of_an_optional_parameter_is_left_out_when_the_parameter_is_missing() -> None:
    (query,) = parse_queries(FILTERED, "filtered.sql")
    assert query.optional == {"b", "c"}
    assert query.text_without(set()) == query.text
    assert query.text_without({"b"}) == query.text.replace("   AND +b = :b  -- if given\n", "")
    assert query.text_without({"a", "b", "c"}) == "SELECT a\n  FROM t\n WHERE a = :a\n   AND c < :a;"


def test_the_statements_of_an_engine_are_found_by_name() -> None:
    queries = load_queries("sqlite")
    assert {"read_checkpoint", "advance_checkpoint", "record_batch", "add_letter"} <= set(queries)
    assert all(name == query.name for name, query in queries.items())


def test_migrations_count_from_one_without_a_hole() -> None:
    versions = [migration.version for migration in load_migrations("sqlite")]
    assert versions == list(range(1, len(versions) + 1))
