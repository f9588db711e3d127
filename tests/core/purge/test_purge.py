import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain, repeat
from uuid import UUID, uuid4

import pytest

from core.audit.audit import WHOLE, Reading, audit, recount_rows
from core.audit.task import AuditAsked, audit_request
from core.errors import TaskConflict
from core.ledger.explain import Outcome, explain
from core.ledger.store import read_books
from core.ledger.totals import NOT_PURGED
from core.model.events import PartitionId, SequenceNumber, Span
from core.model.letters import LetterMove, Move
from core.model.policies import DEFAULT_DAYS
from core.model.ports import Clock
from core.purge.purge import Purge, PurgedTable, PurgeTarget, purge_of, purge_request
from core.purge.task import PurgeKind
from core.tasks.run import SliceReport, move_task, open_task, work_on
from core.tasks.statuses import TaskMove
from core.tasks.store import Ending
from core.tasks.task import Advance, TaskOrder
from tests.core.audit.test_audit import GAP, interrupted
from tests.core.conftest import Office
from tests.fakes.builders import NOON, event, partition
from tests.fakes.replaying import World, changed, log_of, order

P = PartitionId("0")
LATER = NOON + timedelta(days=1_000)
LOG = log_of(*["reading a", "double a", "quiet", "poison", "reading b", "home h 1", "poison"] * 3)


@dataclass
class Keeper:
    """The means of purges over a desk."""

    office: Office
    jobs: tuple[str, ...] = ()
    now: datetime = LATER
    meanwhile: Callable[[], object] = field(default=lambda: None)
    reading: Reading = WHOLE
    pieces: Mapping[str, int] = field(default_factory=dict)

    def purge(self, days: int = 400, dry_run: bool = False, **own: int) -> Purge:
        task_id = self.ask(days, dry_run, **own)
        self.work(task_id)
        return self.find(task_id)

    def ask(self, days: int = 400, dry_run: bool = False, **own: int) -> UUID:
        purges = self.office.desk.purges
        order = TaskOrder(uuid4(), purges.stream.find() or 0, "ann", "room", self.now)
        of_tables = {**dict.fromkeys(DEFAULT_DAYS, days), **own}
        request = purge_request(order, of_tables, purges.read_purge_partitions(), is_dry_run=dry_run)
        return open_task(request, self.office.desk.tasks).task_id

    @property
    def kind(self) -> PurgeKind:
        clock = Clock(lambda: self.now, uuid4, lambda: 0.5)
        return replace(PurgeKind(self.office.desk.purges, self.verify, self.jobs, clock), **self.pieces)  # type: ignore[arg-type]

    def work(self, task_id: UUID | None = None) -> SliceReport:
        return work_on(task_id or self.open(), None, self.kind, self.now + timedelta(hours=1))

    def open(self) -> UUID:
        purges = self.office.desk.purges
        ((task_id, _, _),) = self.office.desk.tasks.read_open(purges.stream.find() or 0)
        return task_id

    def cancel(self, task_id: UUID) -> bool:
        return self.office.desk.tasks.move(TaskMove(task_id, "cancel", "ann", "stop", self.now))

    def piece(self, task_id: UUID, target: PurgeTarget) -> tuple[Ending, Advance]:
        part = self.find(task_id).task.part(target.name)
        assert part is not None
        ending = Ending(task_id, "purge", self.now)
        return ending, Advance(part.name, part.step, 0, part.report)

    def verify(self, id: PartitionId, until: datetime) -> tuple[int, int]:
        done = audit(self.office.desk.audits, id, self.reading)
        found = len(done.faults), done.partitions[0].until
        happens, self.meanwhile = self.meanwhile, lambda: None
        happens()
        return found

    def find(self, task_id: UUID) -> Purge:
        found = self.office.desk.tasks.find(task_id)
        assert found is not None
        return purge_of(found)


def sound(office: Office) -> bool:
    audits = office.desk.audits
    done = audit(audits, None)
    assert done.faults == ()
    for one in done.partitions:
        assert recount_rows(one, Span(SequenceNumber(0), one.ledger.checkpoint), audits).faults == ()
    return read_books(office.desk.ledger).balanced


