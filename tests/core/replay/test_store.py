from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from msgspec import structs

from core.model.events import Event, Partition, SequenceNumber, span
from core.model.letters import LetterPolicy
from core.model.rows import References, Row
from core.model.transforms import Transform
from core.settle.attempts import AttemptMark
from core.tasks.run import work_on
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.builders import NOON, commit, event, home, letter, partition, settled
from tests.fakes.child_tries import ChildTries
from tests.fakes.engines import SqliteEngine
from tests.fakes.kept import Engine
from tests.fakes.plain_transform import PLAIN, transform
from tests.fakes.replaying import World, changed, log_of, order
from tests.fakes.store import Store

LOG = log_of("reading a", "double a", "quiet", "home h 1", "poison", "look h", "bug", "home h 0", "look h", "double b")


def twice_as_much(event: Event, references: References) -> Iterable[Row]:
    for row in transform(event, references) if event.body != b"quiet" else [reading_of("q", event)]:
        if isinstance(row, SensorReading):
            yield SensorReading(row.home_id, row.sensor_id, row.kind, row.state, 2 * (row.ppm or 0), row.observed_at)
        elif not isinstance(row, HomeAlert):
            yield row


def reading_of(home_id: str, event: Event) -> SensorReading:
    return SensorReading(home_id, "sensor", "quiet", None, event.sequence_number, event.enqueued_at)


def rows_as_written(engine: Engine) -> list[tuple[object, ...]]:
    kept = [one for each in (SensorReading, HomeAlert, Home) for one in engine.rows(each)]
    return [(one.partition_id, one.sequence_number, one.ordinal, one.row) for one in kept]


@pytest.fixture
def world(store: Store) -> World:
    return World(store, {"0": LOG, "1": log_of("double c", "home g 1", "reading c")})


def test_a_replay_with_the_same_transform_writes_the_same_rows_in_its_own_commit(world: World, engine: Engine) -> None:
    before, letters = rows_as_written(engine), [(one.sequence_number, one.status) for one in engine.letters()]
    checkpoint, commits = world.checkpoint(), dict[str, int]()
    for one in engine.ledger():
        commits[one.partition_id] = one.commit_number
    job = world.replay()
    assert (job.task.status, job.task.fault) == ("done", None)
    assert (rows_as_written(engine), world.checkpoint()) == (before, checkpoint)
    assert [(one.sequence_number, one.status) for one in engine.letters()] == letters
    assert (job.counts.events, job.counts.gone) == (13, 0)
    assert job.counts.rows_retracted == job.counts.rows_written - 1  # of the two states of one key the newest stands
    (first, second) = engine.replays()
    numbered = {one.partition_id: one.commit_number - 1 for one in (first, second)}
    assert numbered == commits
    assert (first.first, first.last, first.written, first.filtered, first.dead_lettered) == (0, 9, 7, 1, 2)
    assert (second.first, second.last, second.rows_written, second.invocation_id) == (0, 2, 4, str(job.task.task_id))
    rows = [one for each in (SensorReading, HomeAlert) for one in engine.rows(each)]
    assert {one.commit_number for one in rows if one.partition_id == "0"} == {first.commit_number}


def test_a_replay_after_a_changed_transform_replaces_rows_and_keeps_those_it_took(world: World, engine: Engine) -> None:
    readings, alerts = engine.rows(SensorReading), engine.rows(HomeAlert)
    world.transform = changed(twice_as_much)
    job = world.replay(order(["0"]))
    assert [one.row.ppm for one in engine.rows(SensorReading) if one.partition_id == "0"] == [0, 2, 4, 10, 16, 18]  # type: ignore[attr-defined]
    assert [one.partition_id for one in engine.rows(HomeAlert)] == ["1"]
    taken = [one for one in engine.retracted() if one.table_name != "home"]
    assert [(one.sequence_number, one.ordinal, one.row_commit_number, one.row) for one in taken] == [
        (one.sequence_number, one.ordinal, one.commit_number, one.row)
        for one in [*alerts, *readings]
        if one.partition_id == "0"
    ]
    assert {one.commit_number for one in taken} == {engine.replays()[0].commit_number}
    assert engine.replays()[0].transform_version == "plain/2"
    assert job.counts.rows_retracted == len(engine.retracted())


