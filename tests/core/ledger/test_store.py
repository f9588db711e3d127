"""Promises of every store about the books: the totals that each checkpoint carries, and what an audit makes of them."""

from dataclasses import replace

import pytest

from core.audit.audit import LAST_NUMBER, audit
from core.ledger.explain import explain
from core.ledger.store import read_books
from core.model.commits import SequenceGap
from core.model.events import PartitionId, SequenceNumber, Span
from core.model.letters import OPEN, LetterKey
from tests.core.conftest import Office
from tests.fakes.builders import EPOCH, commit, event, home, letter, partition, reading, settled

P = PartitionId("0")


def span(first: int, last: int) -> Span:
    return Span(SequenceNumber(first), SequenceNumber(last))


ALL = span(0, LAST_NUMBER)


def test_an_empty_database_has_no_books_and_they_balance(office: Office) -> None:
    books = read_books(office.desk.ledger)
    assert (books.partitions, books.accounted, books.balanced, books.letters.oldest) == ((), 0, True, None)


def test_reading_the_books_opens_no_stream(office: Office) -> None:
    read_books(office.desk.ledger)
    assert office.desk.stream.find() is None


def test_the_books_count_all_outcomes_and_count_letters(office: Office) -> None:
    office.commit(10, 12, settled({10: [reading()]}, filtered=2))
    office.commit(13, 15, settled({13: [reading()]}, letters=[letter(event(14)), letter(event(15))]))
    books = read_books(office.desk.ledger)
    (one,) = books.partitions
    assert (one.first, one.checkpoint, one.commits, one.commit_number, one.letters) == (10, 15, 2, 2, 2)
    assert (one.written, one.filtered, one.dead_lettered, one.held, one.absent) == (2, 2, 2, 0, 0)
    assert one.enqueued_at == event(15).enqueued_at
    assert (books.numbers, books.accounted, books.letters.open, books.balanced) == (6, 6, 2, True)


def test_partitions_are_listed_by_number_and_only_those_of_the_stream(office: Office) -> None:
    for id in ("10", "2", "0"):
        office.commit(0, 0, of=partition(id))
    office.commit(0, 4, of=partition("7", group="other"))
    assert [one.partition_id for one in read_books(office.desk.ledger).partitions] == ["0", "2", "10"]


def test_a_hole_shows_and_the_books_do_not_balance(office: Office) -> None:
    for first, last in [(0, 4), (7, 9), (10, 12)]:
        office.commit(first, last)
    books = read_books(office.desk.ledger)
    assert (books.accounted, books.numbers, books.balanced) == (11, 13, False)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE event_hub_checkpoint SET written = written + 1, filtered = filtered - 1",
        "UPDATE batch_ledger SET total_absent = total_absent + 1 WHERE commit_number = 2",
        "DELETE FROM batch_ledger WHERE commit_number = 2",
    ],
)
def test_a_newest_commit_without_the_totals_of_the_checkpoint_shows(office: Office, change: str) -> None:
    office.commit(0, 4, settled({0: [reading()]}, filtered=4))
    office.commit(5, 9, settled({5: [reading()]}, filtered=4))
    assert read_books(office.desk.ledger).balanced
    office.engine.by_hand(change)
    assert not read_books(office.desk.ledger).balanced


class TestLetters:
    def test_the_oldest_open_letter_is_the_one_that_failed_first(self, office: Office) -> None:
        state = office.store.read_partition(partition())
        given = [
            letter(event(0)),
            replace(letter(event(1)), status="exhausted"),
            replace(letter(event(2)), status="held"),
        ]
        made = commit(state, 0, 2, settled({}, letters=given))
        office.store.commit_batch(replace(made, committed_at=EPOCH))
        office.commit(3, 3, settled({}, letters=[letter(event(3))]))
        assert office.desk.ledger.find_oldest_letter(OPEN) == LetterKey(
            EPOCH, partition("0").partition_id, event(0).sequence_number
        )

    def test_letters_are_counted_by_status(self, office: Office) -> None:
        statuses = ["waiting", "exhausted", "exhausted", "held", "resolved", "discarded", "waiting", "waiting"]
        given = [replace(letter(event(at)), status=status) for at, status in enumerate(statuses)]  # type: ignore[arg-type]
        office.commit(0, 7, settled({}, letters=given))
        opened = {"waiting": 3, "retrying": 0, "held": 1, "exhausted": 2}
        counted, rest = office.desk.ledger.count_letters(), office.desk.ledger.count_open()
        assert counted.counts == {**opened, "resolved": 1, "discarded": 1}
        assert replace(rest, counts=counted.counts) == counted
        assert (rest.counts, rest.open, rest.settled, rest.dead_lettered, rest.balanced) == (opened, 6, 2, 8, True)

    def test_a_letter_that_is_lost_is_an_imbalance_where_each_is_counted(self, office: Office) -> None:
        office.commit(0, 1, settled({}, letters=[letter(event(0)), letter(event(1))]))
        office.engine.by_hand("DELETE FROM event_hub_dead_letter WHERE sequence_number = 1")
        counted, rest = office.desk.ledger.count_letters(), office.desk.ledger.count_open()
        assert (counted.open, counted.settled, counted.balanced) == (1, 0, False)
        assert (rest.open, rest.settled, rest.balanced) == (1, 1, True)


