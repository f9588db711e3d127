from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from core import errors as core_errors
from core.aggregation.runs import Failure
from core.aggregation.store import Aggregations
from core.errors import CommitOutcomeUnknown, DataRefused, SchemaMismatch, StoreUnavailable, TaskConflict
from core.ingest.ingest import Ingestion, IngestReport, ingest_batch
from core.model.events import Event, EventBatch, SequenceNumber
from core.model.letters import LetterClaim, LetterHold
from core.model.ports import Clock
from core.model.rows import ReferenceKey, row_table
from core.model.transforms import NONE_UNKNOWN, Transform
from core.store.database import Waiting, write
from core.store.memory import Memory
from core.store.sqlserver.connections import Access
from core.store.sqlserver.database import SqlServerDatabase
from core.tasks.statuses import TaskMove
from examples.home_security.transform import Home
from tests.fakes.builders import FakeClock
from tests.fakes.odbc_driver import DECLARED, Error, FakeDriver, When, fault, lost, unmet
from tests.fakes.store import Store
from tests.sql.statements import PORTION, RUN, STAGED, commit_of, every_run, move_of, replay_of, retry_of, with_gap
from tests.sql.values import EPOCH, ID, ROW_CLASSES

FIRST = commit_of((), first=True, letters=True)
PARTITION = FIRST.partition
PAUSE = TaskMove(ID, "pause", "somebody", "", EPOCH)
CLAIM = LetterClaim(PARTITION.stream, "claim-1", EPOCH, EPOCH, EPOCH, 1)
TAKEN = "Violation of PRIMARY KEY constraint '{}'. Cannot insert duplicate key in object 'hubledger.x'."


@pytest.fixture
def committed(driver: FakeDriver) -> FakeDriver:
    """Before a server with one commit of the partition, whose letter 7 is claimed."""
    driver.server.stream_id = 1
    driver.server.checkpoints["0"] = (7, "448", "2026-01-01T00:00:00", 1, str(ID), NONE_UNKNOWN)
    driver.server.held = {7}
    return driver


@pytest.fixture
def store(driver: FakeDriver) -> Store:
    return store_of(driver)


def store_of(driver: FakeDriver, schema: str = "hubledger", memory: Memory | None = None) -> Store:
    database = SqlServerDatabase("SERVER=host;UID=app;PWD=secret", schema=schema, access=Access(lambda: driver))
    return Store(database, memory)


def calls_of(driver: FakeDriver, call: Callable[[], object]) -> int:
    before = len(driver.server.executed)
    call()
    return len(driver.server.executed) - before


def test_a_transaction_is_one_call_whatever_it_carries(store: Store, committed: FakeDriver) -> None:
    commit = replace(commit_of(ROW_CLASSES, first=False, letters=True), state=store.read_partition(PARTITION))
    aggregations = Aggregations(store.database)
    calls: list[Callable[[], object]] = [
        lambda: store.commit_batch(commit),
        lambda: store.commit_retry(retry_of(ROW_CLASSES)),
        lambda: store.commit_replay(replay_of(ROW_CLASSES, letters=True)),
        lambda: store.rehearse_replay(replay_of(ROW_CLASSES, letters=True)),
        lambda: store.tasks.move(PAUSE),
        lambda: aggregations.open_run(RUN),
        lambda: aggregations.commit_portion(RUN, STAGED, PORTION),
        lambda: aggregations.close_run(RUN, STAGED, EPOCH),
    ]
    assert [calls_of(committed, call) for call in calls] == [1] * len(calls)
    assert calls_of(committed, lambda: store.move_letters(move_of("discard"))) == 2  # the stream is looked up