def test_a_state_is_replaced_only_by_the_event_that_wrote_it(world: World, engine: Engine) -> None:
    before = engine.rows(Home)
    (stands,) = [one for one in before if one.partition_id == "0"]
    world.replay(order(["0"], 0, 6))  # an older event of the key
    world.transform = changed(lambda event, references: [home("g", "Asia/Tokyo")])
    world.replay(order(["0"], 9, 9))  # an event of a different partition
    assert engine.rows(Home) == before
    assert {one.table_name for one in engine.retracted()} == {"sensor_reading", "home_alert"}
    world.transform = changed(lambda event, references: [home("h", "Asia/Tokyo", armed=True)], "plain/3")
    job = world.replay(order(["0"], 7, 7))
    (now,) = [one for one in engine.rows(Home) if one.partition_id == "0"]
    assert (now.row, now.sequence_number) == (home("h", "Asia/Tokyo", armed=True), 7)
    (taken,) = [one for one in engine.retracted() if one.table_name == "home"]
    assert (taken.sequence_number, taken.row_commit_number, taken.row) == (7, stands.commit_number, stands.row)
    assert job.counts.states_left == 0


def test_a_state_that_its_event_no_longer_writes_stays_and_is_counted(world: World, engine: Engine) -> None:
    before = engine.rows(Home)
    world.transform = changed(lambda event, references: [])
    assert [one.report.states_left for one in world.replay(order(dry_run=True)).partitions] == [1, 1]
    job = world.replay()
    assert engine.rows(Home) == before
    assert [one.report.states_left for one in job.partitions] == [1, 1]
    assert job.counts.filtered == 13


def test_letters_are_resolved_made_and_reopened_as_their_events_end_now(world: World, engine: Engine) -> None:
    """Event 4 was poison, 5 was written and 6 failed. Now the first is filtered, and the others fail."""
    world.transform = changed(lambda event, references: [] if event.body == b"poison" else poisoned(event, references))
    job = world.replay(order(["0"], 4, 6))
    told = [(one.sequence_number, one.status, one.error_class, one.attempts) for one in engine.letters()]
    assert told == [(4, "resolved", "poison", 1), (5, "waiting", "unknown", 1), (6, "waiting", "unknown", 1)]
    resolved, *open_now = engine.letters()
    due = world.clock.now() + world.letters.backoff.longest(1)  # as a letter of a batch is
    assert (resolved.due_at, [one.due_at for one in open_now]) == (None, [due, due])
    assert [(one.body, one.error) for one in open_now] == [
        (body, "nothing is good enough") for body in (b"look h", b"bug")
    ]
    assert {one.transform_version for one in engine.letters()} == {"plain/2"}
    assert [one.sequence_number for one in engine.rows(SensorReading) if one.partition_id == "0"] == [0, 1, 8, 9]
    counts = job.counts
    assert (counts.dead_lettered, counts.letters_added, counts.letters_resolved, counts.rows_written) == (2, 1, 1, 0)
    (commit,) = engine.replays()
    attempts = [(one.sequence_number, one.attempt, one.kind, one.status, one.error) for one in engine.attempts()]
    again = "replay", "waiting", "nothing is good enough"
    assert attempts == [(4, 1, "replay", "resolved", None), (5, 1, *again), (6, 1, *again)]
    by = {(one.done_by, one.commit_number) for one in engine.attempts()}
    assert by == {(f"replay-{job.task.task_id}", commit.commit_number)}


def poisoned(event: Event, references: References) -> Iterable[Row]:
    raise ValueError("nothing is good enough")


def test_a_letter_without_its_body_is_replayed_from_the_hub_and_gone_when_it_left(store: Store, engine: Engine) -> None:
    world = World(store, {"0": LOG}, letters=LetterPolicy(keep_bodies=False))
    assert {one.body for one in engine.letters()} == {b""}
    world.transform = changed(lambda event, references: [reading_of(event.body.decode(), event)])
    world.hub.lose("0", 4)
    job = world.replay()
    assert [(one.first, one.last) for one in job.partitions[0].report.gone_ranges] == [(4, 4)]
    assert [(one.sequence_number, one.status) for one in engine.letters()] == [(4, "exhausted"), (6, "resolved")]
    assert [one.row.home_id for one in engine.rows(SensorReading) if one.sequence_number == 6] == ["bug"]  # type: ignore[attr-defined]