def discard(office: Office, *numbers: int, move: Move = "discard") -> None:
    given = tuple(map(SequenceNumber, numbers))
    office.store.move_letters(LetterMove(move, partition(), given, str(uuid4()), NOON, NOON, "somebody", "because"))


def letters_purged(office: Office) -> tuple[object, ...]:
    return office.engine.by_hand("SELECT purged_letters, purged_replay_letters FROM event_hub_checkpoint")[0]


def readings(office: Office) -> list[tuple[object, ...]]:
    return office.engine.by_hand("SELECT commit_number, ppm FROM sensor_reading ORDER BY sequence_number, ordinal")


def begun(keeper: Keeper) -> UUID:
    task_id = keeper.ask()
    assert move_task(task_id, "begin", keeper.kind)
    return task_id


SEEN = "UPDATE staged_event SET staged_at = '2020-01-01T00:00:00.000000Z' WHERE sequence_number = 3"
CUT = "INSERT INTO aggregation_cut (job, cut, run_number) VALUES ('home_activity', '{}', 1)"


def stage(office: Office, *numbers: int) -> None:
    office.engine.stage(office.store.read_partition(partition()), [event(number) for number in numbers])


def audit_of(office: Office, at: datetime) -> UUID:
    order = TaskOrder(uuid4(), office.desk.purges.stream.find() or 0, "ann", "", at)
    return open_task(audit_request(order, AuditAsked(), (P,)), office.desk.tasks).task_id


def ended_audit(office: Office) -> None:
    audit_of(office, NOON)
    office.engine.by_hand("UPDATE task SET status = 'failed', ended_at = requested_at WHERE kind = 'audit'")


@pytest.fixture
def world(office: Office) -> World:
    made = World(office.store, {"0": LOG})
    discard(office, 3, 6, 10, 13)
    return made


@pytest.fixture
def keeper(office: Office, world: World) -> Keeper:
    return Keeper(office)


def counts(job: Purge) -> dict[str, int]:
    return {table: found.rows for table, found in job.found.items() if found.rows}


def test_old_ledger_rows_and_settled_letters_go_but_the_newest_batch(office: Office, keeper: Keeper) -> None:
    assert counts(keeper.purge(days=1_002)) == {}  # they are not old
    counted = keeper.purge(dry_run=True)
    assert len(office.engine.ledger()) == 3
    assert counts(counted) == {"batch_ledger": 2, "event_hub_dead_letter": 4}
    job = keeper.purge(event_hub_dead_letter=1_002)
    assert (job.task.status, job.task.fault, counts(job)) == ("done", None, {"batch_ledger": 2})
    assert counted.found["batch_ledger"].oldest == job.found["batch_ledger"].oldest
    assert [one.first for one in office.engine.ledger()] == [14]
    assert counts(keeper.purge()) == {"event_hub_dead_letter": 4}
    letters = [(one.sequence_number, one.status) for one in office.engine.letters()]
    assert letters == [(17, "exhausted"), (20, "exhausted")]
    assert sound(office)
    for number in range(21, 25):
        office.commit(number, number)
    assert counts(keeper.purge()) == {"batch_ledger": 4}
    purged = office.desk.purges.read_reach(P).purged
    assert (purged.commit_number, purged.first, purged.last, purged.at) == (6, 0, 23, LATER)
    assert (letters_purged(office), sound(office)) == ((4, 0), True)


def test_a_letter_stays_while_it_is_open_or_the_ledger_has_its_range(office: Office, keeper: Keeper) -> None:
    discard(office, 17)
    keeper.purge()
    assert [one.sequence_number for one in office.engine.letters()] == [17, 20]
    office.commit(21, 21)
    keeper.purge()
    assert [one.sequence_number for one in office.engine.letters()] == [20]
    discard(office, 20)
    keeper.purge()
    assert (office.engine.letters(), sound(office)) == ([], True)