def test_letters_that_are_claimed_are_read_whole(store: Store, committed: FakeDriver) -> None:
    row = (7, "448", "2026-01-01T00:00:00.0000000", "key", '{"a": [1]}', b"\x00\xff", True, 3, 1)
    committed.server.answers["SET claimed_by = @run"] = [row]
    state = commit_of((), first=False, letters=False).state
    hold = LetterHold(state, (SequenceNumber(7), SequenceNumber(9)), "claim-1")
    (read,) = store.begin_chunk(hold, "run-1")
    assert read.event == Event(SequenceNumber(7), "448", EPOCH, "key", {"a": [1]}, b"\x00\xff")
    assert (read.body_kept, read.attempts, read.lost_claims) == (True, 3, 1)
    text, given = committed.server.executed[-1]
    values = dict(zip(DECLARED.findall(text), given, strict=True))
    assert (values["sequence_numbers"], values["claimed_by"], values["run"]) == ("[[7], [9]]", "claim-1", "run-1")


@pytest.mark.parametrize("taken", [0, 1])
def test_a_rehearsal_answers_with_what_it_takes_away(store: Store, committed: FakeDriver, taken: int) -> None:
    row = ("home", 7, 0, '{"home_id": "home-1", "time_zone": "Europe/Berlin", "armed": true}')
    committed.server.answers["FROM hubledger.retracted_row AS r"] = [row] * taken
    rehearsal = store.rehearse_replay(replay_of(ROW_CLASSES, letters=True))
    found = [(one.sequence_number, one.ordinal, one.row) for one in rehearsal.retracted]
    assert found == [(7, 0, Home("home-1", "Europe/Berlin", True))] * taken
    assert (rehearsal.letters_added, rehearsal.letters_resolved) == (0, 0)
    assert "ROLLBACK TRANSACTION;" in committed.server.executed[-1][0]


OF_A_RUN: dict[str, tuple[str, Callable[[Aggregations], bool]]] = {
    "run plan": ("number_run", lambda runs: runs.open_run(RUN)),
    "run slices": ("mark_slices", lambda runs: runs.commit_portion(RUN, STAGED, PORTION)),
    "run result": ("move_cut", lambda runs: runs.close_run(RUN, STAGED, EPOCH)),
    "run ended": ("fail_run", lambda runs: runs.fail_run(RUN, "why", EPOCH, Failure("r", 1, 1, EPOCH, "why"))),
}


@pytest.mark.parametrize("name", OF_A_RUN)
def test_a_run_that_was_overtaken_is_false_and_keeps_its_session(store: Store, driver: FakeDriver, name: str) -> None:
    guard, write_run = OF_A_RUN[name]
    runs = Aggregations(store.database)
    assert write_run(runs)
    driver.server.refused = ("aggregation_run", unmet(every_run()[name][0], guard))
    assert not write_run(runs)
    assert len(driver.open) == 1


def test_a_schema_is_checked_once_and_may_be_newer_if_it_only_adds(store: Store, driver: FakeDriver) -> None:
    driver.server.recorded = [("hubledger", 98, "not_breaking_x", ""), ("apps.orders", 99, "breaking_parcels", "")]
    for _ in range(2):
        store.read_partition(PARTITION)
    checks = ["schema_migration" in text for text, _ in driver.server.executed]
    assert (checks.index(True), checks.count(True)) == (1, 1)  # after the options of the session


@pytest.mark.parametrize(("version", "hint"), [(0, "core.store.migrate"), (99, "0098 breaking_x.*newer code")])
def test_a_schema_that_this_code_does_not_run_on_is_refused(
    store: Store, driver: FakeDriver, version: int, hint: str
) -> None:
    driver.server.version = version
    if version == 99:
        driver.server.recorded = [("hubledger", 98, "breaking_x", ""), ("hubledger", 99, "parcels", "")]
    with pytest.raises(SchemaMismatch, match=hint):
        store.read_partition(PARTITION)
    assert driver.open == []


def test_a_schema_of_a_different_name_is_named_everywhere(committed: FakeDriver) -> None:
    committed.server.schema = "trial_7"
    committed.server.answers["MIN(d.due_at)"] = [(None,)]
    store = store_of(committed, schema="trial_7")
    store.read_references([ReferenceKey(Home, ("a",))])
    store.database.ask("read_ledger_ends", stream_id=1, partition_id="0")
    store.claim_letters(CLAIM)
    store.next_due_at(PARTITION.stream, EPOCH)
    store.commit_retry(retry_of(ROW_CLASSES))
    store.commit_replay(replay_of(ROW_CLASSES, letters=True))
    assert [text for text, _ in committed.server.executed if "hubledger." in text] == []
    assert all("trial_7." in text for text, _ in committed.server.executed[1:])


