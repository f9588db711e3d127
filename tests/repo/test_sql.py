"""Every statement of sql/ keeps the form, and is written once."""

import re
from collections.abc import Iterable

import pytest

from core.store.queries import SQL, Engine, Query, load_queries, query_files
from tests.repo.product import ROOT, name_of, text_of

ENGINES: tuple[Engine, ...] = ("sqlite", "sqlserver")
FILES = sorted({*SQL.rglob("*.sql"), *query_files()})
QUERIES = [(engine, query) for engine in ENGINES for query in load_queries(engine).values()]
BODIES = {
    name: body
    for path in query_files()
    for name, body in re.findall(r"^-- name: (\w+)\n(.*?)(?=^-- name: |\Z)", text_of(path), re.M | re.S)
}

# How T-SQL binds its parameters, and that it is one batch, is held by tests/sql.
EMBEDDED = [(engine, query) for engine, query in QUERIES if engine == "sqlite"]
SHORT_CUTS = re.compile(r"\bSELECT\s+(\w+\.)?\*|\bNOLOCK\b|\bMERGE\b|INSERT OR |\bREPLACE INTO\b", re.IGNORECASE)
LOWER_CASE = re.compile(r"\b(select|from|where|insert into|update|set|values|create table|order by)\b")


def named(queries: Iterable[tuple[str, Query]]) -> list[str]:
    """Return statements as a failure names them."""
    return [f"{engine}-{query.name}" for engine, query in queries]


def without_literals(text: str) -> str:
    """Return a statement without its comments and quoted texts."""
    return re.sub(r"--[^\n]*|'[^']*'", "", text)


def test_few_statements_have_a_second_body() -> None:
    assert len(BODIES) == len(QUERIES) / len(ENGINES) > 200
    assert len([name for name, body in BODIES.items() if "\n-- sqlserver:\n" in body]) <= 50


def test_a_statement_is_one_statement() -> None:
    def is_one(query: Query) -> bool:
        return without_literals(query.text).strip().count(";") == 1 and query.text.rstrip().endswith(";")

    assert named(one for one in EMBEDDED if not is_one(one[1])) == []


@pytest.mark.parametrize("wrong", [SHORT_CUTS, LOWER_CASE], ids=["short cuts", "keywords in lower case"])
def test_a_file_holds_none_of_these(wrong: re.Pattern[str]) -> None:
    texts = {name_of(path): without_literals(text_of(path)) for path in FILES}
    assert {name: found[0] for name, text in texts.items() if (found := wrong.search(text))} == {}


def test_a_statement_is_used() -> None:
    source = "".join(text_of(path) for folder in ("core", "examples") for path in (ROOT / folder).rglob("*.py"))
    assert named(one for one in QUERIES if f'"{one[1].name}"' not in source) == []
