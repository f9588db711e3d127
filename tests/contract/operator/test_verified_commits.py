"""An audit goes on from the commit that was verified before, in pieces, until its time is over."""

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain, repeat
from pathlib import Path

import pytest

from core.ledger.audit import Audit, AuditedPartition, audit
from core.ledger.ranges import WHOLE, Reading
from tests.contract.operator.conftest import Office
from tests.fakes.builders import STREAM, event, letter, partition, reading, settled
from tests.fakes.engines import SqliteEngine
from tests.fakes.operator_stores import operator_stores
from tests.fakes.store import homes_of
from tests.sql.values import ROW_CLASSES

P = partition().partition_id
FRESH = Reading(whole=False, is_over=lambda: False, piece=2)


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


def reads(done: Audit) -> tuple[int, int, bool, bool]:
    one = only(done)
    return one.since, one.until, one.complete, done.balanced


def kinds(done: Audit) -> list[str]:
    return [fault.kind for fault in done.faults]


class TestVerifiedCommits:
    def test_an_audit_reads_only_the_ranges_since_the_one_before(self, office: Office) -> None:
        fill(office, 0, 4)
        assert reads(audit(office.desk.audits, None, FRESH)) == (0, 5, True, True)
        fill(office, 5, 6)
        done = audit(office.desk.audits, None, FRESH)
        assert reads(done) == (5, 7, True, True)
        assert (only(done).ledger.first, only(done).ledger.last, only(done).ledger.accounted) == (0, 6, 7)

    def test_a_whole_audit_begins_with_the_first_range_and_sums_the_same(self, office: Office) -> None:
        fill(office, 0, 4)
        since = audit(office.desk.audits, None, FRESH)
        whole = audit(office.desk.audits, None, WHOLE)
        assert reads(whole) == (0, 5, True, True)
        assert only(whole).ledger == only(since).ledger == only(audit(office.desk.audits, None, FRESH)).ledger

    def test_an_audit_whose_time_is_over_says_how_far_it_came_and_the_next_one_goes_on(self, office: Office) -> None:
        fill(office, 0, 6)
        for pieces, expected in ((0, (0, 0, False, True)), (1, (0, 2, False, True)), (2, (2, 6, False, True))):
            assert reads(audit(office.desk.audits, None, Reading(False, after(pieces), piece=2))) == expected
        assert reads(audit(office.desk.audits, None, FRESH)) == (6, 7, True, True)

    def test_commits_of_every_kind_count_and_a_lone_partition_is_verified_apart(self, office: Office) -> None:
        fill(office, 0, 1)
        office.commit(0, 0, of=partition("1"))
        assert reads(audit(office.desk.audits, partition("1").partition_id, FRESH)) == (0, 1, True, True)
        assert reads(audit(office.desk.audits, P, FRESH)) == (0, 2, True, True)

    def test_ranges_with_a_fault_are_never_verified_and_every_audit_names_it(self, office: Office) -> None:
        fill(office, 0, 3)
        office.commit(6, 6)
        fill(office, 7, 9)
        for since in (0, 4, 4):
            done = audit(office.desk.audits, None, FRESH)
            assert kinds(done) == ["hole"]
            assert reads(done)[:3] == (since, 8, True)

    def test_letters_are_compared_in_the_piece_that_counts_them(self, office: Office) -> None:
        fill(office, 0, 2)
        office.commit(3, 4, settled({}, letters=[letter(event(3))], filtered=1))
        office.commit(5, 5)
        assert audit(office.desk.audits, None, FRESH).balanced
        assert audit(office.desk.audits, None, FRESH).balanced

    def test_of_two_audits_at_once_the_late_one_moves_nothing_back(self, make_office: Callable[[], Office]) -> None:
        here, there = make_office(), make_office()
        fill(here, 0, 3)
        audit(there.desk.audits, None, FRESH)
        here.desk.audits.move_verified_commit(P, 2, expected=0)  # it comes late with what it read before
        newest = here.desk.audits.read_totals(P)
        assert newest is not None
        assert newest.verified is not None
        assert (newest.verified_commit, newest.verified.accounted, newest.verified.equals(newest.counted)) == (
            4,
            4,
            True,
        )


class TestChangedRanges:
    """Ranges that are changed by hand, in SQLite, after they were verified."""

    @pytest.fixture
    def embedded(self, tmp_path: Path) -> Iterator[Office]:
        engine = SqliteEngine(tmp_path / "store.db")
        with closing(engine.open()) as store:
            yield Office(engine, store, operator_stores(store.database, STREAM, ROW_CLASSES), homes_of(store.database))

    @pytest.fixture
    def changed(self, embedded: Office) -> Office:
        fill(embedded, 0, 5)
        assert audit(embedded.desk.audits, None, FRESH).balanced
        embedded.engine.by_hand("UPDATE batch_ledger SET written = 0, filtered = 1 WHERE commit_number = 3")
        return embedded

    def test_a_whole_audit_sees_them_first_and_then_each_one_does(self, changed: Office) -> None:
        assert kinds(audit(changed.desk.audits, None, FRESH)) == []
        for _ in range(2):
            assert kinds(audit(changed.desk.audits, None, WHOLE)) == ["totals", "totals"]
        assert kinds(audit(changed.desk.audits, None, FRESH)) == ["totals", "totals"]  # it begins before the fault now

    def test_after_a_whole_audit_found_a_fault_the_next_ones_begin_before_it(self, embedded: Office) -> None:
        fill(embedded, 0, 7)
        assert audit(embedded.desk.audits, None, FRESH).balanced
        embedded.engine.by_hand("DELETE FROM batch_ledger WHERE commit_number = 5")
        assert "commits" not in kinds(audit(embedded.desk.audits, None, FRESH))
        assert "commits" in kinds(audit(embedded.desk.audits, None, Reading(True, lambda: False, piece=2)))
        done = audit(embedded.desk.audits, None, FRESH)
        assert "commits" in kinds(done)
        assert reads(done)[0] < 5

    def test_letters_that_no_range_counts_are_looked_for_until_the_time_is_over(self, embedded: Office) -> None:
        fill(embedded, 0, 5)
        assert audit(embedded.desk.audits, None, FRESH).balanced
        embedded.letters(letter(event(6)))
        embedded.engine.by_hand("UPDATE event_hub_dead_letter SET sequence_number = 2")
        embedded.engine.by_hand("UPDATE batch_ledger SET dead_lettered = 0, filtered = 1 WHERE commit_number = 7")
        assert kinds(audit(embedded.desk.audits, None, FRESH)) == ["totals", "totals", "letters"]
        fault = audit(embedded.desk.audits, None, Reading(False, after(1))).faults[-1]
        assert fault.kind == "letters_outside"
        assert "the time was over" in fault.detail

    def test_a_ledger_that_ends_before_its_verified_commit_is_read_from_the_first_range(self, embedded: Office) -> None:
        fill(embedded, 0, 5)
        assert audit(embedded.desk.audits, None, FRESH).balanced
        embedded.engine.by_hand("DELETE FROM batch_ledger WHERE commit_number > 2")
        embedded.engine.by_hand("UPDATE event_hub_checkpoint SET commit_number = 2, sequence_number = 1")
        assert kinds(audit(embedded.desk.audits, None, FRESH)) == ["totals"]
