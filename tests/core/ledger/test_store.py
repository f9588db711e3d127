"""Promises of every store about the ledger: totals, minutes, the burn-down, and what the watch reads."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from core.audit.audit import LAST_NUMBER, audit
from core.ledger.explain import explain
from core.ledger.store import Ledger, OpenCount, OpenGap, read_books
from core.ledger.totals import KEPT, Minute
from core.model.commits import DeadLetter, LetterStatus, SequenceGap
from core.model.events import PartitionId, SequenceNumber, Span
from core.model.letters import OPEN, LetterKey
from core.store.database import OneStream, PatientDatabase
from core.tasks.statuses import TaskMove, TaskVerb
from core.tasks.task import PartRequest, TaskOrder, TaskRequest
from tests.core.conftest import Office
from tests.fakes.builders import EPOCH, NOON, STREAM, commit, event, home, letter, partition, reading, settled
from tests.fakes.replaying import World, log_of, order

P = PartitionId("0")


def span(first: int, last: int) -> Span:
    return Span(SequenceNumber(first), SequenceNumber(last))


ALL = span(0, LAST_NUMBER)


def test_an_empty_database_tells_nothing_and_gets_no_stream(office: Office) -> None:
    ledger, burn_downs = office.desk.ledger, office.desk.burn_downs
    books = read_books(ledger)
    assert (books.partitions, books.accounted, books.balanced, books.letters.oldest) == ((), 0, True, None)
    assert (ledger.read_last_batches(), ledger.count_absent(EPOCH)) == ({}, 0)
    assert (burn_downs.read_partition_ids(), burn_downs.read_open_gaps(), counted(office)) == ((), (), {})
    ledger.store_minute(minute(EPOCH))
    assert (stored(office), office.desk.stream.find()) == ([], None)


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

    def test_a_ledger_that_begins_after_its_anchor_does_not_balance(self, office: Office) -> None:
        state = office.store.anchor_partition(office.store.read_partition(partition()), SequenceNumber(3), EPOCH)
        office.store.commit_batch(commit(state, 5, 9))
        (books,) = office.desk.ledger.read_books()
        assert (books.anchor, books.numbers, books.balanced) == (3, 7, False)
        assert [(one.kind, one.first, one.last) for one in audit(office.desk.audits, None).faults] == [("hole", 3, 4)]


def failed(number: int, hour: float, status: LetterStatus = "waiting", is_kept: bool = True) -> DeadLetter:
    """Return the letter of an event that was enqueued in an hour."""
    of = letter(event(number, "body", at=EPOCH + timedelta(hours=hour)))
    return replace(of, status=status, keeps_body=is_kept)


def counted(office: Office, beginning: int = 0, id: PartitionId = P) -> dict[str, OpenCount]:
    found = office.desk.burn_downs.count_open_letters(id, SequenceNumber(beginning))
    return {one.kind: one for one in found}


def test_open_letters_are_counted_with_and_without_a_body_and_settled_ones_are_not(office: Office) -> None:
    statuses: list[LetterStatus] = ["waiting", "retrying", "held", "exhausted", "resolved", "discarded"]
    office.letters(*(failed(number, 1, status) for number, status in enumerate(statuses)))
    office.letters(failed(6, 1, is_kept=False), failed(7, 5, "resolved", is_kept=False))
    office.letters(failed(3, 1), of=partition("1"))
    assert {kind: one.gone for kind, one in counted(office, 99).items()} == {"kept": 4, "unkept": 1}
    assert office.desk.burn_downs.read_partition_ids() == ("0", "1")
    assert counted(office, id=PartitionId("2")) == {}


def test_letters_before_the_beginning_are_gone_and_the_first_of_the_others_has_the_time(office: Office) -> None:
    office.letters(*(failed(number, hour) for number, hour in ((0, 0), (2, 0.5), (3, 1), (5, 3), (6, 10))))
    assert counted(office)["kept"] == OpenCount(P, "kept", 0, EPOCH)
    assert counted(office, 3)["kept"] == OpenCount(P, "kept", 2, EPOCH + timedelta(hours=1))
    assert counted(office, 7)["kept"] == OpenCount(P, "kept", 5, None)


def test_an_open_gap_is_not_older_than_the_event_at_the_checkpoint(office: Office) -> None:
    office.commit(0, 4)
    office.store.note_gap(office.store.read_partition(partition()), Span(SequenceNumber(5), SequenceNumber(9)), EPOCH)
    bare = office.anchored(partition("1"), 3)
    found_at = EPOCH + timedelta(days=3)
    office.store.note_gap(bare, Span(SequenceNumber(3), SequenceNumber(3)), found_at)
    checkpoint = office.store.read_partition(partition()).checkpoint
    assert office.desk.burn_downs.read_open_gaps() == (
        OpenGap(P, SequenceNumber(5), checkpoint.enqueued_at),
        OpenGap(PartitionId("1"), SequenceNumber(3), found_at),
    )
    office.commit(5, 9)
    assert [gap.partition_id for gap in office.desk.burn_downs.read_open_gaps()] == ["1"]


DAY_LATER = EPOCH + KEPT


def minute(at: datetime, lag: int = 7) -> Minute:
    return Minute(at, lag, 2**53 + lag)


def patient(office: Office) -> Ledger:
    """Return a ledger that sends the row of a minute again after a race, as the app's does."""
    return Ledger(OneStream(PatientDatabase(office.store.database, timedelta(seconds=30)), STREAM))