EVERY_CLASS = f"replay {'+'.join(row_table(each).name for each in ROW_CLASSES)} letters"
COMMIT_TEXT, RETRY_TEXT, REPLAY_TEXT = (
    every_run()[name][0] for name in ("commit first nothing letters", "retry nothing", EVERY_CLASS)
)
REPLAY = replay_of(ROW_CLASSES, letters=True)
WRITES: dict[str, tuple[Callable[[Store], object], object]] = {
    "a batch": (lambda store: store.commit_batch(FIRST), 1),
    "a retry": (lambda store: store.commit_retry(retry_of(())), 2),
    "a replay": (lambda store: store.commit_replay(REPLAY), REPLAY.counts),
}
NO_STEP = fault("42000", 51199, "clear_nothing touched a different number of rows than expected")
FIRST_TAKEN = fault("23000", 2627, TAKEN.format("pk_event_hub_checkpoint"))
TOO_SLOW = Error("HYT00", "[HYT00] Query timeout expired (0) (SQLExecute)")
OF_ANY: list[tuple[str, Error, type[Exception], bool]] = [
    ("a value too long", fault("22001", 2628), DataRefused, True),
    ("a row that stands already", fault("23000", 2627, TAKEN.format("pk_sensor_reading")), DataRefused, True),
    ("a deadlock", fault("40001", 1205), StoreUnavailable, True),
    ("a database that is moved", fault("42000", 40613), core_errors.StoreUnreachable, False),
    ("an unknown one", fault("42000", 9999), core_errors.StoreUnreachable, False),
    ("a number of no step", NO_STEP, StoreUnavailable, True),
    ("a trigger that throws", fault("42000", 51100, "The record does not exist."), DataRefused, True),
    ("a missing table", fault("42S02", 208), SchemaMismatch, False),
    ("a login that was withdrawn", fault("28000", 18456), core_errors.StoreMisconfigured, False),
    ("the line cut", lost(), CommitOutcomeUnknown, False),
    ("a statement too slow", TOO_SLOW, CommitOutcomeUnknown, False),
]
FAULTS: list[tuple[str, str, Error, type[Exception], bool]] = [
    *((what, *each) for what in WRITES for each in OF_ANY),
    ("a batch", "the checkpoint moved", unmet(COMMIT_TEXT, "_checkpoint"), core_errors.CheckpointConflict, True),
    ("a batch", "another was first", FIRST_TAKEN, core_errors.CheckpointConflict, True),
    ("a retry", "no such partition", unmet(RETRY_TEXT, "count_commit"), core_errors.LetterConflict, True),
    ("a retry", "letters that were taken", unmet(RETRY_TEXT, "settle_letters"), core_errors.LetterConflict, True),
    ("a replay", "events after the checkpoint", unmet(REPLAY_TEXT, "count_replay"), TaskConflict, True),
    ("a replay", "another was further", unmet(REPLAY_TEXT, "advance_replay"), TaskConflict, True),
    ("a replay", "a job that does not run", unmet(REPLAY_TEXT, "hold_task"), TaskConflict, True),
]


@pytest.mark.parametrize("when", [When.AT_ONCE, When.LATE], ids=["at once", "at nextset"])
@pytest.mark.parametrize(
    ("what", "error", "named", "kept"), [pytest.param(what, *case, id=f"{what}, {id}") for what, id, *case in FAULTS]
)
def test_a_fault_has_its_name_and_a_doubtful_connection_is_dropped(
    committed: FakeDriver, what: str, error: Error, named: type[Exception], kept: bool, when: When
) -> None:
    if what == "a batch":
        committed.server.checkpoints.clear()
    store = store_of(committed)
    committed.server.faults = [(when, error)]
    call, answer = WRITES[what]
    with pytest.raises(named) as caught:
        call(store)
    assert type(caught.value) is named
    assert caught.value.__cause__ is error
    assert len(committed.open) == int(kept)
    assert call(store) == answer
    assert len(committed.connections) == (1 if kept else 2)