def test_the_slower_of_two_drivers_of_a_dry_run_finds_the_piece_done_and_tries_no_event_again(world: World) -> None:
    tried: list[int] = []

    def with_a_second_driver(event: Event, references: References) -> Iterable[Row]:
        tried.append(event.sequence_number)
        if len(tried) == 1:  # the first driver has read the piece: the second one does all of it now
            world.work(job)
        return twice_as_much(event, references)

    world.transform = changed(with_a_second_driver)
    job = world.ask(order(["0"], dry_run=True))
    done = world.work(job)
    assert (done.task.status, done.task.fault, done.counts.events, done.counts.events_changed) == ("done", None, 10, 5)
    assert len(tried) == 2 * len(LOG)
    shown = world.store.read_replay_diffs(job.task.task_id, None, 100)
    assert [one.sequence_number for one in shown] == [1, 2, 5, 8, 9]


def test_rows_that_the_database_refuses_become_letters_and_the_rest_commits(store: Store, engine: Engine) -> None:
    world = World(store, {"0": log_of(*["reading a"] * 20)})
    bad = (3, 4, 17)

    def mostly(event: Event, references: References) -> Iterable[Row]:
        ppm = 2**63 if event.sequence_number in bad else 1
        return [SensorReading("a", "s", "k", None, ppm, event.enqueued_at)]

    world.transform = changed(mostly)
    dry = world.replay(order(dry_run=True))
    assert (dry.counts.dead_lettered, dry.counts.letters_added, dry.counts.rows_written) == (3, 3, 17)
    job = world.replay()
    assert [(one.sequence_number, one.error_class) for one in engine.letters()] == [(each, "refused") for each in bad]
    assert [one.sequence_number for one in engine.rows(SensorReading)] == [n for n in range(20) if n not in bad]
    assert (job.counts.events, job.counts.rows_retracted) == (20, 20)
    assert [books.balanced for books in store.read_ledgers()] == [True]


def test_hostile_texts_in_rows_that_are_taken_away_are_kept_as_they_were(store: Store, engine: Engine) -> None:
    texts = ["", "'; DROP TABLE home; --", "%_\\\"'`$1 ?1 :x @y", "a\nb\r\tc", "👩‍👩‍👧", "ß" * 32, "\x01\x1f"]

    def hostile(event: Event, references: References) -> Iterable[Row]:
        text = texts[event.sequence_number]
        return [SensorReading(text, text, "k", None, 2**63 - 1, event.enqueued_at), home(text, text, armed=True)]

    world = World(store, {"0": log_of(*texts)}, changed(hostile))
    before = {one.row for each in (SensorReading, Home) for one in engine.rows(each)}
    assert len(before) == 2 * len(texts)
    assert world.replay(order(dry_run=True)).counts.events_changed == 0
    world.replay()
    assert {one.row for one in engine.retracted()} == before


def test_a_letter_that_was_given_up_stays_so_while_its_event_fails_and_is_resolved_when_it_succeeds(
    sqlite: SqliteEngine,
) -> None:
    store = sqlite.open()
    world = World(store, {"0": LOG})
    sqlite.sql("UPDATE event_hub_dead_letter SET status = 'discarded', settled_why = 'given up'")
    world.replay()
    assert {(one.status, one.transform_version) for one in sqlite.letters()} == {("discarded", "plain/1")}
    world.transform = changed(lambda event, references: [])
    world.replay()
    assert {one.status for one in sqlite.letters()} == {"resolved"}
    store.close()


def test_a_letter_that_is_being_retried_is_taken_from_its_claim(sqlite: SqliteEngine) -> None:
    store = sqlite.open()
    world = World(store, {"0": LOG})
    sqlite.sql(
        "UPDATE event_hub_dead_letter"
        " SET status = 'retrying', claimed_by = 'claim-1', claimed_until = '2027', due_at = '2027'"
    )
    world.transform = changed(lambda event, references: poisoned(event, references) if event.body == b"bug" else [])
    job = world.replay()
    held = sqlite.sql(
        "SELECT sequence_number, status, claimed_by, claimed_until, settled_why FROM event_hub_dead_letter ORDER BY 1"
    )
    name = f"replay-{job.task.task_id}"
    assert held == [(4, "resolved", name, None, "a replay wrote or filtered it"), (6, "waiting", name, None, None)]
    store.close()


