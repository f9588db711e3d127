"""An audit reads the ranges in pieces, until its time is over."""

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain, repeat
from pathlib import Path

import pytest

from core.audit.audit import Audit, AuditedPartition, Reading, audit
from tests.core.conftest import Office
from tests.fakes.builders import STREAM, event, letter, reading, settled
from tests.fakes.engines import SqliteEngine
from tests.fakes.operator_stores import operator_stores
from tests.fakes.store import homes_of
from tests.sql.values import ROW_CLASSES

IN_PIECES = Reading(piece=2)


def after(pieces: int) -> Callable[[], bool]:
    """Return a clock whose time is over after so many pieces."""
    answers = chain(repeat(False, pieces), repeat(True))
    return lambda: next(answers)


def fill(office: Office, first: int, last: int) -> None:
    for number in range(first, last + 1):
        office.commit(number, number, settled({number: [reading()]}))


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
    """Ranges that are changed by hand, in SQLite."""

    @pytest.fixture
    def embedded(self, tmp_path: Path) -> Iterator[Office]:
        engine = SqliteEngine(tmp_path / "store.db")
        with closing(engine.open()) as store:
            yield Office(engine, store, operator_stores(store.database, STREAM, ROW_CLASSES), homes_of(store.database))

    def test_an_audit_names_them(self, embedded: Office) -> None:
        fill(embedded, 0, 5)
        embedded.engine.by_hand("UPDATE batch_ledger SET written = 0, filtered = 1 WHERE commit_number = 3")
        assert kinds(audit(embedded.desk.audits, None, IN_PIECES)) == ["totals", "totals"]

    def test_letters_that_no_range_counts_are_looked_for_until_the_time_is_over(self, embedded: Office) -> None:
        fill(embedded, 0, 5)
        embedded.letters(letter(event(6)))
        embedded.engine.by_hand("UPDATE event_hub_dead_letter SET sequence_number = 2")
        embedded.engine.by_hand("UPDATE batch_ledger SET dead_lettered = 0, filtered = 1 WHERE commit_number = 7")
        assert kinds(audit(embedded.desk.audits, None, IN_PIECES)) == ["totals", "totals", "letters"]
        fault = audit(embedded.desk.audits, None, Reading(after(1))).faults[-1]
        assert fault.kind == "letters_outside"
        assert "the time was over" in fault.detail

    def test_a_ledger_that_ends_early_is_named(self, embedded: Office) -> None:
        fill(embedded, 0, 5)
        embedded.engine.by_hand("DELETE FROM batch_ledger WHERE commit_number > 2")
        embedded.engine.by_hand("UPDATE event_hub_checkpoint SET commit_number = 2, sequence_number = 1")
        assert kinds(audit(embedded.desk.audits, None, IN_PIECES)) == ["totals"]