def test_a_trigger_on_a_table_whose_rows_are_put_out_is_named(store: Store, driver: FakeDriver) -> None:
    driver.server.faults = [(When.AT_ONCE, fault("42000", 334, "The target table 'd' cannot have enabled triggers."))]
    named = r"^a trigger is enabled on .*; drop or disable the trigger: (?!.*core\.store\.migrate).*\(334\)"
    with pytest.raises(SchemaMismatch, match=named):
        store.commit_batch(FIRST)
    assert driver.open == []


STATE_TAKEN = "Violation of UNIQUE KEY constraint 'uq_7'. Cannot insert duplicate key in object 'hubledger.home'."
OF_A_STATE: dict[str, Callable[[Store], object]] = {
    "a batch": lambda store: store.commit_batch(commit_of((Home,), first=True, letters=False)),
    "a retry": lambda store: store.commit_retry(retry_of((Home,))),
    "a replay": lambda store: store.commit_replay(replay_of((Home,), letters=False)),
    "a rehearsal": lambda store: store.rehearse_replay(replay_of((Home,), letters=False)),
}


@pytest.fixture(params=OF_A_STATE)
def racing(request: pytest.FixtureRequest, committed: FakeDriver) -> Callable[[], object]:
    if request.param == "a batch":
        committed.server.checkpoints.clear()
    store = store_of(committed)
    return lambda: OF_A_STATE[request.param](store)


@pytest.mark.parametrize("races", [1, 5])  # where locks are optimized, an update passes over a state just inserted
def test_a_state_that_another_transaction_wrote_first_is_found_by_the_next_try(
    racing: Callable[[], object], committed: FakeDriver, races: int
) -> None:
    texts = [f"{STATE_TAKEN} The duplicate key value is (home-{number})." for number in range(races)]
    committed.server.faults = [(When.LATE, fault("23000", 2627, text)) for text in texts]
    assert calls_of(committed, racing) == 3 + races + 1  # three open the session, and check schema and columns
    assert committed.server.commits[-1] == committed.server.commits[-2]
    assert len(committed.open) == len(committed.connections) == 1


def test_a_state_that_is_refused_twice_is_data(racing: Callable[[], object], committed: FakeDriver) -> None:
    errors = [fault("23000", 2627, STATE_TAKEN), fault("23000", 2601, STATE_TAKEN)]
    committed.server.faults = [(When.AT_ONCE, error) for error in errors]
    with pytest.raises(DataRefused, match=r"refuses a key twice.*uq_7") as caught:
        racing()
    assert caught.value.__cause__ is errors[1]
    assert len(committed.open) == 1
    texts = [f"{STATE_TAKEN} The duplicate key value is ({key})." for key in ("a", "b", "a")]  # among races
    committed.server.faults = [(When.AT_ONCE, fault("23000", 2627, text)) for text in texts]
    with pytest.raises(DataRefused, match=r"refuses a key twice.*value is \(a\)"):
        racing()
    for second, raised in ((fault("40001", 1205), StoreUnavailable), (lost(), CommitOutcomeUnknown)):
        committed.server.faults = [(When.AT_ONCE, fault("23000", 2627, STATE_TAKEN)), (When.AT_ONCE, second)]
        with pytest.raises(raised):
            racing()


