from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from core.audit.audit import LAST_NUMBER, audit
from core.ledger.explain import explain
from core.ledger.store import Ledger, OpenCount, OpenGap, read_books
from core.ledger.totals import KEPT, Minute
from core.model.commits import DeadLetter, LetterStatus, SequenceGap
from core.model.events import PartitionId, SequenceNumber, Span, span
from core.model.letters import OPEN, LetterKey
from core.store.database import OneStream
from core.tasks.statuses import TaskMove, TaskVerb
from core.tasks.task import PartRequest, TaskOrder, TaskRequest
from tests.core.conftest import Office
from tests.fakes.builders import EPOCH, STREAM, commit, event, home, letter, partition, reading, settled

P, P1 = PartitionId("0"), PartitionId("1")
ALL = span(0, LAST_NUMBER)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def found_faults(office: Office) -> list[tuple[str, int, int]]:
    return [(fault.kind, fault.first, fault.last) for fault in audit(office.desk.audits, None).faults]


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
    for id, group in (("10", "hubledger"), ("2", "hubledger"), ("7", "other")):
        office.commit(0, 0, of=partition(id, group=group))
    assert [one.partition_id for one in read_books(office.desk.ledger).partitions] == ["0", "2", "10"]


def test_a_hole_shows_and_the_audit_of_its_partition_names_its_numbers(office: Office) -> None:
    for first, last in [(0, 4), (7, 9), (10, 12), (20, 20)]:
        office.commit(first, last)
    books = read_books(office.desk.ledger)
    assert (books.accounted, books.numbers, books.balanced) == (12, 21, False)
    assert found_faults(office) == [("hole", 5, 6), ("hole", 13, 19)]
    for number in range(0, 240, 2):
        office.commit(number, number, of=partition("1"))
    done = audit(office.desk.audits, P1)
    assert ({fault.partition_id for fault in done.faults}, len(done.partitions)) == ({"1"}, 1)
    assert len(done.faults) == 100, "the number of reported faults has a limit"


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


def test_the_oldest_open_letter_is_the_one_that_failed_first(office: Office) -> None:
    statuses: tuple[LetterStatus, ...] = ("waiting", "exhausted", "held")
    given = [replace(letter(event(at)), status=status) for at, status in enumerate(statuses)]
    made = commit(office.store.read_partition(partition()), 0, 2, settled({}, letters=given))
    office.store.commit_batch(replace(made, committed_at=EPOCH))
    office.commit(3, 3, settled({}, letters=[letter(event(3))]))
    assert office.desk.ledger.find_oldest_letter(OPEN) == LetterKey(EPOCH, P, event(0).sequence_number)


def test_letters_are_counted_by_status_and_a_lost_one_is_an_imbalance_where_each_is_counted(office: Office) -> None:
    statuses = ["waiting", "exhausted", "exhausted", "held", "resolved", "discarded", "waiting", "waiting"]
    given = [replace(letter(event(at)), status=status) for at, status in enumerate(statuses)]  # type: ignore[arg-type]
    office.commit(0, 7, settled({}, letters=given))
    opened = {"waiting": 3, "retrying": 0, "held": 1, "exhausted": 2}
    every, rest = office.desk.ledger.count_letters(), office.desk.ledger.count_open()
    assert every.counts == {**opened, "resolved": 1, "discarded": 1}
    assert replace(rest, counts=every.counts) == every
    assert (rest.counts, rest.open, rest.settled, rest.dead_lettered, rest.balanced) == (opened, 6, 2, 8, True)
    office.engine.by_hand("DELETE FROM event_hub_dead_letter WHERE sequence_number = 1")
    every, rest = office.desk.ledger.count_letters(), office.desk.ledger.count_open()
    assert (every.open, every.settled, every.balanced) == (5, 2, False)
    assert (rest.open, rest.settled, rest.balanced) == (5, 3, True)