def stored(office: Office, since: datetime = EPOCH - timedelta(days=9)) -> list[Minute]:
    return [*office.desk.ledger.read_minutes(since)]


def test_minutes_come_in_order_since_a_time_with_the_times_at_which_they_were_read(office: Office) -> None:
    office.commit(0, 0)
    seconds = timedelta(seconds=15, microseconds=300)
    written = [minute(EPOCH + seconds + timedelta(minutes=at), at) for at in range(5)]
    for one in (written[3], written[0], *written):
        office.desk.ledger.store_minute(one)
    assert stored(office) == written
    assert stored(office, EPOCH + timedelta(minutes=3)) == written[3:]


def test_the_first_of_two_watches_in_one_minute_is_stored_and_the_second_changes_nothing(office: Office) -> None:
    office.commit(0, 0)
    for second, lag in ((15, 1), (0, 2), (59.9, 3)):
        office.desk.ledger.store_minute(minute(EPOCH + timedelta(seconds=second), lag))
    assert stored(office) == [minute(EPOCH + timedelta(seconds=15), 1)]


def test_watches_that_store_one_minute_at_one_moment_leave_one_row(make_office: Callable[[], Office]) -> None:
    here, there = make_office(), make_office()
    here.commit(0, 0)
    ledgers = [patient(here), patient(there)] * 3
    for at in range(10):
        now = minute(EPOCH + timedelta(minutes=at))
        with ThreadPoolExecutor(len(ledgers)) as pool:
            list(pool.map(lambda ledger, now=now: ledger.store_minute(now), ledgers))
    assert len(stored(here)) == 10


def test_a_minute_is_removed_when_one_of_a_day_later_is_stored(office: Office) -> None:
    office.commit(0, 0)
    for at in (EPOCH, EPOCH + timedelta(minutes=1), EPOCH + timedelta(hours=12)):
        office.desk.ledger.store_minute(minute(at))
    office.desk.ledger.store_minute(minute(DAY_LATER))
    assert stored(office)[0].at == EPOCH
    office.desk.ledger.store_minute(minute(DAY_LATER + timedelta(minutes=1)))
    assert stored(office)[0].at == EPOCH + timedelta(minutes=1)


def test_each_stream_has_its_own_minutes_and_the_watch_of_any_removes_the_old_ones_of_all(office: Office) -> None:
    office.commit(0, 0)
    office.commit(0, 0, of=partition(group="other"))
    other = Ledger(OneStream(office.store.database, replace(STREAM, consumer_group="other")))
    office.desk.ledger.store_minute(minute(EPOCH, 1))
    other.store_minute(minute(EPOCH, 2))
    assert stored(office) == [minute(EPOCH, 1)]
    assert other.read_minutes(EPOCH) == (minute(EPOCH, 2),)
    later = minute(DAY_LATER + timedelta(minutes=1), 3)
    other.store_minute(later)
    assert stored(office) == []
    assert other.read_minutes(EPOCH) == (later,)