@pytest.mark.parametrize("dry_run", [False, True])
def test_an_event_that_killed_its_process_is_tried_only_by_a_new_version_of_the_transform(
    store: Store, engine: Engine, dry_run: bool
) -> None:
    deadly, tried = log_of("reading a", "kill", "reading c"), list[int]()
    crash = replace(letter(deadly[1]), error_class="crash", status="exhausted")
    outcome = settled({}, letters=[crash], filtered=2)
    given = replace(commit(store.read_partition(partition()), 0, 2, outcome), transform_version=PLAIN.version)
    store.anchor_partition(given.state, SequenceNumber(0), NOON)
    store.commit_batch(given)

    def rows_of(event: Event, references: References) -> Iterable[Row]:
        tried.append(event.sequence_number)
        return () if event.body == b"kill" else transform(event, references)

    world = World(store, {}, changed(rows_of, PLAIN.version))
    world.hub.recreate("0")
    world.hub.publish("0", deadly)
    world.replay(order(dry_run=dry_run))
    (kept,) = engine.letters()
    assert (tried, kept.status, kept.error_class) == ([0, 2], "exhausted", "crash")
    world.transform = changed(rows_of, "mended/2")
    world.replay(order(dry_run=dry_run))
    (kept,) = engine.letters()
    assert (tried[2:], kept.status) == ([0, 1, 2], "exhausted" if dry_run else "resolved")


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_kills_under_a_new_version_is_tried_in_a_child_after_a_death_with_its_piece_in_hand(
    store: Store, engine: Engine, dry_run: bool
) -> None:
    world, children = World(store, {"0": log_of("reading a", "kill", "reading c", "kill")}, PLAIN), ChildTries()
    world.transform = replace(PLAIN, version="deadly/2")
    world.journal = children.journal(store, world.own)
    died = AttemptMark(partition().partition_id, span(0, 3), UUID(int=99), NOON, 0, "deadly/2")
    store.begin_attempt(store.read_partition(partition()), died)
    done = world.replay(order(dry_run=dry_run))
    assert children.tried == [[0, 1], [2, 3]]
    assert (done.task.status, done.counts.dead_lettered, done.counts.written) == ("done", 2, 2)
    crashed = [kept.sequence_number for kept in engine.letters() if kept.error_class == "crash"]
    assert crashed == ([] if dry_run else [1, 3])
    assert store.read_marks(store.read_partition(partition())) == ()


def test_a_piece_that_another_driver_did_while_a_child_was_waited_for_is_not_tried(store: Store) -> None:
    world, children = World(store, {"0": log_of("reading a", "reading b")}, PLAIN), ChildTries()
    journal = children.journal(store, world.own)
    died = AttemptMark(partition().partition_id, span(0, 1), UUID(int=99), NOON, 0, PLAIN.version)
    store.begin_attempt(store.read_partition(partition()), died)
    job = world.ask(order(dry_run=True))
    other = world.means

    @contextmanager
    def in_child(transform: Transform, look_again: Callable[[], None]) -> Iterator[Transform]:
        work_on(job.task.task_id, "0", other, world.clock.now() + timedelta(minutes=1))
        with children.in_child(transform, look_again) as own:
            yield own

    journal._in_child = in_child
    world.journal = journal
    done = world.work(job)
    assert (done.task.status, done.counts.events, children.tried) == ("done", 2, [[]])


def test_a_replay_has_the_limit_of_rows_and_the_watch_of_the_transform(world: World, engine: Engine) -> None:
    watched: list[int] = []

    @contextmanager
    def watch(of: Partition | None, events: Sequence[Event]) -> Iterator[None]:
        watched.extend(event.sequence_number for event in events)
        yield

    world.transform = replace(PLAIN, rows_limit=1, watch=watch)
    world.replay(order(["1"], 0, 2))
    assert set(watched) == {0, 1, 2}
    assert [one.error_type for one in engine.letters() if one.partition_id == "1"] == ["core.errors.TooManyRows"]


STAGEABLE = log_of("reading a", "reading b", "quiet", "poison", "reading c", "reading d")
P = partition()


def told(event: Event, references: References) -> Iterable[Row]:
    yield SensorReading(event.body.decode(), "sensor", "told", None, event.sequence_number, event.enqueued_at)


def bodies(engine: Engine, id: str = "0") -> dict[int, str]:
    found = [one for one in engine.rows(SensorReading) if one.partition_id == id]
    return {one.sequence_number: one.row.home_id for one in found if one.row.kind == "told"}  # type: ignore[attr-defined]