def test_the_rows_that_an_old_replay_retracted_go_with_its_rows(office: Office, world: World, keeper: Keeper) -> None:
    world.transform = changed(lambda event, references: [])
    world.replay(order(["0"]))
    office.commit(21, 21)
    assert counts(keeper.purge(event_hub_dead_letter=2_000)) == {"batch_ledger": 4, "retracted_row": 12}
    assert sound(office)
    world.replay(order(["0"]))
    assert sound(office)


def test_a_piece_of_letters_has_no_more_attempts_than_a_piece_has_rows(office: Office, keeper: Keeper) -> None:
    """A server exchanges many locks of one statement for a lock of the table, and commits would wait for it."""
    office.commit(21, 21)
    for _ in range(4):
        discard(office, 17, move="requeue")
    discard(office, 17, 20)
    keeper.pieces = {"rows_of_piece": 3}
    assert counts(keeper.purge()) == {"batch_ledger": 3, "event_hub_dead_letter": 6}
    assert letters_purged(office) == (6, 0)
    assert (office.engine.attempts(), sound(office)) == ([], True)


def test_a_partition_with_a_fault_is_left_as_it_is(office: Office, keeper: Keeper) -> None:
    office.engine.by_hand("DELETE FROM event_hub_dead_letter WHERE sequence_number = 17")
    job = keeper.purge()
    assert counts(job) == {}
    (note,) = job.found["event_hub_checkpoint"].notes
    assert note.startswith("partition 0 has ") and "nothing of it is purged" in note


def test_ledger_rows_that_its_audit_had_no_time_for_stay(office: Office, keeper: Keeper) -> None:
    times = chain((False,), repeat(True))
    keeper.reading = Reading(lambda: next(times), piece=1)
    assert counts(keeper.purge())["batch_ledger"] == 1


def test_commits_that_an_aggregation_has_not_passed_stay(office: Office, keeper: Keeper) -> None:
    keeper.jobs = ("home_activity",)
    job = keeper.purge()
    assert counts(job) == {}
    assert "home_activity has passed commit 0" in job.found["batch_ledger"].notes[0]
    passed = {f"{office.store.read_partition(partition()).stream_id}/0": 1}
    office.engine.by_hand(CUT.replace("{}", json.dumps(passed)))
    keeper.jobs = ()
    assert counts(keeper.purge())["batch_ledger"] == 1
    assert sound(office)


@pytest.mark.parametrize(("first", "later"), [(0, 60), (14, 0)], ids=["its range", "what it may have written"])
def test_commits_that_an_open_replay_needs_stay_also_while_it_is_paused(
    office: Office, world: World, keeper: Keeper, first: int, later: int
) -> None:
    world.clock.advance(later)
    job = world.ask(order(["0"], first))
    stage(office, 3)
    office.engine.by_hand(SEEN)
    for verb in ("begin", "pause", "resume"):
        assert counts(keeper.purge()) == {}, verb
        world.store.tasks.move(TaskMove(job.task.task_id, verb, "ann", "", keeper.now))
    world.work(job)
    assert counts(keeper.purge())["batch_ledger"] == 2
    assert sound(office)


def test_nothing_goes_while_an_audit_is_open(office: Office, keeper: Keeper) -> None:
    audit_of(office, LATER)
    job = keeper.purge()
    assert (counts(job), job.found["batch_ledger"].notes) == ({}, ("partition 0: an audit is open",))


@pytest.mark.parametrize("statement", ["read_ledger_ends", "sum_ranges", "find_letter_faults", "find_attempt_faults"])
def test_an_audit_reads_a_partition_again_purged_meanwhile(office: Office, keeper: Keeper, statement: str) -> None:
    desk = interrupted(office, statement, keeper.purge)
    assert audit(desk.audits, None).faults == ()
    assert len(office.engine.ledger()) == 1