def test_a_recount_counts_the_rows_of_each_table_of_a_range_and_no_other_partition(office: Office) -> None:
    def rows(reach: Span = ALL) -> dict[str, tuple[int, int]]:
        assert office.desk.audits.find_row_faults(P, reach, 10) == ()
        return {one.table: (one.rows, one.unaccounted) for one in office.desk.audits.count_rows(P, reach)}

    office.commit(0, 2, settled({0: [home(), reading()], 1: [reading(), reading()]}, filtered=1))
    office.commit(3, 3, settled({3: [home(armed=True)]}))
    office.commit(0, 0, settled({0: [reading()]}), of=partition("1"))
    found = rows()
    assert (found["home"], found["sensor_reading"], found["home_alert"]) == ((1, 0), (3, 0), (0, 0))
    office.commit(4, 6, settled({4: [reading()], 5: [reading()]}, filtered=1))
    assert rows(span(1, 4))["sensor_reading"][0] == 3


def test_an_open_gap_is_counted_and_reported(office: Office) -> None:
    office.commit(0, 4)
    office.store.note_gap(office.store.read_partition(partition()), span(5, 8), EPOCH)
    assert [one.open_gaps for one in office.desk.ledger.read_books()] == [1]
    found = explain(P, SequenceNumber(6), office.desk.explanations)
    assert found is not None
    assert (found.outcome, "being fetched" in found.sentence) == ("not_yet", True)
    beyond = explain(P, SequenceNumber(9), office.desk.explanations)
    assert beyond is not None and beyond.found.gap is None


def test_a_ledger_that_begins_after_its_anchor_does_not_balance(office: Office) -> None:
    state = office.store.anchor_partition(office.store.read_partition(partition()), SequenceNumber(3), EPOCH)
    office.store.commit_batch(commit(state, 5, 9))
    (books,) = office.desk.ledger.read_books()
    assert (books.anchor, books.numbers, books.balanced) == (3, 7, False)
    assert found_faults(office) == [("hole", 3, 4)]


def failed(number: int, hour: float, status: LetterStatus = "waiting", is_kept: bool = True) -> DeadLetter:
    return replace(letter(event(number, "body", at=EPOCH + hour * HOUR)), status=status, keeps_body=is_kept)


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
    assert counted(office)["kept"] == OpenCount(P, "kept", 0, EPOCH, SequenceNumber(0))
    assert counted(office, 3)["kept"] == OpenCount(P, "kept", 2, EPOCH + HOUR, SequenceNumber(3))
    assert counted(office, 7)["kept"] == OpenCount(P, "kept", 5, None, SequenceNumber(7))


def test_an_open_gap_is_not_older_than_the_event_at_the_checkpoint(office: Office) -> None:
    office.commit(0, 4)
    office.store.note_gap(office.store.read_partition(partition()), span(5, 9), EPOCH)
    found_at = EPOCH + timedelta(days=3)
    office.store.note_gap(office.anchored(partition("1"), 3), span(3, 3), found_at)
    checkpoint = office.store.read_partition(partition()).checkpoint
    assert office.desk.burn_downs.read_open_gaps() == (
        OpenGap(P, SequenceNumber(5), checkpoint.enqueued_at),
        OpenGap(P1, SequenceNumber(3), found_at),
    )
    office.commit(5, 9)
    assert [gap.partition_id for gap in office.desk.burn_downs.read_open_gaps()] == ["1"]


def minute(at: datetime, lag: int = 7) -> Minute:
    return Minute(at, lag, 2**53 + lag)


def stored(office: Office, since: datetime = EPOCH - timedelta(days=9)) -> list[Minute]:
    return [*office.desk.ledger.read_minutes(since)]


def test_minutes_come_in_order_since_a_time_and_the_first_of_two_watches_in_one_is_stored(office: Office) -> None:
    office.commit(0, 0)
    seconds = timedelta(seconds=15, microseconds=300)
    written = [minute(EPOCH + seconds + at * MINUTE, at) for at in range(5)]
    second = [minute(EPOCH + timedelta(seconds=at), 9) for at in (0, 59.9)]
    for one in (written[3], written[0], *second, *written):
        office.desk.ledger.store_minute(one)
    assert stored(office) == written
    assert stored(office, EPOCH + 3 * MINUTE) == written[3:]


