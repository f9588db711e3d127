"""Audits over every store: in pieces until their time is over, and while the ledger grows."""

from collections.abc import Callable
from itertools import chain, repeat
from typing import Any

import pytest

from core.audit.audit import Audit, AuditedPartition, Reading, audit
from core.store.database import Database
from core.store.script import Named, Outcome, Script
from tests.core.conftest import Office
from tests.fakes.builders import STREAM, event, letter, reading, settled
from tests.fakes.operator_stores import OperatorStores, operator_stores
from tests.sql.values import ROW_CLASSES


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


IN_PIECES = Reading(piece=2)


def after(pieces: int) -> Callable[[], bool]:
    """Return a clock whose time is over after so many pieces."""
    answers = chain(repeat(False, pieces), repeat(True))
    return lambda: next(answers)


def only(done: Audit) -> AuditedPartition:
    (one,) = done.partitions
    return one


def kinds(done: Audit) -> list[str]:
    return [fault.kind for fault in done.faults]


def test_pieces_sum_the_same_as_one_piece(office: Office) -> None:
    fill(office, 0, 4)
    done = audit(office.desk.audits, None, IN_PIECES)
    assert (only(done).until, only(done).complete, done.balanced) == (5, True, True)
    assert (only(done).ledger.first, only(done).ledger.last, only(done).ledger.accounted) == (0, 4, 5)
    assert only(done).ledger == only(audit(office.desk.audits, None)).ledger


def test_an_audit_whose_time_is_over_says_how_far_it_came(office: Office) -> None:
    fill(office, 0, 6)
    for pieces, until in ((0, 0), (1, 2), (3, 6)):
        done = audit(office.desk.audits, None, Reading(after(pieces), piece=2))
        assert (only(done).until, only(done).complete, done.balanced) == (until, False, True)


def test_ranges_with_a_fault_are_named_and_the_others_are_read(office: Office) -> None:
    fill(office, 0, 3)
    office.commit(6, 6)
    fill(office, 7, 9)
    done = audit(office.desk.audits, None, IN_PIECES)
    assert (kinds(done), only(done).until, only(done).complete) == (["hole"], 8, True)


def test_letters_are_compared_in_the_piece_that_counts_them(office: Office) -> None:
    fill(office, 0, 2)
    office.commit(3, 4, settled({}, letters=[letter(event(3))], filtered=1))
    office.commit(5, 5)
    assert audit(office.desk.audits, None, IN_PIECES).balanced


class TestChangedRanges:
    """Ranges that are changed by hand."""

    def test_an_audit_names_them(self, office: Office) -> None:
        fill(office, 0, 5)
        office.engine.by_hand("UPDATE batch_ledger SET written = 0, filtered = 1 WHERE commit_number = 3")
        assert kinds(audit(office.desk.audits, None, IN_PIECES)) == ["totals", "totals"]

    def test_letters_that_no_range_counts_are_looked_for_until_the_time_is_over(self, office: Office) -> None:
        fill(office, 0, 5)
        office.letters(letter(event(6)))
        office.engine.by_hand("UPDATE event_hub_dead_letter SET sequence_number = 2")
        office.engine.by_hand("UPDATE batch_ledger SET dead_lettered = 0, filtered = 1 WHERE commit_number = 7")
        assert kinds(audit(office.desk.audits, None, IN_PIECES)) == ["totals", "totals", "letters"]
        fault = audit(office.desk.audits, None, Reading(after(1))).faults[-1]
        assert fault.kind == "letters_outside"
        assert "the time was over" in fault.detail

    def test_a_ledger_that_ends_early_is_named(self, office: Office) -> None:
        fill(office, 0, 5)
        office.engine.by_hand("DELETE FROM batch_ledger WHERE commit_number > 2")
        office.engine.by_hand("UPDATE event_hub_checkpoint SET commit_number = 2, sequence_number = 1")
        assert kinds(audit(office.desk.audits, None, IN_PIECES)) == ["totals"]