P1 = PartitionId("1")
JOB = UUID("6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11")
ENDS: tuple[TaskVerb, ...] = ("pause", "cancel")


def commit_at(office: Office, at: datetime, first: int, last: int, *gaps: SequenceGap, of: str = "0") -> None:
    """A range of a partition that is filtered, but for what its gaps say is absent."""
    absent = sum(gap.last - gap.first + 1 for gap in gaps if gap.status == "absent")
    state = office.store.read_partition(partition(of))
    made = commit(state, first, last, settled({}, filtered=last - first + 1 - absent))
    office.store.commit_batch(replace(made, committed_at=at, absent=absent, gaps=gaps))


def gap(first: int, last: int, status: str = "absent") -> SequenceGap:
    return SequenceGap(SequenceNumber(first), SequenceNumber(last), status)  # type: ignore[arg-type]


def test_an_open_task_is_held_up_while_it_has_a_fault(office: Office) -> None:
    count, tasks = office.desk.ledger.count_tasks_held_up, office.desk.tasks
    assert count() == 0
    commit_at(office, EPOCH, 0, 4)
    stream_id = office.store.open_stream(STREAM)
    request = TaskRequest(TaskOrder(JOB, stream_id, "ada", "look", EPOCH), "audit", "all", "{}", (PartRequest("0"),), 1)
    tasks.open(request)
    counts = [count()]
    for fault in ("no hub", None):
        tasks.note_fault(JOB, fault, EPOCH)
        counts.append(count())
    for verb in ENDS:
        tasks.move(TaskMove(JOB, verb, "audit", "", EPOCH, "Durable holds it"))
        counts.append(count())
    assert counts == [0, 1, 0, 1, 0]


def test_the_time_of_the_newest_batch_of_each_partition_is_exact_to_the_microsecond(office: Office) -> None:
    moment = EPOCH + timedelta(hours=5, microseconds=7)
    commit_at(office, EPOCH, 0, 4)
    commit_at(office, moment, 5, 9)
    commit_at(office, EPOCH + timedelta(hours=1), 0, 3, of="1")
    assert office.desk.ledger.read_last_batches() == {P: moment, P1: EPOCH + timedelta(hours=1)}


def test_a_partition_whose_ranges_are_all_gone_has_no_time(office: Office) -> None:
    commit_at(office, EPOCH, 0, 4)
    commit_at(office, EPOCH, 0, 3, of="1")
    office.engine.by_hand("DELETE FROM batch_ledger WHERE partition_id = '0'")
    assert office.desk.ledger.read_last_batches() == {P1: EPOCH}


def test_a_replay_does_not_move_a_partition(office: Office) -> None:
    world = World(office.store, {"0": log_of("reading a", "quiet")})
    before = office.desk.ledger.read_last_batches()
    world.clock.advance(3_600)
    world.replay(order(["0"], 1, 1))
    assert office.desk.ledger.read_last_batches() == before == {P: NOON}


def test_absent_numbers_count_from_the_time_of_the_commit_that_found_them_so(office: Office) -> None:
    late = EPOCH + timedelta(hours=2)
    commit_at(office, EPOCH + timedelta(hours=1), 0, 9, gap(0, 2), gap(3, 9, "healed"))
    state = office.store.read_partition(partition())
    office.store.note_gap(state, gap(10, 19), EPOCH)  # found long before it could be settled
    commit_at(office, late, 10, 19, gap(10, 14), gap(15, 19, "healed"))
    commit_at(office, late, 0, 3, gap(0, 0), of="1")
    count = office.desk.ledger.count_absent
    assert [count(EPOCH), count(late), count(late + timedelta(microseconds=1))] == [9, 6, 0]