@pytest.fixture
def lost(store: Store) -> World:
    """Two partitions without events in the hub, and a transform that writes the bodies into rows."""
    made = World(store, {"0": STAGEABLE, "1": log_of("reading x", "reading y")})
    for id in ("0", "1"):
        made.hub.expire_before(id, 100)
    made.transform = changed(told)
    return made


def stage(lost: World, engine: Engine, *events: Event, id: str = "0") -> None:
    engine.stage(lost.store.read_partition(partition(id)), events)


def kept(lost: World, first: int = 0, last: int = 9, most: int = 10) -> list[tuple[int, bytes]]:
    state = lost.store.read_partition(P)
    return [(one.sequence_number, one.body) for one in lost.store.read_kept_events(state, span(first, last), most)]


def test_staged_events_are_replayed_although_the_hub_lost_them_and_then_forgotten(lost: World, engine: Engine) -> None:
    stage(lost, engine, *STAGEABLE)
    before = engine.rows(SensorReading)
    dry = lost.replay(order(["0"], dry_run=True))
    assert (dry.counts.events, dry.counts.events_changed, dry.counts.gone) == (6, 6, 0)
    assert engine.rows(SensorReading) == before
    assert engine.staged() == [("0", number) for number in range(6)]
    real = lost.replay(order(["0"]))
    assert (real.task.status, real.counts.events, real.counts.gone) == ("done", 6, 0)
    assert (real.counts.written, real.counts.rows_retracted) == (dry.counts.written, dry.counts.rows_retracted)
    assert bodies(engine) == {one.sequence_number: one.body.decode() for one in STAGEABLE}
    assert engine.staged() == []


def test_what_is_not_staged_is_gone_and_keeps_its_rows(lost: World, engine: Engine) -> None:
    stage(lost, engine, STAGEABLE[1], STAGEABLE[4], STAGEABLE[5])
    stage(lost, engine, *log_of("reading x", "reading y"), id="1")
    job = lost.replay(order(["0"], 0, 4))
    assert [(one.first, one.last) for one in job.partitions[0].report.gone_ranges] == [(0, 0), (2, 2)]
    assert bodies(engine) == {1: "reading b", 3: "poison", 4: "reading c"}  # 3 is a letter's
    readings = [one.sequence_number for one in engine.rows(SensorReading) if one.partition_id == "0"]
    assert readings == [0, 1, 3, 4, 5]
    assert engine.staged() == [("0", 5), ("1", 0), ("1", 1)]


def test_the_letters_event_goes_before_the_staged_one_and_is_one_of_those_asked(lost: World, engine: Engine) -> None:
    stage(lost, engine, *(event(number, "staged") for number in (2, 3, 4)))
    whole = [(2, b"staged"), (3, b"poison"), (4, b"staged")]
    assert kept(lost) == whole
    assert [kept(lost, most=most) for most in range(4)] == [whole[:most] for most in range(4)]
    assert [kept(lost, 3, 3), kept(lost, 4, 9), kept(lost, 5)] == [whole[1:2], whole[2:], []]
    lost.replay(order(["0"]))
    assert bodies(engine) == {2: "staged", 3: "poison", 4: "staged"}
    assert engine.staged() == []


def test_the_staged_event_goes_before_the_hubs(store: Store, engine: Engine) -> None:
    lost = World(store, {"0": STAGEABLE})
    lost.transform = changed(told)
    stage(lost, engine, event(1, "staged"))
    lost.replay(order(["0"], 0, 2))
    assert bodies(engine) == {0: "reading a", 1: "staged", 2: "quiet"}


def test_an_event_is_staged_whole_and_once(lost: World, engine: Engine) -> None:
    hostile = "'; DROP TABLE staged_event; --\"\\\n👩‍👩‍👧"
    changes = {"partition_key": hostile, "properties": {hostile: [1, None, hostile]}, "offset": "o" * 200}
    whole = structs.replace(event(2), body=bytes(range(256)), **changes)
    plain = structs.replace(event(4), partition_key=None, properties={}, body=b"")
    stage(lost, engine, whole, plain)
    stage(lost, engine, event(2, "a second one"), event(5, "new"))
    state = lost.store.read_partition(P)
    assert lost.store.read_kept_events(state, span(2, 2), 9) == (whole,)
    assert lost.store.read_kept_events(state, span(4, 9), 9) == (plain, event(5, "new"))
