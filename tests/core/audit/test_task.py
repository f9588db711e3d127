"""Audits as tasks: one is open at a time in all processes, each part is stored, and a deadline ends them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from core.audit.store import AuditStore
from core.audit.task import DEADLINE, STREAM, AuditAsked, AuditKind, Finding, audit_request
from core.errors import HubUnreachable, InfrastructureFault, TaskOverlap
from core.incarnations.next_incarnation import Incarnations, Opening
from core.model.events import PartitionId, SequenceNumber
from core.model.ports import Clock
from core.settle.partition_store import Partitions
from core.store.database import OneStream, StreamClosed
from core.tasks.run import SliceReport, note_fault, open_parts, open_task, work_on
from core.tasks.statuses import TaskMove
from core.tasks.task import Task, TaskOrder, TaskRequest, report_of
from tests.core.conftest import Office
from tests.fakes import builders
from tests.fakes.builders import EPOCH

IDS = (PartitionId("0"), PartitionId("10"))
HUB = builders.STREAM


def request(office: Office, asked: AuditAsked | None = None) -> TaskRequest:
    order = TaskOrder(uuid4(), office.store.open_stream(HUB), "ann@example.com", "", EPOCH)
    return audit_request(order, asked or AuditAsked(), IDS)


def at(minutes: float) -> datetime:
    return EPOCH + timedelta(minutes=minutes)


@pytest.fixture
def desks(make_office: Callable[[], Office]) -> tuple[Office, Office]:
    """Two processes over a stream with one commit."""
    here, there = make_office(), make_office()
    here.commit(0, 0)
    return here, there


@dataclass(frozen=True, slots=True)
class NotingAudits(AuditKind):
    """Audits that tell of each partition before they audit it."""

    told: Callable[[PartitionId], None]

    def find_in_partition(self, task: Task, id: PartitionId) -> Finding:
        self.told(id)
        return AuditKind.find_in_partition(self, task, id)


class Auditor:
    """A driver of audits over a desk: a minute passes with each part; `fault` is raised by the next one."""

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


def test_a_task_is_stored_with_all_that_was_requested(desks: tuple[Office, Office]) -> None:
    asked = AuditAsked(IDS[1], first=SequenceNumber(2**62), last=SequenceNumber(2**63 - 1), rows=True)
    task = open_task(request(desks[0], asked), desks[0].desk.tasks)
    assert desks[1].desk.tasks.find(task.task_id) == task
    assert report_of(task.asked, AuditAsked) == asked
    assert (task.status, task.requested_by) == ("planned", "ann@example.com")
    assert [one.name for one in task.parts] == [*IDS, STREAM]
    assert desks[1].desk.tasks.find(UUID(int=0)) is None


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
    assert told == {"0": 1, "10": None, STREAM: None}
    assert open_parts(task_id, Auditor(desks[1]).kind) == ()


def test_the_next_incarnation_of_the_stream_ends_the_task_and_none_is_opened_for_the_closed_one(
    desks: tuple[Office, Office],
) -> None:
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
def test_a_fault_waits_in_the_task_until_it_is_gone_or_the_deadline_is_over(
    desks: tuple[Office, Office], end: str
) -> None:
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
