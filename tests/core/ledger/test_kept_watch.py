"""Every store gives the watch the times of commits, and counts the numbers found absent since a time."""

from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from core.model.commits import SequenceGap
from core.model.events import PartitionId, SequenceNumber
from core.tasks.statuses import TaskMove, TaskVerb
from core.tasks.task import PartRequest, TaskOrder, TaskRequest
from tests.core.conftest import Office
from tests.fakes.builders import EPOCH, NOON, STREAM, commit, partition, settled
from tests.fakes.engines import SqliteEngine
from tests.fakes.operator_stores import operator_stores
from tests.fakes.replaying import World, log_of, order
from tests.fakes.store import homes_of
from tests.sql.values import ROW_CLASSES

P0, P1 = PartitionId("0"), PartitionId("1")
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


def test_an_empty_database_tells_nothing(office: Office) -> None:
    assert (office.desk.ledger.read_last_batches(), office.desk.ledger.count_absent(EPOCH)) == ({}, 0)


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
    assert office.desk.ledger.read_last_batches() == {P0: moment, P1: EPOCH + timedelta(hours=1)}


def test_a_partition_whose_ranges_are_all_gone_has_no_time(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path / "store.db")
    with closing(engine.open()) as store:
        office = Office(engine, store, operator_stores(store.database, STREAM, ROW_CLASSES), homes_of(store.database))
        commit_at(office, EPOCH, 0, 4)
        commit_at(office, EPOCH, 0, 3, of="1")
        engine.sql("DELETE FROM batch_ledger WHERE partition_id = '0'")
        assert office.desk.ledger.read_last_batches() == {P1: EPOCH}


def test_a_replay_does_not_move_a_partition(office: Office) -> None:
    world = World(office.store, {"0": log_of("reading a", "quiet")})
    before = office.desk.ledger.read_last_batches()
    world.clock.advance(3_600)
    world.replay(order(["0"], 1, 1))
    assert office.desk.ledger.read_last_batches() == before == {P0: NOON}


def test_absent_numbers_count_from_the_time_of_the_commit_that_found_them_so(office: Office) -> None:
    late = EPOCH + timedelta(hours=2)
    commit_at(office, EPOCH + timedelta(hours=1), 0, 9, gap(0, 2), gap(3, 9, "healed"))
    state = office.store.read_partition(partition())
    office.store.note_gap(state, gap(10, 19), EPOCH)  # found long before it could be settled
    commit_at(office, late, 10, 19, gap(10, 14), gap(15, 19, "healed"))
    commit_at(office, late, 0, 3, gap(0, 0), of="1")
    count = office.desk.ledger.count_absent
    assert [count(EPOCH), count(late), count(late + timedelta(microseconds=1))] == [9, 6, 0]
