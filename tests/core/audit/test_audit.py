from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, repeat
from typing import Any
from uuid import UUID, uuid4

import pytest

from core.audit.audit import Audit, AuditedPartition, Reading, audit, recount_rows, window
from core.audit.faults import LedgerFault, PartitionLedger
from core.audit.store import AuditStore
from core.audit.task import DEADLINE, AuditAsked, AuditKind, Finding, audit_request
from core.audit.task import STREAM as WHOLE_STREAM
from core.errors import HubUnreachable, InfrastructureFault, TaskOverlap
from core.incarnations.next_incarnation import Incarnations, Opening
from core.model.events import PartitionId, SequenceNumber, Span
from core.model.ports import Clock
from core.settle.partition_store import Partitions
from core.store.database import Database, OneStream, StreamClosed
from core.store.script import Named, Outcome, Script
from core.tasks.run import SliceReport, note_fault, open_parts, open_task, work_on
from core.tasks.statuses import TaskMove
from core.tasks.task import Task, TaskOrder, TaskRequest, report_of
from tests.core.conftest import Office
from tests.core.letters.test_store import failed, retry
from tests.fakes.builders import EPOCH, NOON, claim, event, letter, partition, reading, settled
from tests.fakes.builders import STREAM as HUB
from tests.fakes.replaying import World, log_of, order
from tests.fakes.store import MemoryStore, OperatorStores, operator_stores
from tests.sql.values import ROW_CLASSES

N = SequenceNumber
LOG = log_of(
    *("reading a", "quiet", "double a", "poison", "reading b", "bug", "home h 1"), *("reading c", "quiet", "reading d")
)
GAP = (
    "INSERT INTO sequence_gap (stream_id, partition_id, first_sequence_number, last_sequence_number, found_at, status,"
    " attempts) SELECT stream_id, '0', 3, 4, '2026-01-01T00:00:00.000000Z', 'absent', 1 FROM event_stream"
)
Told = tuple[str, int, int, str]


@pytest.fixture
def audited(office: Office) -> Office:
    """A partition of ten events in two batches with two letters, a replay of the first two, and a retry of letter 5."""
    world = World(office.store, {"0": LOG})
    world.replay(order(["0"], 0, 1))
    office.store.claim_letters(claim(at=NOON + timedelta(hours=1)))
    office.store.commit_retry(retry(office.store, [failed(5)]))
    return office


def check(faults: tuple[LedgerFault, ...], expected: list[Told]) -> None:
    found = [(fault.kind, fault.first, fault.last, fault.detail) for fault in faults]
    assert sorted(one[:3] for one in found) == sorted(one[:3] for one in expected), found
    for *place, words in expected:
        assert any(words in detail for *other, detail in found if other == place), found


def test_a_ledger_in_order_has_no_fault_and_its_rows_are_counted(audited: Office) -> None:
    done = audit(audited.desk.audits, None)
    assert done.balanced
    recount = recount_rows(done.partitions[0], Span(N(0), N(9)), audited.desk.audits)
    assert (recount.rows, recount.faults) == (7, ())
    for table in ("batch_ledger", "event_hub_checkpoint", "event_hub_dead_letter", "dead_letter_attempt", "task_part"):
        audited.engine.by_hand(f"DELETE FROM {table}")
    for table in ("retracted_row", "task", "sensor_reading", "home_alert"):
        audited.engine.by_hand(f"DELETE FROM {table}")
    left = audit(audited.desk.audits, None)  # an anchor alone is nothing
    assert (left.partitions, left.faults) == ((), ())


