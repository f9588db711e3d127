"""The fakes of the server suite, as far as no server is needed."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.store.sqlserver.connections import Session
from tests.fakes.aggregation_engines import ServerAggregation
from tests.fakes.odbc_driver import FakeDriver
from tests.fakes.server_engine import SqlServerEngine
from tests.offenders import holds_for

FAKES, CONTRACT = (Path(__file__).parents[1] / name for name in ("fakes", "contract"))
HOSTILE = '{"home_activity": 3, "it\'s": "\\\\ 👩"}'


@holds_for(sorted(path.name for path in FAKES.glob("*.py")))
def test_a_fake_that_inserts_rows_names_their_columns_so_that_a_new_column_does_not_break_it(name: str) -> None:
    assert re.findall(r"INSERT INTO [\w.{}]+ VALUES", (FAKES / name).read_text(encoding="utf-8")) == []


class Noting:
    """A connection and its cursor: it notes the batches."""

    description = None

    def __init__(self) -> None:
        self.executed: list[tuple[str, Sequence[Any]]] = []

    def cursor(self) -> "Noting":
        return self

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        assert None not in sizes

    def execute(self, text: str, given: Sequence[Any]) -> None:
        self.executed.append((text, given))

    def nextset(self) -> bool:
        return False


def test_a_text_that_a_test_inserts_reaches_the_server_as_it_is() -> None:
    """As a literal, a quote would end the text, and an emoji would become an escape."""
    noting = Noting()
    engine = SqlServerEngine("", "s", Session(noting, FakeDriver()))
    ServerAggregation(engine).insert("staged_result", "levels, quality", [(HOSTILE, None)])
    insert = "SET NOCOUNT ON; INSERT INTO s.staged_result (levels, quality) VALUES (?, NULL);"
    assert noting.executed == [(insert, [HOSTILE])]


def test_a_statement_by_hand_changes_the_tables_of_the_tests_own_schema() -> None:
    noting = Noting()
    SqlServerEngine("", "s", Session(noting, FakeDriver())).by_hand(
        "INSERT INTO a (b) SELECT e.c, '2020-01-01T00:00:00.000000Z' FROM d AS e"
    )
    inserted = "INSERT INTO s.a (b) SELECT e.c, '2020-01-01T00:00:00.000000' FROM s.d AS e"
    assert noting.executed == [(f"SET NOCOUNT ON; {inserted};", [])]


@holds_for(sorted(CONTRACT.rglob("test_*.py")))
def test_a_contract_test_demands_no_engine_because_it_runs_on_each(path: Path) -> None:
    assert re.findall(r"isinstance\(.*, SqliteEngine\)", path.read_text(encoding="utf-8")) == []
