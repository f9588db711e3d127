"""Audits while the ledger grows."""

from collections.abc import Callable
from typing import Any

import pytest

from core.audit.audit import Audit, Reading, audit
from core.store.database import Database
from core.store.script import Named, Outcome, Script
from tests.core.conftest import Office
from tests.fakes.builders import STREAM, partition, reading, settled
from tests.fakes.operator_stores import OperatorStores, operator_stores
from tests.sql.values import ROW_CLASSES

P = partition().partition_id


class Interrupted:
    """A database; something happens once, before the first use of a statement."""

    def __init__(self, database: Database, statement: str, happens: Callable[[], object]) -> None:
        self._database, self._statement, self._happens = database, statement, happens

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        if statement == self._statement:
            self._statement = ""
            self._happens()
        return self._database.ask(statement, **values)

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        return self._database.run(script, rehearse)

    def close(self) -> None:
        self._database.close()


def fill(office: Office, first: int, last: int) -> None:
    for number in range(first, last + 1):
        office.commit(number, number, settled({number: [reading()]}))


def fresh(office: Office) -> Audit:
    return audit(office.desk.audits, None, Reading(piece=2))


def interrupted(office: Office, statement: str, happens: Callable[[], object]) -> OperatorStores:
    return operator_stores(Interrupted(office.store.database, statement, happens), STREAM, ROW_CLASSES)


@pytest.mark.parametrize("statement", ["read_ledger_ends", "read_totals", "sum_ranges", "find_total_faults"])
def test_ranges_that_a_different_process_adds_meanwhile_are_no_fault(
    make_office: Callable[[], Office], statement: str
) -> None:
    here, there = make_office(), make_office()
    fill(here, 0, 3)

    def meanwhile() -> None:
        fill(there, 4, 9)
        assert there.desk.ledger.read_books()[0].balanced
        assert fresh(there).balanced

    desk = interrupted(here, statement, meanwhile)
    assert audit(desk.audits, None, Reading(piece=2)).faults == ()
    assert fresh(here).balanced