TOTALS = ("totals", 0, 9, "counts 10 numbers in 2 ranges up to commit 4, but the ranges have a different sum")
OF_COMMIT = "the totals of commit {} are not those of the commit before it and its own counts"
CHANGES: dict[str, tuple[str, list[Told]]] = {  # tests/simulation/tamperings.py has one of each kind
    "a range that begins late": (
        "UPDATE batch_ledger SET first_sequence_number = 8, filtered = filtered - 1 WHERE commit_number = 2",
        [("hole", 7, 7, "commit 2 begins at 8, but the range"), ("totals", 8, 9, OF_COMMIT.format(2)), TOTALS],
    ),
    "a ledger that ends early": (
        "UPDATE event_hub_checkpoint SET sequence_number = 25",
        [("short", 10, 25, "the ledger ends at 9, before the checkpoint at 25")],
    ),
    "a ledger that ends late": (
        "UPDATE event_hub_checkpoint SET sequence_number = 8",
        [("beyond", 9, 9, "the ledger ends at 9, after the checkpoint at 8")],
    ),
    "a ledger that begins after the anchor": (
        "UPDATE partition_anchor SET sequence_number = -3",
        [("hole", -3, -1, "the ledger begins at 0, but the partition is anchored at -3")],
    ),
    "commits without a row": (
        "DELETE FROM batch_ledger WHERE commit_number IN (1, 3, 4)",
        [
            ("commits", 7, 9, "the ledger has no row for commit 1"),
            ("commits", 0, 0, "the ledger has no row for commits 3 to 4"),
            TOTALS,
            ("hole", 0, 6, "anchored at 0"),
            ("letters_outside", 7, 9, "there are 2 letters"),
            ("replays", 0, 1, "counts 1 events written"),
        ],
    ),
    "a different attempt": (
        "UPDATE dead_letter_attempt SET status = 'resolved'",
        [
            ("attempts", 5, 5, "letter 5 is waiting, but its last attempt left it resolved"),
            ("attempts", 5, 5, "and resolved 0, but 1 attempts name it, and 1 of them resolved a letter"),
        ],
    ),
    "an attempt too few": (
        "UPDATE dead_letter_attempt SET attempt = 3",
        [("attempts", 5, 5, "letter 5 has 1 attempts, but the last one is attempt 3")],
    ),
    "rows that a replay retracted": (
        "DELETE FROM retracted_row",
        [("replays", 0, 1, "its commits count 1 and 1 written, and 0 retracted rows exist")],
    ),
    "absent numbers of a gap": (GAP, [("absent", 3, 4, "no range counts its numbers as absent")]),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_is_named_with_its_numbers_and_with_what_differs(audited: Office, case: str) -> None:
    statement, expected = CHANGES[case]
    audited.engine.by_hand(statement)
    check(audit(audited.desk.audits, None).faults, expected)


OF_READINGS = "UPDATE sensor_reading SET {} WHERE sequence_number = 7"


def test_outcomes_that_do_not_sum_to_the_numbers_are_named_in_a_copy_without_the_constraints_of_the_schema() -> None:
    store = MemoryStore()
    World(store, {"0": LOG})
    store.sql("PRAGMA ignore_check_constraints = ON")
    store.sql("UPDATE batch_ledger SET written = written + 1 WHERE commit_number = 2")
    faults = audit(operator_stores(store.database, HUB, ROW_CLASSES).audits, None).faults
    assert ("counts", "the ledger has 11 outcomes for 10 numbers") in [(one.kind, one.detail) for one in faults]


def test_rows_outside_of_the_ledger_are_looked_for_at_its_ends_only(audited: Office) -> None:
    done = audit(audited.desk.audits, None)
    audited.engine.by_hand(OF_READINGS.format("sequence_number = 99"))
    for first, last, is_found in ((0, 9, True), (7, 9, True), (0, 8, False), (2, 8, False)):
        faults = recount_rows(done.partitions[0], Span(N(first), N(last)), audited.desk.audits).faults
        assert ("rows" in {fault.kind for fault in faults}) is is_found, (first, last)


@pytest.mark.parametrize(
    ("first", "last", "most", "expected"),
    [
        (None, None, 100, (10, 19)),
        (None, None, 4, (16, 19)),
        (None, 15, 4, (12, 15)),
        (None, 12, 4, (10, 12)),
        (12, None, 4, (12, 15)),
        (12, 14, 4, (12, 14)),
        (0, 99, 100, (10, 19)),
        (20, None, 4, None),
        (None, 9, 4, None),
    ],
)
def test_what_is_recounted_at_once_has_a_limit(
    first: int | None, last: int | None, most: int, expected: tuple[int, int] | None
) -> None:
    ledger = PartitionLedger(10, 0, 0, 0, 0, 1, N(10), N(19), partition=partition(), checkpoint=N(19), letters=0)
    found = window(ledger, None if first is None else N(first), None if last is None else N(last), most)
    assert (None if found is None else found.ends) == expected


class Interrupted:
    """A database. Something happens once, before the first use of a statement."""

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
    return operator_stores(Interrupted(office.store.database, statement, happens), HUB, ROW_CLASSES)


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


def test_letters_are_compared_in_their_piece_and_ranges_with_a_fault_named(office: Office) -> None:
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


def test_letters_that_no_range_counts_are_looked_for_until_the_time_is_over(office: Office) -> None:
    fill(office, 0, 5)
    office.letters(letter(event(6)))
    office.engine.by_hand("UPDATE event_hub_dead_letter SET sequence_number = 2")
    office.engine.by_hand("UPDATE batch_ledger SET dead_lettered = 0, filtered = 1 WHERE commit_number = 7")
    assert kinds(office) == ["totals", "totals", "letters"]
    fault = audit(office.desk.audits, None, Reading(after(1))).faults[-1]
    assert fault.kind == "letters_outside"
    assert "the time was over" in fault.detail


IDS = (PartitionId("0"), PartitionId("10"))


def request(office: Office, asked: AuditAsked | None = None) -> TaskRequest:
    order = TaskOrder(uuid4(), office.store.open_stream(HUB), "ann@example.com", "", EPOCH)
    return audit_request(order, asked or AuditAsked(), IDS)


def at(minutes: float) -> datetime:
    return EPOCH + timedelta(minutes=minutes)


@pytest.fixture
def desks(make_office: Callable[[], Office]) -> tuple[Office, Office]:
    here, there = make_office(), make_office()
    here.commit(0, 0)
    return here, there


@dataclass(frozen=True, slots=True)
class NotingAudits(AuditKind):
    told: Callable[[PartitionId], None]

    def find_in_partition(self, task: Task, id: PartitionId) -> Finding:
        self.told(id)
        return AuditKind.find_in_partition(self, task, id)


class Auditor:
    """A driver of audits over a desk: a minute passes with each part. `fault` is raised by the next one."""

    def __init__(self, office: Office) -> None:
        self.office, self.now = office, EPOCH
        self.fault: Exception | None = None
        self.meanwhile: Callable[[], object] = lambda: None
        clock = Clock(lambda: self.now, uuid4, lambda: 0.5)
        self.kind = NotingAudits(AuditStore(OneStream(office.store.database, HUB), ()), clock, self.partition)

    def work(self, task_id: UUID, minutes: float = 60) -> SliceReport:
        return work_on(task_id, None, self.kind, self.now + timedelta(minutes=minutes))

    def find(self, task_id: UUID) -> Task:
        found = self.office.desk.tasks.find(task_id)
        assert found is not None
        return found

    def partition(self, id: PartitionId) -> None:
        if self.fault is not None:
            raise self.fault
        self.now += timedelta(minutes=1)
        happens, self.meanwhile = self.meanwhile, lambda: None
        happens()


def opened(office: Office) -> UUID:
    return open_task(request(office), office.desk.tasks).task_id


def reports(task: Task) -> dict[str, str]:
    return {one.name: one.report for one in task.parts if one.closed_at is not None}


def test_one_is_open_at_a_time_in_all_processes(desks: tuple[Office, Office]) -> None:
    here, there = desks
    first = opened(here)
    with pytest.raises(TaskOverlap) as overlap:
        opened(there)
    assert overlap.value.task_id == first
    assert str(overlap.value) == f"audit {first} is open: wait until it is done, or cancel it"
    assert Auditor(here).work(first).is_over
    assert opened(there) != first


def test_each_partition_is_audited_and_then_the_stream(desks: tuple[Office, Office]) -> None:
    task_id = opened(desks[0])
    assert open_parts(task_id, Auditor(desks[0]).kind) == (None,)  # in order, by one driver
    assert Auditor(desks[0]).work(task_id) == SliceReport(True, 3, 0)
    done = Auditor(desks[1]).find(task_id)
    assert (done.status, done.open_part, done.ended_at) == ("done", None, at(2))
    found = {name: report_of(text, Finding) for name, text in reports(done).items()}
    told = {name: one.partition and one.partition.accounted for name, one in found.items()}
    assert told == {"0": 1, "10": None, WHOLE_STREAM: None}
    assert open_parts(task_id, Auditor(desks[1]).kind) == ()


def test_the_next_incarnation_of_the_stream_ends_the_task(desks: tuple[Office, Office]) -> None:
    auditor, asked, task_id = Auditor(desks[0]), request(desks[0]), opened(desks[0])
    store = desks[0].store
    opening = Opening(store.read_incarnation(HUB), HUB, at(1), {}, "ada", "it was recreated", at(1))
    incarnations = Incarnations(store.database, Partitions(store.database))
    auditor.meanwhile = lambda: incarnations.open_incarnation(opening)
    assert auditor.work(task_id) == SliceReport(True, 0, 0)
    ended = auditor.find(task_id)
    assert (ended.status, reports(ended), ended.ended_at) == ("cancelled", {}, at(1))
    assert "next incarnation" in (ended.fault or "")
    with pytest.raises(StreamClosed):
        desks[0].desk.tasks.open(asked)


@pytest.mark.parametrize("end", ["done", "failed", "failed while paused"])
def test_a_fault_waits_in_the_task_until_it_is_gone_or_time_is_over(desks: tuple[Office, Office], end: str) -> None:
    auditor, task_id = Auditor(desks[0]), opened(desks[0])
    auditor.fault = HubUnreachable("no hub")
    with pytest.raises(InfrastructureFault) as fault:
        auditor.work(task_id)
    note_fault(task_id, fault.value, auditor.kind)
    held = auditor.find(task_id)
    assert (held.status, held.fault, held.open_part and held.open_part.name) == ("running", "no hub", "0")
    if end == "done":
        auditor.fault = None
        auditor.work(task_id)
        assert (auditor.find(task_id).status, auditor.find(task_id).fault) == ("done", None)
        return
    if end == "failed while paused":
        assert desks[0].desk.tasks.move(TaskMove(task_id, "pause", "ann", "why", auditor.now, "no hub"))
    auditor.now = EPOCH + DEADLINE
    assert auditor.work(task_id).is_over
    failed = auditor.find(task_id)
    assert (failed.status, failed.fault) == ("failed", "the audit was not done in 2:00:00: no hub")
    assert opened(desks[1]) != task_id
