"""Audits as jobs: one is open at a time in all processes, one process works on it, and each step is stored."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from core.errors import HubUnreachable
from core.ledger.audit_job import DEADLINE, AuditJob, AuditRequest
from core.ledger.audit_work import LEASE, STREAM, AuditMeans, work_on_audit
from core.ledger.store.incarnations import Incarnations, Opening
from core.model.events import PartitionId
from core.model.spans import SequenceNumber
from tests.contract.operator.conftest import Office
from tests.fakes import builders
from tests.fakes.builders import EPOCH

IDS = (PartitionId("0"), PartitionId("10"))
NOBODY = UUID(int=0)
HUB = builders.STREAM


def request(**given: object) -> AuditRequest:
    return replace(AuditRequest(uuid4(), "ann@example.com", EPOCH), **given)  # type: ignore[arg-type]


def at(minutes: float) -> datetime:
    return EPOCH + timedelta(minutes=minutes)


@pytest.fixture
def desks(make_office: Callable[[], Office]) -> tuple[Office, Office]:
    """Two processes over a stream with one commit."""
    here, there = make_office(), make_office()
    here.commit(0, 0)
    return here, there


class Auditor:
    """The means of a job over a desk: a minute passes with each audit; `fault` is raised by the next one."""

    def __init__(self, office: Office, minutes: float = 0) -> None:
        self.office, self.now, self.fault = office, at(minutes), None
        self.audited: list[str] = []
        self.meanwhile: Callable[[], object] = lambda: None

    def work(self, minutes: float = 60) -> AuditJob | None:
        means = AuditMeans(
            self.office.desk.audits, lambda _: IDS, self.partition, lambda _: '"whole"', lambda: self.now
        )
        return work_on_audit(means, self.now + timedelta(minutes=minutes))

    fault: HubUnreachable | None

    def partition(self, request: AuditRequest, id: PartitionId, until: datetime) -> str:
        if self.fault is not None:
            raise self.fault
        self.now += timedelta(minutes=1)
        self.audited.append(id)
        happens, self.meanwhile = self.meanwhile, lambda: None
        happens()
        return f'"{id}"'


class TestOpening:
    def test_a_job_is_stored_with_all_that_was_requested(self, desks: tuple[Office, Office]) -> None:
        asked = request(
            partition_id=IDS[1],
            whole=True,
            rows=True,
            hub=True,
            first=SequenceNumber(2**62),
            last=SequenceNumber(2**63 - 1),
        )
        assert desks[0].desk.audits.open_audit(asked)
        assert desks[1].desk.audits.find_audit(asked.audit_id) == AuditJob(asked)
        assert desks[1].desk.audits.find_audit(NOBODY) is None

    def test_one_is_open_at_a_time_in_all_processes(self, desks: tuple[Office, Office]) -> None:
        here, there = desks
        first, second = request(), request()
        assert (here.desk.audits.open_audit(first), there.desk.audits.open_audit(second)) == (True, False)
        assert there.desk.audits.find_open_audit() == first.audit_id
        done = Auditor(here).work()
        assert done is not None
        assert done.status == "done"
        assert there.desk.audits.find_open_audit() is None
        assert there.desk.audits.open_audit(second)

    def test_a_job_that_is_sent_again_because_its_answer_was_lost_is_open(self, desks: tuple[Office, Office]) -> None:
        asked = request()
        assert [desks[0].desk.audits.open_audit(asked) for _ in range(2)] == [True, True]

    def test_of_many_processes_that_open_one_at_the_same_moment_one_does(self, desks: tuple[Office, Office]) -> None:
        asked = [request() for _ in range(8)]
        with ThreadPoolExecutor(8) as pool:
            opened = [*pool.map(lambda at: desks[at % 2].desk.audits.open_audit(asked[at]), range(8))]
        assert sorted(opened) == [False] * 7 + [True]
        assert desks[0].desk.audits.find_open_audit() == asked[opened.index(True)].audit_id

    def test_there_is_nothing_to_open_or_to_do_without_a_stream(self, office: Office) -> None:
        assert not office.desk.audits.open_audit(request())
        assert (office.desk.audits.find_open_audit(), Auditor(office).work()) == (None, None)


class TestWorking:
    def test_each_partition_is_audited_and_then_the_stream(self, desks: tuple[Office, Office]) -> None:
        asked = request()
        desks[0].desk.audits.open_audit(asked)
        done = Auditor(desks[0]).work()
        assert done is not None
        assert done == desks[1].desk.audits.find_audit(asked.audit_id)
        assert (done.status, done.left, done.ended_at) == ("done", (), at(2))
        assert done.findings == {"0": '"0"', "10": '"10"', STREAM: '"whole"'}
        assert Auditor(desks[1], 60).work() is None

    def test_when_its_time_is_over_the_next_process_goes_on(self, desks: tuple[Office, Office]) -> None:
        desks[0].desk.audits.open_audit(request())
        first, second = Auditor(desks[0]), Auditor(desks[1], 1)
        half, done = first.work(minutes=1), second.work()
        assert half is not None
        assert done is not None
        assert (half.status, half.left, done.status) == ("open", IDS[1:], "done")
        assert (first.audited, second.audited) == (["0"], ["10"])

    def test_while_one_process_works_no_other_does_until_its_lease_is_over(self, desks: tuple[Office, Office]) -> None:
        here, there = desks
        here.desk.audits.open_audit(request())
        claimed = here.desk.audits.claim_audit(at(0), at(0) + LEASE)
        assert claimed is not None
        assert Auditor(there, 9).work() is None
        assert Auditor(there, 10).work(minutes=1) is not None
        late = replace(claimed, partitions=IDS, findings={"0": '"late"'})
        assert not here.desk.audits.record_audit(late, at(11), at(11))

    def test_of_two_processes_that_run_one_job_the_frozen_one_records_nothing(
        self, desks: tuple[Office, Office]
    ) -> None:
        here, there = Auditor(desks[0]), Auditor(desks[1], DEADLINE / timedelta(minutes=1))
        desks[0].desk.audits.open_audit(request())
        ended: list[AuditJob | None] = []
        here.meanwhile = lambda: ended.append(there.work())
        assert here.work() is None
        assert [(job.status, job.findings) for job in ended if job] == [("failed", {})]
        assert here.audited == ["0"]

    def test_the_next_incarnation_of_the_stream_ends_the_job_and_its_process_records_nothing(
        self, desks: tuple[Office, Office]
    ) -> None:
        here, auditor, asked = desks[0], Auditor(desks[0]), request()
        here.desk.audits.open_audit(asked)
        opening = Opening(here.store.read_incarnation(HUB), HUB, at(1), {}, "ada", "it was recreated", at(1))
        auditor.meanwhile = lambda: Incarnations(here.store.database).open_incarnation(opening)
        assert auditor.work() is None
        ended = here.desk.audits.find_audit(asked.audit_id)
        assert ended is not None
        assert (ended.status, ended.findings, ended.ended_at) == ("failed", {}, at(1))
        assert "next incarnation" in (ended.fault or "")

    def test_a_fault_waits_in_the_job_until_it_is_gone(self, desks: tuple[Office, Office]) -> None:
        desks[0].desk.audits.open_audit(request())
        auditor = Auditor(desks[0])
        auditor.fault = HubUnreachable("no hub")
        held = auditor.work()
        assert held is not None
        assert (held.status, held.fault, held.left) == ("open", "no hub", IDS)
        auditor.fault = None
        done = auditor.work()
        assert done is not None
        assert (done.status, done.fault) == ("done", None)

    def test_a_job_that_is_open_at_its_deadline_fails_with_its_last_fault(self, desks: tuple[Office, Office]) -> None:
        here, there = desks
        here.desk.audits.open_audit(request())
        auditor = Auditor(here)
        auditor.fault = HubUnreachable("no hub")
        auditor.work()
        auditor.now = EPOCH + DEADLINE
        failed = auditor.work()
        assert failed is not None
        assert (failed.status, failed.fault) == ("failed", "the audit was not done in 2:00:00: no hub")
        assert there.desk.audits.open_audit(request())
