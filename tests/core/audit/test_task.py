"""Audits as tasks: one is open at a time in all processes, each part is stored, and a driver that is late records
nothing."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
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
NOBODY = UUID(int=0)
HUB = builders.STREAM


def request(office: Office, **given: object) -> TaskRequest:
    order = TaskOrder(uuid4(), office.store.open_stream(HUB), "ann@example.com", "", EPOCH)
    return audit_request(order, AuditAsked(**given), IDS)  # type: ignore[arg-type]


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

    def __init__(self, office: Office, minutes: float = 0) -> None:
        self.office, self.now, self.fault = office, at(minutes), None
        self.audited: list[str] = []
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
        self.audited.append(id)
        happens, self.meanwhile = self.meanwhile, lambda: None
        happens()


def opened(office: Office, **given: object) -> UUID:
    return open_task(request(office, **given), office.desk.tasks).task_id


def reports(task: Task) -> dict[str, str]:
    return {one.name: one.report for one in task.parts if one.closed_at is not None}


class TestOpening:
    def test_a_task_is_stored_with_all_that_was_requested(self, desks: tuple[Office, Office]) -> None:
        ends = {"first": SequenceNumber(2**62), "last": SequenceNumber(2**63 - 1)}
        asked = AuditAsked(IDS[1], rows=True, **ends)
        task = open_task(
            replace(request(desks[0]), asked=request(desks[0], **_fields(asked)).asked), desks[0].desk.tasks
        )
        assert desks[1].desk.tasks.find(task.task_id) == task
        assert report_of(task.asked, AuditAsked) == asked
        assert (task.status, task.requested_by, [one.name for one in task.parts]) == (
            "planned",
            "ann@example.com",
            [*IDS, STREAM],
        )
        assert desks[1].desk.tasks.find(NOBODY) is None

    def test_one_is_open_at_a_time_in_all_processes(self, desks: tuple[Office, Office]) -> None:
        here, there = desks
        first = opened(here)
        with pytest.raises(TaskOverlap) as overlap:
            opened(there)
        assert (overlap.value.task_id, str(overlap.value)) == (
            first,
            f"audit {first} is open: wait until it is done, or cancel it",
        )
        assert Auditor(here).work(first).is_over
        assert opened(there) != first

    def test_of_many_processes_that_open_one_at_the_same_moment_one_does(self, desks: tuple[Office, Office]) -> None:
        def ask(number: int) -> UUID | None:
            try:
                return opened(desks[number % 2])
            except TaskOverlap:
                return None

        with ThreadPoolExecutor(8) as pool:
            made = [one for one in pool.map(ask, range(8)) if one is not None]
        stream_id = desks[0].store.open_stream(HUB)
        assert [one[0] for one in desks[0].desk.tasks.read_open(stream_id)] == made
        assert len(made) == 1

    def test_none_is_opened_for_a_closed_stream(self, desks: tuple[Office, Office]) -> None:
        asked = request(desks[0])
        _next_incarnation(desks[0])
        with pytest.raises(StreamClosed):
            desks[0].desk.tasks.open(asked)


class TestWorking:
    def test_each_partition_is_audited_and_then_the_stream(self, desks: tuple[Office, Office]) -> None:
        task_id = opened(desks[0])
        assert open_parts(task_id, Auditor(desks[0]).kind) == (None,)  # in order, by one driver
        assert Auditor(desks[0]).work(task_id) == SliceReport(True, 3, 0)
        done = Auditor(desks[1]).find(task_id)
        assert (done.status, done.open_part, done.ended_at) == ("done", None, at(2))
        found = {name: report_of(text, Finding) for name, text in reports(done).items()}
        told = {name: one.partition and one.partition.accounted for name, one in found.items()}
        assert told == {"0": 1, "10": None, STREAM: None}
        assert open_parts(task_id, Auditor(desks[1]).kind) == ()

    def test_when_its_time_is_over_the_next_process_goes_on(self, desks: tuple[Office, Office]) -> None:
        task_id = opened(desks[0])
        first, second = Auditor(desks[0]), Auditor(desks[1], 1)
        assert not first.work(task_id, minutes=1).is_over
        assert second.work(task_id).is_over
        assert (first.audited, second.audited) == (["0"], ["10"])

    def test_of_two_processes_that_do_one_part_the_late_one_records_nothing_and_goes_on(
        self, desks: tuple[Office, Office]
    ) -> None:
        here, there, task_id = Auditor(desks[0]), Auditor(desks[1]), opened(desks[0])
        here.meanwhile = lambda: there.work(task_id, minutes=0)
        assert here.work(task_id).is_over
        assert (here.audited, there.audited) == (["0", "10"], ["0"])
        assert [one.step for one in here.find(task_id).parts] == [1, 1, 1]

    def test_a_paused_task_waits_and_a_cancelled_one_records_nothing_more(self, desks: tuple[Office, Office]) -> None:
        here, task_id = Auditor(desks[0]), opened(desks[0])

        def moved(verb: str) -> bool:
            return here.office.desk.tasks.move(TaskMove(task_id, verb, "ann", "why", here.now))  # type: ignore[arg-type]

        here.meanwhile = lambda: moved("pause")
        assert here.work(task_id) == SliceReport(True, 0, 0)
        assert (here.find(task_id).status, reports(here.find(task_id))) == ("paused", {})
        assert moved("resume")
        here.meanwhile = lambda: moved("cancel")
        here.work(task_id)
        assert (here.find(task_id).status, reports(here.find(task_id)), moved("resume")) == ("cancelled", {}, False)

    def test_the_next_incarnation_of_the_stream_ends_the_task_and_its_process_records_nothing(
        self, desks: tuple[Office, Office]
    ) -> None:
        auditor, task_id = Auditor(desks[0]), opened(desks[0])
        auditor.meanwhile = lambda: _next_incarnation(desks[0])
        assert auditor.work(task_id) == SliceReport(True, 0, 0)
        ended = auditor.find(task_id)
        assert (ended.status, reports(ended), ended.ended_at) == ("cancelled", {}, at(1))
        assert "next incarnation" in (ended.fault or "")

    def test_a_fault_waits_in_the_task_until_it_is_gone(self, desks: tuple[Office, Office]) -> None:
        auditor, task_id = Auditor(desks[0]), opened(desks[0])
        _held_up(auditor, task_id)
        held = auditor.find(task_id)
        assert (held.status, held.fault, held.open_part and held.open_part.name) == ("running", "no hub", "0")
        auditor.fault = None
        auditor.work(task_id)
        assert (auditor.find(task_id).status, auditor.find(task_id).fault) == ("done", None)

    @pytest.mark.parametrize("is_paused", [False, True])
    def test_one_that_is_open_at_its_deadline_fails_with_its_last_fault(
        self, desks: tuple[Office, Office], is_paused: bool
    ) -> None:
        auditor, task_id = Auditor(desks[0]), opened(desks[0])
        _held_up(auditor, task_id)
        if is_paused:
            auditor.office.desk.tasks.move(TaskMove(task_id, "pause", "ann", "why", auditor.now, "no hub"))
        auditor.now = EPOCH + DEADLINE
        assert auditor.work(task_id).is_over
        failed = auditor.find(task_id)
        assert (failed.status, failed.fault) == ("failed", "the audit was not done in 2:00:00: no hub")
        assert opened(desks[1]) != task_id


def _held_up(auditor: Auditor, task_id: UUID) -> None:
    """Work, with a hub that cannot be reached, as an activity does."""
    auditor.fault = HubUnreachable("no hub")  # type: ignore[assignment]
    with pytest.raises(InfrastructureFault) as fault:
        auditor.work(task_id)
    note_fault(task_id, fault.value, auditor.kind)


def _next_incarnation(office: Office) -> None:
    opening = Opening(office.store.read_incarnation(HUB), HUB, at(1), {}, "ada", "it was recreated", at(1))
    Incarnations(office.store.database, Partitions(office.store.database)).open_incarnation(opening)


def _fields(asked: AuditAsked) -> dict[str, object]:
    return {name: getattr(asked, name) for name in asked.__dataclass_fields__}