def test_each_stream_has_its_own_minutes_and_the_watch_of_any_removes_those_of_a_day_ago_of_all(office: Office) -> None:
    office.commit(0, 0)
    office.commit(0, 0, of=partition(group="other"))
    other = Ledger(OneStream(office.store.database, replace(STREAM, consumer_group="other")))
    own = [minute(at) for at in (EPOCH, EPOCH + MINUTE, EPOCH + 12 * HOUR)]
    for one in own:
        office.desk.ledger.store_minute(one)
    other.store_minute(minute(EPOCH, 2))
    assert (stored(office), other.read_minutes(EPOCH)) == (own, (minute(EPOCH, 2),))
    office.desk.ledger.store_minute(minute(EPOCH + KEPT))
    assert stored(office)[0].at == EPOCH
    other.store_minute(minute(EPOCH + KEPT + MINUTE, 3))
    assert stored(office)[0].at == EPOCH + MINUTE
    assert other.read_minutes(EPOCH) == (minute(EPOCH + KEPT + MINUTE, 3),)


def commit_at(office: Office, at: datetime, first: int, last: int, *gaps: SequenceGap, of: str = "0") -> None:
    absent = sum(gap.last - gap.first + 1 for gap in gaps if gap.status == "absent")
    state = office.store.read_partition(partition(of))
    made = commit(state, first, last, settled({}, filtered=last - first + 1 - absent))
    office.store.commit_batch(replace(made, committed_at=at, absent=absent, gaps=gaps))


def gap(first: int, last: int, status: str = "absent") -> SequenceGap:
    return SequenceGap(SequenceNumber(first), SequenceNumber(last), status)  # type: ignore[arg-type]


def test_an_open_task_is_held_up_while_it_has_a_fault(office: Office) -> None:
    count, tasks, job = office.desk.ledger.count_tasks_held_up, office.desk.tasks, UUID(int=7)
    commit_at(office, EPOCH, 0, 4)
    asked = TaskOrder(job, office.store.open_stream(STREAM), "ada", "look", EPOCH)
    tasks.open(TaskRequest(asked, "audit", "all", "{}", (PartRequest("0"),), 1))
    counts = [count()]
    for fault in ("no hub", None):
        tasks.note_fault(job, fault, EPOCH)
        counts.append(count())
    ends: tuple[TaskVerb, ...] = ("pause", "cancel")
    for verb in ends:
        tasks.move(TaskMove(job, verb, "audit", "", EPOCH, "Durable holds it"))
        counts.append(count())
    assert counts == [0, 1, 0, 1, 0]


def test_the_time_of_the_newest_batch_of_each_partition_is_exact_and_gone_with_its_ranges(office: Office) -> None:
    moment = EPOCH + timedelta(hours=5, microseconds=7)
    commit_at(office, EPOCH, 0, 4)
    commit_at(office, moment, 5, 9)
    commit_at(office, EPOCH + HOUR, 0, 3, of="1")
    assert office.desk.ledger.read_last_batches() == {P: moment, P1: EPOCH + HOUR}
    office.engine.by_hand("DELETE FROM batch_ledger WHERE partition_id = '0'")
    assert office.desk.ledger.read_last_batches() == {P1: EPOCH + HOUR}


def test_absent_numbers_count_from_the_time_of_the_commit_that_found_them_so(office: Office) -> None:
    late = EPOCH + 2 * HOUR
    commit_at(office, EPOCH + HOUR, 0, 9, gap(0, 2), gap(3, 9, "healed"))
    state = office.store.read_partition(partition())
    office.store.note_gap(state, span(10, 19), EPOCH)  # found long before it could be settled
    commit_at(office, late, 10, 19, gap(10, 14), gap(15, 19, "healed"))
    commit_at(office, late, 0, 3, gap(0, 0), of="1")
    count = office.desk.ledger.count_absent
    assert [count(EPOCH), count(late), count(late + timedelta(microseconds=1))] == [9, 6, 0]