def test_a_letter_that_a_replay_reopened_meanwhile_stays(office: Office, world: World, keeper: Keeper) -> None:
    keeper.purge(event_hub_dead_letter=2_000)
    assert office.desk.purges.read_reach(PartitionId("99")).newest_batch == 0, "nothing is known of it"
    reach = office.desk.purges.read_reach(P)
    letters = office.desk.purges.read_settled_letters(P, reach.purged, LATER, 10)
    office.engine.by_hand("UPDATE event_hub_dead_letter SET status = 'exhausted' WHERE sequence_number = 3")
    task_id = begun(keeper)
    with pytest.raises(TaskConflict):
        office.desk.purges.purge_letters(P, letters, *keeper.piece(task_id, PurgeTarget("event_hub_dead_letter", P)))
    assert (len(office.engine.letters()), len(letters)) == (6, 4)


def test_a_number_whose_ledger_row_is_gone_says_so(office: Office, keeper: Keeper) -> None:
    keeper.purge()
    outcomes: dict[int, Outcome] = {0: "written", 2: "purged", 3: "purged", 17: "dead_lettered", 99: "not_yet"}
    for number, outcome in outcomes.items():
        found = explain(P, SequenceNumber(number), office.desk.explanations)
        assert found is not None
        assert found.outcome == outcome
        gone = "Its ledger row was purged: those up to number 13 are gone, the last on 2028-09-28 00:00 UTC."
        assert (gone in found.sentence) == (number <= 13)


def test_a_piece_that_was_planned_before_a_different_one_changes_nothing(office: Office, keeper: Keeper) -> None:
    rows = office.desk.purges.read_ledger_rows(P, 0, 1)
    letters = office.desk.purges.read_settled_letters(
        P, replace(NOT_PURGED, commit_number=2, last=SequenceNumber(13)), LATER, 10
    )
    keeper.purge()
    purged, counted = office.desk.purges.read_reach(P).purged, letters_purged(office)
    task_id = begun(keeper)
    with pytest.raises(TaskConflict):
        office.desk.purges.purge_ledger(P, rows, rows[-1].last, *keeper.piece(task_id, PurgeTarget("batch_ledger", P)))
    with pytest.raises(TaskConflict):
        target = PurgeTarget("event_hub_dead_letter", P)
        office.desk.purges.purge_letters(P, letters, *keeper.piece(task_id, target))
    assert (office.desk.purges.read_reach(P).purged, letters_purged(office)) == (purged, counted)
    assert (len(letters), sound(office)) == (4, True)


@pytest.mark.parametrize(
    ("statement", "kinds"),
    [
        pytest.param(GAP, {"absent"}, id="absent numbers, which are compared in sum"),
        pytest.param(
            "UPDATE event_hub_checkpoint SET purged_commit = 3, purged_to = 20",
            {"purged", "counts", "totals", "letters_outside"},
            id="purged rows",
        ),
    ],
)
def test_an_audit_names_changed_purged_ranges(office: Office, keeper: Keeper, statement: str, kinds: set[str]) -> None:
    keeper.purge()
    office.engine.by_hand(statement)
    assert {fault.kind for fault in audit(office.desk.audits, None).faults} == kinds


def test_changed_counts_of_a_replay_are_named_unless_a_purge_may_have_taken_its_commits(
    office: Office, world: World, keeper: Keeper
) -> None:
    jobs = [world.replay(order(["0"]))]
    office.commit(21, 21)
    keeper.purge()
    world.clock.advance(60)
    jobs.append(world.replay(order(["0"])))
    more = (
        "UPDATE task_part SET report = REPLACE(report, '\"rows_written\":', '\"rows_written\":9') WHERE task_id = '{}'"
    )
    for job, is_named in zip(jobs, (False, True), strict=True):
        before = sound(office)
        office.engine.by_hand(more.format(job.task.task_id))
        assert (before, audit(office.desk.audits, None).faults != ()) == (True, is_named)


def test_no_audit_names_a_row_whose_commit_was_purged(office: Office, keeper: Keeper) -> None:
    keeper.purge()
    for statement in ("UPDATE sensor_reading SET ppm = ppm + 1", "DELETE FROM sensor_reading"):
        before = readings(office)
        office.engine.by_hand(f"{statement} WHERE commit_number = 1")
        assert readings(office) != before
        assert sound(office)