class TestAudit:
    """The audit finds each forbidden change that was made by hand."""

    def kinds(self, office: Office) -> list[tuple[str, int, int]]:
        return [(fault.kind, fault.first, fault.last) for fault in audit(office.desk.audits, None).faults]

    def fill(self, office: Office) -> None:
        for first in (0, 5, 10):
            office.commit(
                first, first + 4, settled({first: [reading()]}, letters=[letter(event(first + 1))], filtered=3)
            )

    def test_books_in_order_have_no_fault(self, office: Office) -> None:
        self.fill(office)
        done = audit(office.desk.audits, None)
        assert done.balanced
        assert [(one.ledger.accounted, one.ledger.letters) for one in done.partitions] == [(15, 3)]

    def test_a_range_that_was_left_out_is_a_hole_with_its_numbers(self, office: Office) -> None:
        for first, last in [(0, 4), (7, 9), (20, 20)]:
            office.commit(first, last)
        assert self.kinds(office) == [("hole", 5, 6), ("hole", 10, 19)]

    def test_the_number_of_reported_faults_has_a_limit(self, office: Office) -> None:
        for number in range(0, 240, 2):
            office.commit(number, number)
        assert len(self.kinds(office)) == 100

    def test_one_partition_is_audited_alone(self, office: Office) -> None:
        for id in ("0", "1"):
            office.commit(0, 0, of=partition(id))
            office.commit(5, 5, of=partition(id))
        done = audit(office.desk.audits, partition("1").partition_id)
        assert {fault.partition_id for fault in done.faults} == {"1"}
        assert len(done.partitions) == 1

    def test_a_missing_partition_has_nothing_to_audit(self, office: Office) -> None:
        self.fill(office)
        assert audit(office.desk.audits, partition("9").partition_id).partitions == ()


class TestRows:
    """The rows that a recount counts."""

    def test_each_table_is_counted_and_all_rows_are_accounted_for(self, office: Office) -> None:
        office.commit(0, 2, settled({0: [home(), reading()], 1: [reading(), reading()]}, filtered=1))
        office.commit(3, 3, settled({3: [home(armed=True)]}))
        found = {one.table: (one.rows, one.unaccounted) for one in office.desk.audits.count_rows(P, ALL)}
        assert (found["home"], found["sensor_reading"], found["home_alert"]) == ((1, 0), (3, 0), (0, 0))
        assert office.desk.audits.find_row_faults(P, ALL, 10) == ()

    def test_only_the_rows_of_a_range_are_counted(self, office: Office) -> None:
        for first in (0, 3, 6):
            office.commit(first, first + 2, settled({first: [reading()], first + 1: [reading()]}, filtered=1))
        found = {one.table: one.rows for one in office.desk.audits.count_rows(P, span(1, 5))}
        assert found["sensor_reading"] == 3
        assert office.desk.audits.find_row_faults(P, span(1, 5), 10) == ()

    def test_the_rows_of_other_partitions_are_not_counted(self, office: Office) -> None:
        for id in ("0", "1"):
            office.commit(0, 0, settled({0: [reading()]}), of=partition(id))
        assert {one.table: one.rows for one in office.desk.audits.count_rows(P, ALL)}["sensor_reading"] == 1


class TestGaps:
    """Gaps and anchors, as the status, the audit and the explanation show them."""

    def test_an_open_gap_is_counted_and_reported(self, office: Office) -> None:
        office.commit(0, 4)
        state = office.store.read_partition(partition())
        office.store.note_gap(state, Span(SequenceNumber(5), SequenceNumber(8)), EPOCH)
        assert [one.open_gaps for one in office.desk.ledger.read_books()] == [1]
        found = explain(P, SequenceNumber(6), office.desk.explanations)
        assert found is not None
        assert (found.outcome, "being fetched" in found.sentence) == ("not_yet", True)
        beyond = explain(P, SequenceNumber(9), office.desk.explanations)
        assert beyond is not None
        assert beyond.found.gap is None

    def test_what_the_hub_no_longer_had_is_absent(self, office: Office) -> None:
        office.commit(0, 4)
        made = commit(office.store.read_partition(partition()), 5, 9, settled({}, filtered=3))
        gap = SequenceGap(SequenceNumber(6), SequenceNumber(7), "absent")
        office.store.commit_batch(replace(made, absent=2, gaps=(gap,)))
        outcomes = [explain(P, SequenceNumber(number), office.desk.explanations) for number in (6, 7)]
        assert [one.outcome if one else None for one in outcomes] == ["absent", "absent"]
        (books,) = office.desk.ledger.read_books()
        assert (books.absent, books.balanced, audit(office.desk.audits, None).balanced) == (2, True, True)

    def test_a_ledger_that_begins_after_its_anchor_does_not_balance(self, office: Office) -> None:
        state = office.store.anchor_partition(office.store.read_partition(partition()), SequenceNumber(3), EPOCH)
        office.store.commit_batch(commit(state, 5, 9))
        (books,) = office.desk.ledger.read_books()
        assert (books.anchor, books.numbers, books.balanced) == (3, 7, False)
        assert [(one.kind, one.first, one.last) for one in audit(office.desk.audits, None).faults] == [("hole", 3, 4)]
