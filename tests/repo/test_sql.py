"""Every statement of sql/ keeps the form, and every engine has the same ones."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from core.store.queries import SQL, Query, load_migrations, load_queries
from tests.repo.product import ROOT, name_of

ENGINES = sorted(path.name for path in SQL.iterdir() if path.is_dir())
FILES = sorted(SQL.rglob("*.sql"))
QUERIES = [(engine, query) for engine in ENGINES for query in load_queries(engine).values()]


def each(queries: list[tuple[str, Query]]) -> pytest.MarkDecorator:
    """One test for each statement, named by engine and statement."""
    return pytest.mark.parametrize(("engine", "query"), queries, ids=[f"{e}-{q.name}" for e, q in queries])


each_query = each(QUERIES)
# How T-SQL binds its parameters, and that it is one batch, is held by tests/sql.
each_embedded_query = each([(engine, query) for engine, query in QUERIES if engine == "sqlite"])


def without_literals(text: str) -> str:
    """A statement less its remarks and texts in quotes."""
    return re.sub(r"--[^\n]*|'[^']*'", "", text)


def test_the_embedded_engine_is_there() -> None:
    assert "sqlite" in ENGINES
    assert len(QUERIES) >= 10


@each_embedded_query
def test_the_parameters_in_the_text_are_those_that_are_declared(engine: str, query: Query) -> None:
    used = set(re.findall(r"(?<![:\w]):(\w+)", without_literals(query.text)))
    assert used == set(query.params)
    assert len(query.params) == len(set(query.params))


@each_embedded_query
def test_a_statement_is_one_statement(engine: str, query: Query) -> None:
    assert without_literals(query.text).strip().count(";") == 1
    assert query.text.rstrip().endswith(";")


@each_query
def test_a_purpose_is_a_sentence(engine: str, query: Query) -> None:
    assert query.purpose[0].isupper()
    assert query.purpose.endswith(".")


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_lists_its_columns_and_takes_no_short_cut(path: Path) -> None:
    text = without_literals(path.read_text(encoding="utf-8"))
    assert not re.search(r"\bSELECT\s+(\w+\.)?\*|\bNOLOCK\b|\bMERGE\b|INSERT OR |\bREPLACE INTO\b", text, re.IGNORECASE)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_keywords_are_in_upper_case(path: Path) -> None:
    text = without_literals(path.read_text(encoding="utf-8"))
    assert not re.search(r"\b(select|from|where|insert into|update|set|values|create table|order by)\b", text)


def test_every_engine_has_the_same_statements_and_migrations() -> None:
    names: list[Mapping[str, object]] = [load_queries(engine) for engine in ENGINES]
    assert len({frozenset(each) for each in names}) == 1
    assert len({tuple((one.version, one.name) for one in load_migrations(engine)) for engine in ENGINES}) == 1


@each_query
def test_a_statement_is_used(engine: str, query: Query) -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "core" / "store").glob("*.py"))
    assert f'"{query.name}"' in source