def test_locks_that_cross_are_counted_and_logged(committed: FakeDriver, caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    store = store_of(committed).patient(timedelta(seconds=9), Waiting(clock.monotonic, clock.sleep, lambda: 1.0))
    committed.server.faults = [(When.AT_ONCE, fault("40001", number)) for number in (1205, 3960)]
    assert store.commit_retry(retry_of(())) == 2
    logged = [one.__dict__ for one in caplog.records if one.__dict__.get("action") == "cross_locks"]
    found = [(one["sql_error"], one["crossings"], one["subject"]) for one in logged]
    assert found == [(1205, 1, str(PARTITION)), (3960, 2, str(PARTITION))]
    assert (len(committed.connections), len(clock.slept)) == (1, 2)


def test_a_duplicate_in_a_table_that_no_step_races_for_is_data(store: Store, committed: FakeDriver) -> None:
    of_a_gap = fault("23000", 2627, TAKEN.format("pk_sequence_gap"))
    committed.server.faults = [(When.AT_ONCE, of_a_gap)]
    with pytest.raises(DataRefused, match=r"^the database refuses the data"):
        store.commit_retry(retry_of((Home,)))
    committed.server.checkpoints.clear()
    for _ in range(3):
        committed.server.faults = [(When.AT_ONCE, of_a_gap)]
        with pytest.raises(StoreUnavailable):
            store.commit_batch(with_gap(FIRST))
    assert store.commit_batch(with_gap(FIRST)) == 1


def test_a_lost_answer_of_a_read_or_of_a_sign_in_is_unavailable(store: Store, driver: FakeDriver) -> None:
    store.read_partition(PARTITION)
    driver.connections[0].lost = True
    with pytest.raises(StoreUnavailable):
        store.read_partition(PARTITION)
    assert store.read_partition(PARTITION).stream_id == 1
    store.close()
    driver.refusals = [lost()]
    with pytest.raises(StoreUnavailable):
        store.commit_batch(FIRST)
    assert driver.server.commits == []


MAY_REPEAT: dict[str, tuple[str, Callable[[Store], Any]]] = {
    "a claim": ("UPDATE TOP (@most) d", lambda store: store.claim_letters(CLAIM)),
    "a move": ("CHARINDEX(", lambda store: store.move_letters(move_of("discard"))),
    "a move of a job": ("CHARINDEX(", lambda store: store.tasks.move(PAUSE)),
    "a write": (
        "SET status = 'healed'",
        lambda store: write(store.database, "x", "close_gaps", stream_id=1, partition_id="0"),
    ),
}


@pytest.mark.parametrize("case", MAY_REPEAT)
def test_a_lost_answer_of_a_script_to_repeat_is_unavailable(store: Store, committed: FakeDriver, case: str) -> None:
    part, call = MAY_REPEAT[case]
    committed.server.refused = (part, lost())
    with pytest.raises(StoreUnavailable):
        call(store)
    assert committed.open == []


def ingest(driver: FakeDriver) -> IngestReport:
    numbers = iter(range(100, 200))
    clock = Clock(lambda: EPOCH, lambda: UUID(int=next(numbers)))
    given = tuple(Event(SequenceNumber(number), str(number), EPOCH, None, {}, b"") for number in range(5))
    store = store_of(driver, memory=Memory(timedelta(seconds=60)))
    quiet = Transform("quiet/1", lambda event, references: ())
    return ingest_batch(EventBatch(PARTITION, given, "i"), Ingestion(store, quiet, clock))


@pytest.mark.parametrize("first", [When.AFTER, When.AT_ONCE, When.LATE], ids=["stands", "at once", "at nextset"])
def test_a_lost_answer_of_a_batch_is_settled_and_each_event_committed_once(driver: FakeDriver, first: When) -> None:
    driver.server.faults = [(first, lost())]
    report = ingest(driver)
    assert ([commit.events for commit in report.commits], report.redelivered) == ([5], 0)
    assert len(driver.server.commits) == (1 if first is When.AFTER else 2)
    assert driver.server.checkpoints["0"][3:5] == (1, str(report.commits[0].commit_id))


def test_an_answer_that_is_not_ours_is_settled_by_the_checkpoint(store: Store, driver: FakeDriver) -> None:
    driver.server.faults = [(When.AFTER, fault("42000", 50000, "RAISERROR of a trigger ends no transaction"))]
    report = ingest(driver)
    assert (report.commits, report.redelivered) == ((), 5)
    assert (driver.server.checkpoints["0"][0], driver.server.checkpoints["0"][3]) == (4, 1)
    driver.server.checkpoints["0"] = (4, "256", "2026-01-01T00:00:00.0000000", 1, str(ID), NONE_UNKNOWN)
    report = ingest(driver)  # after the commit of a different owner
    assert (report.commits, report.redelivered) == ((), 5)
