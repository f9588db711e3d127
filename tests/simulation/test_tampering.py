"""An audit with rows names every change by hand to a finished store, but those that a page lists."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hubledger.cli.scaffold.room import taken_tables
from tests.repo.product import ROOT
from tests.simulation.histories import History, history
from tests.simulation.tamperings import TAMPERINGS, Tampering
from tests.simulation.unnamed import ELSEWHERE, PLACE, PURGED, PURGED_REPLAY, UNNAMED

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (.+?) \| .+ \|$", re.MULTILINE)
_, *LISTED, UNREAD = ROW.findall(PAGE.partition("### Changes that no audit names")[2].partition("\n## ")[0])
TABLES = set(re.findall(r"`(\w+)`", UNREAD))  # that no audit reads
STATEMENTS = [
    statement
    for change in (*TAMPERINGS.values(), *(each for some in UNNAMED.values() for each in some))
    for statement in change.statements
]
SET = re.compile(r"UPDATE (?P<table>\w+) SET (?P<changes>.+?)(?: WHERE |$)")
SEED = 34  # three partitions, letters that replays made, retries, gaps with absent numbers, retracted rows


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> History:
    return history(SEED, tmp_path_factory.mktemp("base") / "store.db")


def tamper(made: History, with_it: Tampering) -> dict[str, Any]:
    """Change the store by hand; return the picked values."""
    with closing(sqlite3.connect(made.engine.path, isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        target = dict(connection.execute(with_it.pick).fetchone())
        touched = sum(connection.execute(statement, target).rowcount for statement in with_it.statements)
    assert touched, "the tampering changed nothing"
    return target


def test_the_untouched_store_is_clean(base: History, tmp_path: Path) -> None:
    assert base.copied(tmp_path / "copy.db").audit() == []


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if at % 4 else []) for at, name in enumerate(TAMPERINGS)]
)
def test_a_tampering_is_named_with_its_place(name: str, base: History, tmp_path: Path) -> None:
    made, given = base.copied(tmp_path / "copy.db"), TAMPERINGS[name]
    target = tamper(made, given)
    found = made.audit()
    kinds = given.kinds.split()
    named = [
        one
        for one in found
        if (one.kind, one.partition_id) == (kinds[0], target["partition_id"])
        and given.words.format(**target) in one.detail
        and one.first <= target.get("number", one.first) <= one.last
    ]
    assert named, [f"{one.partition_id} {one.kind} {one.first}..{one.last}: {one.detail}" for one in found]
    assert sorted(one.kind for one in found) == sorted(kinds)


@pytest.mark.parametrize("sentence", UNNAMED)
def test_no_audit_names_what_the_page_lists(sentence: str, base: History, tmp_path: Path) -> None:
    assert sentence in LISTED
    for at, given in enumerate(UNNAMED[sentence]):
        made = base.copied(tmp_path / f"{at}.db")
        tamper(made, given)
        assert made.audit() == []


def test_no_audit_reads_the_tables_that_the_page_lists(base: History, tmp_path: Path) -> None:
    made = base.copied(tmp_path / "copy.db")
    for table in TABLES:
        made.engine.sql(f"DELETE FROM {table}")
    assert made.audit() == []


def test_every_change_on_the_page_and_every_table_is_tampered_with(base: History) -> None:
    found = {name for (name,) in base.engine.sql("SELECT name FROM sqlite_master WHERE type = 'table'")}
    ours = found - {name for name, owner in taken_tables().items() if owner != "Hubledger"}
    assert set(LISTED) == {*UNNAMED, PURGED, PURGED_REPLAY, PLACE}
    tampered = set(re.findall(r"(?:FROM|INTO|UPDATE) (\w+)", " ".join(STATEMENTS)))
    assert ours - tampered - ELSEWHERE == TABLES


def test_every_column_of_the_tables_that_an_audit_reads_is_changed(base: History) -> None:
    """A new column is a tampering that an audit names, or a change that the page lists."""
    made = [SET.match(statement) for statement in STATEMENTS]
    changed = {(one["table"], column) for one in made if one for column in re.findall(r"(\w+) = ", one["changes"])}
    columns = base.engine.sql(
        "SELECT m.name, c.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c"
        " WHERE m.type = 'table' AND c.pk = 0"
    )
    of_rooms = {name for name, owner in taken_tables().items() if owner != "Hubledger"}
    left_out = TABLES | ELSEWHERE | of_rooms
    assert {(table, column) for table, column in columns if table not in left_out} - changed == set()
