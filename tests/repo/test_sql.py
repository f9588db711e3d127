import re

from core.store.queries import SQL, load_queries, query_files
from tests.repo.product import ROOT, name_of, text_of

FILES = sorted({*SQL.rglob("*.sql"), *query_files()})
QUERIES = load_queries("sqlite")  # how T-SQL binds its parameters, and that it is one batch, is held by tests/sql
SHORT_CUTS = r"\bSELECT\s+(?:\w+\.)?\*|\bNOLOCK\b|\bMERGE\b|INSERT OR |\bREPLACE INTO\b"
LOWER_CASE = r"\b(?:select|from|where|insert into|update|set|values|create table|order by)\b"
WRONG = re.compile(f"(?i:{SHORT_CUTS})|{LOWER_CASE}")


def without_literals(text: str) -> str:
    return re.sub(r"--[^\n]*|'[^']*'", "", text)


def test_each_statement_is_one_that_is_used_and_few_have_a_second_body() -> None:
    source = "".join(text_of(path) for folder in ("core", "examples") for path in (ROOT / folder).rglob("*.py"))
    assert [name for name in {*QUERIES, *load_queries("sqlserver")} if f'"{name}"' not in source] == []
    texts = {name: one.text.rstrip() for name, one in QUERIES.items()}
    whole = {name for name, text in texts.items() if without_literals(text).count(";") == 1 and text.endswith(";")}
    assert texts.keys() - whole == set()
    heads = "".join(map(text_of, query_files()))
    assert heads.count("-- name: ") == len(QUERIES) > 200
    assert heads.count("\n-- sqlserver:\n") <= 50


def test_a_file_holds_no_short_cut_and_no_keyword_in_lower_case() -> None:
    texts = {name_of(path): without_literals(text_of(path)) for path in FILES}
    assert {name: found[0] for name, text in texts.items() if (found := WRONG.search(text))} == {}
