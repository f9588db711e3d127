"""The page of retention has every table of the schema, with the defaults of the code."""

import re

from core.model.policies import DEFAULT_DAYS
from core.store.migrations import load_migrations
from tests.repo.product import ROOT

PAGE = (ROOT / "docs" / "retention.md").read_text(encoding="utf-8")
ROWS = {
    table: days
    for tables, days in re.findall(r"^\| (`[\w`, ]+`) \|.*\| (\d*) ?\|$", PAGE, re.MULTILINE)
    for table in re.findall(r"\w+", tables)
}


def test_every_table_of_the_schema_has_a_row_and_no_other() -> None:
    text = " ".join(one.text for one in load_migrations("sqlite"))
    dropped = set(re.findall(r"DROP TABLE IF EXISTS (\w+);", text))
    made = set(re.findall(r"CREATE TABLE (\w+) \(", text)) - dropped
    of_examples = {table for table in made if table.startswith(("home", "flight", "sensor"))}
    assert set(ROWS) ^ (made - of_examples) == {"schema_migration"}


def test_the_page_has_the_defaults_of_the_code() -> None:
    assert {table: int(days) for table, days in ROWS.items() if days} == dict(DEFAULT_DAYS)
