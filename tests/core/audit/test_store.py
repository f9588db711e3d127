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
        assert in_pieces(there).balanced

    desk = interrupted(here, statement, meanwhile)
    assert audit(desk.audits, None, Reading(piece=2)).faults == ()
    assert in_pieces(here).balanced


def after(pieces: int) -> Callable[[], bool]:
    """Return a clock whose time is over after so many pieces."""
    answers = chain(repeat(False, pieces), repeat(True))
    return lambda: next(answers)


def only(done: Audit) -> AuditedPartition:
    (one,) = done.partitions
    return one


def in_pieces(office: Office) -> Audit:
    return audit(office.desk.audits, None, Reading(piece=2))


def kinds(office: Office) -> list[str]:
    return [fault.kind for fault in in_pieces(office).faults]


def test_pieces_sum_the_same_as_one_piece(office: Office) -> None:
    fill(office, 0, 4)
    done = in_pieces(office)
    assert (only(done).until, only(done).complete, done.balanced) == (5, True, True)
    assert (only(done).ledger.first, only(done).ledger.last, only(done).ledger.accounted) == (0, 4, 5)
    assert only(done).ledger == only(audit(office.desk.audits, None)).ledger


def test_an_audit_whose_time_is_over_says_how_far_it_came(office: Office) -> None:
    fill(office, 0, 6)
    for pieces, until in ((0, 0), (1, 2), (3, 6)):
        done = audit(office.desk.audits, None, Reading(after(pieces), piece=2))
        assert (only(done).until, only(done).complete, done.balanced) == (until, False, True)


def test_letters_are_compared_in_their_piece_and_ranges_with_a_fault_named_while_the_others_are_read(
    office: Office,
) -> None:
    fill(office, 0, 3)
    office.commit(4, 5, settled({}, letters=[letter(event(4))], filtered=1))
    assert in_pieces(office).balanced
    office.commit(8, 8)
    fill(office, 9, 11)
    done = in_pieces(office)
    assert ([fault.kind for fault in done.faults], only(done).until, only(done).complete) == (["hole"], 9, True)
    office.engine.by_hand("UPDATE batch_ledger SET written = 0, filtered = 1 WHERE commit_number = 3")
    assert kinds(office) == ["totals", "hole", "totals"]
    office.engine.by_hand("DELETE FROM batch_ledger WHERE commit_number > 2")
    office.engine.by_hand("UPDATE event_hub_checkpoint SET commit_number = 2, sequence_number = 1")
    assert "totals" in kinds(office)


"""Ranges that are changed by hand."""


def test_letters_that_no_range_counts_are_looked_for_until_the_time_is_over(office: Office) -> None:
    fill(office, 0, 5)
    office.letters(letter(event(6)))
    office.engine.by_hand("UPDATE event_hub_dead_letter SET sequence_number = 2")
    office.engine.by_hand("UPDATE batch_ledger SET dead_lettered = 0, filtered = 1 WHERE commit_number = 7")
    assert kinds(office) == ["totals", "totals", "letters"]
    fault = audit(office.desk.audits, None, Reading(after(1))).faults[-1]
    assert fault.kind == "letters_outside"
    assert "the time was over" in fault.detail