def test_a_cancelled_purge_deletes_nothing_more(office: Office, keeper: Keeper) -> None:
    keeper.meanwhile = lambda: keeper.cancel(keeper.open())
    job = keeper.purge()
    assert (job.task.status, counts(job)) == ("cancelled", {})
    assert '"by": "ann", "why": "stop"' in job.task.history
    assert len(office.engine.ledger()) == 3
    assert not keeper.cancel(job.task.task_id)


@pytest.mark.parametrize(("table", "rows"), [("staged_event", 1), ("replay_diff", 4), ("task_part", 2)])
def test_a_piece_of_another_table_changes_nothing_once_its_job_was_cancelled(
    office: Office, world: World, keeper: Keeper, table: PurgedTable, rows: int
) -> None:
    transform, world.transform = world.transform, changed(lambda event, references: [])
    world.replay(order(["0"], dry_run=True))
    world.transform = transform
    ended_audit(office)
    stage(office, 3, 4)
    office.engine.by_hand(SEEN)
    task_id, target = begun(keeper), PurgeTarget(table, None)
    piece = office.desk.purges.find_rows(target, LATER, 4)
    assert (piece.rows, piece.is_last) == (rows, table == "staged_event")
    as_read = keeper.piece(task_id, target)
    assert keeper.cancel(task_id)
    before = office.engine.by_hand(f"SELECT * FROM {table}")
    with pytest.raises(TaskConflict):
        office.desk.purges.purge_rows(piece, *as_read)
    assert office.engine.by_hand(f"SELECT * FROM {table}") == before


def test_purges_are_listed_from_the_newest_and_the_last_but_dry_runs_is_found(office: Office, keeper: Keeper) -> None:
    first = keeper.purge(dry_run=True).task
    keeper.now += timedelta(hours=1)
    second = keeper.purge(dry_run=True).task
    tasks, stream_id = office.desk.tasks, office.desk.purges.stream.find() or 0
    assert [one.task_id for one in tasks.read(stream_id, 5)] == [second.task_id, first.task_id]
    after = (second.requested_at, second.task_id)
    assert [one.task_id for one in tasks.read(stream_id, 5, after, kind="purge")] == [first.task_id]
    assert tasks.read(stream_id, 5, kind="audit") == tasks.read(stream_id, 5, status="paused") == ()
    assert tasks.find_last(stream_id, "purge") is None
    keeper.purge()
    assert tasks.find_last(stream_id, "purge") == keeper.now


@pytest.mark.parametrize("kind", ["audit", "a new kind"])
def test_old_jobs_and_the_diffs_of_old_dry_runs_go(office: Office, world: World, keeper: Keeper, kind: str) -> None:
    world.transform = changed(lambda event, references: [])
    world.replay(order(["0"], dry_run=True))
    ended_audit(office)
    office.engine.by_hand(f"UPDATE task SET kind = '{kind}' WHERE kind = 'audit'")
    old = keeper.purge(dry_run=True)
    own = {table: rows for table, rows in counts(old).items() if table.startswith(("task", "replay"))}
    assert own == {"replay_diff": 9, "task_part": 2, "task": 1}
    parts = len(old.task.parts)
    keeper.now += timedelta(days=500)
    job = keeper.purge(batch_ledger=9_000, event_hub_dead_letter=9_000)
    assert counts(job) == {"replay_diff": 9, "task_part": 2 + parts, "task": 2}
    assert counts(keeper.purge(batch_ledger=9_000, event_hub_dead_letter=9_000)) == {}


def test_staged_events_go_some_days_after_a_purge_first_saw_them(office: Office, keeper: Keeper) -> None:
    stage(office, 3)
    assert "staged_event" not in counts(keeper.purge(staged_event=30))
    keeper.now += timedelta(days=31)
    assert counts(keeper.purge(staged_event=30, dry_run=True))["staged_event"] == 1
    assert counts(keeper.purge(staged_event=30))["staged_event"] == 1
