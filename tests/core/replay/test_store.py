"""Promises of every store about replays: what an event wrote is replaced, once, and the checkpoint stays."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from core.model.events import Event, Partition, SequenceNumber, span
from core.model.letters import LetterPolicy
from core.model.rows import References, Row
from core.model.transforms import Transform
from core.settle.attempts import AttemptMark
from core.tasks.run import work_on
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.builders import NOON, commit, home, letter, partition, settled
from tests.fakes.child_tries import ChildTries
from tests.fakes.engines import SqliteEngine
from tests.fakes.kept import Engine
from tests.fakes.plain_transform import PLAIN, transform
from tests.fakes.replaying import World, changed, log_of, order
from tests.fakes.store import Store

LOG = log_of("reading a", "double a", "quiet", "home h 1", "poison", "look h", "bug", "home h 0", "look h", "double b")


def twice_as_much(event: Event, references: References) -> Iterable[Row]:
    """Readings count twice, alerts are no more, and what was quiet reads."""
    for row in transform(event, references) if event.body != b"quiet" else [reading_of("q", event)]:
        if isinstance(row, SensorReading):
            yield SensorReading(row.home_id, row.sensor_id, row.kind, row.state, 2 * (row.ppm or 0), row.observed_at)
        elif not isinstance(row, HomeAlert):
            yield row


def reading_of(home_id: str, event: Event) -> SensorReading:
    return SensorReading(home_id, "sensor", "quiet", None, event.sequence_number, event.enqueued_at)


def rows_as_written(engine: Engine) -> list[tuple[object, ...]]:
    """Rows less their commit numbers."""
    kept = [one for each in (SensorReading, HomeAlert, Home) for one in engine.rows(each)]
    return [(one.partition_id, one.sequence_number, one.ordinal, one.row) for one in kept]


@pytest.fixture
def world(store: Store) -> World:
    return World(store, {"0": LOG, "1": log_of("double c", "home g 1", "reading c")})


def test_a_replay_of_everything_with_the_same_transform_writes_the_same_rows(world: World, engine: Engine) -> None:
    before, letters = rows_as_written(engine), [(one.sequence_number, one.status) for one in engine.letters()]
    job = world.replay()
    assert (job.task.status, job.task.fault) == ("done", None)
    assert rows_as_written(engine) == before
    assert [(one.sequence_number, one.status) for one in engine.letters()] == letters
    assert (job.counts.events, job.counts.gone) == (13, 0)
    assert job.counts.rows_retracted == job.counts.rows_written - 1  # of the two states of one key the newest stands


def test_a_replay_never_moves_the_checkpoint_nor_takes_the_id_of_its_commit(world: World) -> None:
    before = world.checkpoint()
    world.replay()
    assert world.checkpoint() == before


def test_a_replay_counts_as_a_commit_of_its_partition(world: World, engine: Engine) -> None:
    commits = {id: max(one.commit_number for one in engine.ledger() if one.partition_id == id) for id in ("0", "1")}
    job = world.replay()
    assert [(one.partition_id, one.commit_number) for one in engine.replays()] == [
        (id, number + 1) for id, number in commits.items()
    ]
    (first, second) = engine.replays()
    assert (first.first, first.last, first.written, first.filtered, first.dead_lettered) == (0, 9, 7, 1, 2)
    assert (second.first, second.last, second.rows_written, second.invocation_id) == (0, 2, 4, str(job.task.task_id))
    rows = [one for each in (SensorReading, HomeAlert) for one in engine.rows(each)]
    assert {one.commit_number for one in rows if one.partition_id == "0"} == {commits["0"] + 1}


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


def test_rows_outside_the_range_stay_as_they_are(world: World, engine: Engine) -> None:
    world.transform = changed(twice_as_much)
    world.replay(order(["0"], 2, 5))
    assert [one.sequence_number for one in engine.rows(HomeAlert) if one.partition_id == "0"] == [1, 9]
    assert [one.row.ppm for one in engine.rows(SensorReading) if one.partition_id == "0"] == [0, 1, 4, 10, 8, 9]  # type: ignore[attr-defined]


def test_the_newest_state_stands_whoever_replays_an_older_event(world: World, engine: Engine) -> None:
    before = engine.rows(Home)
    world.replay(order(["0"], 0, 6))
    assert engine.rows(Home) == before
    assert engine.retracted() == [one for one in engine.retracted() if one.table_name != "home"]


def test_the_event_that_wrote_the_standing_state_replaces_it(world: World, engine: Engine) -> None:
    (stands,) = [one for one in engine.rows(Home) if one.partition_id == "0"]
    world.transform = changed(lambda event, references: [home("h", "Asia/Tokyo", armed=True)], "plain/3")
    job = world.replay(order(["0"], 7, 7))
    (now,) = [one for one in engine.rows(Home) if one.partition_id == "0"]
    assert (now.row, now.sequence_number) == (home("h", "Asia/Tokyo", armed=True), 7)
    (taken,) = engine.retracted()
    assert (taken.table_name, taken.sequence_number, taken.row_commit_number) == ("home", 7, stands.commit_number)
    assert taken.row == stands.row
    assert job.counts.states_left == 0


def test_a_state_of_another_partition_is_never_replaced(world: World, engine: Engine) -> None:
    world.transform = changed(lambda event, references: [home("g", "Asia/Tokyo")])
    world.replay(order(["0"], 9, 9))
    assert [one.row for one in engine.rows(Home) if one.partition_id == "1"] == [home("g", "Europe/Berlin", armed=True)]


def test_a_state_that_its_event_no_longer_writes_stays_and_is_counted(world: World, engine: Engine) -> None:
    before = engine.rows(Home)
    world.transform = changed(lambda event, references: [])
    assert [one.report.states_left for one in world.replay(order(dry_run=True)).partitions] == [1, 1]
    job = world.replay()
    assert engine.rows(Home) == before
    assert [one.report.states_left for one in job.partitions] == [1, 1]
    assert job.counts.filtered == 13


def test_a_letter_whose_event_succeeds_now_is_resolved(world: World, engine: Engine) -> None:
    world.transform = changed(lambda event, references: [reading_of("m", event)])
    job = world.replay(order(["0"]))
    assert [(one.sequence_number, one.status, one.due_at) for one in engine.letters()] == [
        (4, "resolved", None),
        (6, "resolved", None),
    ]
    assert (job.counts.letters_resolved, job.counts.letters_added) == (2, 0)
    assert [one.sequence_number for one in engine.rows(SensorReading) if one.partition_id == "0"] == list(range(10))


def poisoned(event: Event, references: References) -> Iterable[Row]:
    raise ValueError("nothing is good enough")


def test_an_event_that_fails_now_becomes_a_letter_and_its_rows_are_gone(world: World, engine: Engine) -> None:
    world.transform = changed(poisoned)
    job = world.replay(order(["1"]))
    letters = [one for one in engine.letters() if one.partition_id == "1"]
    assert [(one.sequence_number, one.status, one.error) for one in letters] == [
        (number, "waiting", "nothing is good enough") for number in range(3)
    ]
    assert [one.body for one in letters] == [b"double c", b"home g 1", b"reading c"]
    assert [one for one in engine.rows(SensorReading) if one.partition_id == "1"] == []
    assert (job.counts.dead_lettered, job.counts.letters_added, job.counts.rows_written) == (3, 3, 0)


def test_a_letter_whose_event_fails_again_is_reopened_with_the_new_reason(world: World, engine: Engine) -> None:
    world.transform = changed(poisoned)
    job = world.replay(order(["0"], 4, 6))
    assert [(one.sequence_number, one.status, one.error_class, one.attempts) for one in engine.letters()] == [
        (4, "waiting", "unknown", 1),
        (5, "waiting", "unknown", 1),
        (6, "waiting", "unknown", 1),
    ]
    assert {one.transform_version for one in engine.letters()} == {"plain/2"}
    assert (job.counts.letters_added, job.counts.letters_resolved) == (1, 0)


def test_what_a_replay_did_to_a_letter_is_an_attempt_of_it(world: World, engine: Engine) -> None:
    world.transform = changed(lambda event, references: poisoned(event, references) if event.body == b"bug" else [])
    job = world.replay(order(["0"], 4, 6))
    (commit,) = engine.replays()
    told = [(one.sequence_number, one.attempt, one.kind, one.status, one.error) for one in engine.attempts()]
    assert told == [(4, 1, "replay", "resolved", None), (6, 1, "replay", "waiting", "nothing is good enough")]
    assert {(one.done_by, one.commit_number) for one in engine.attempts()} == {
        (f"replay-{job.task.task_id}", commit.commit_number)
    }


def test_a_letter_of_a_replay_is_due_as_one_of_a_batch_is(world: World, engine: Engine) -> None:
    world.transform = changed(poisoned)
    world.replay(order(["1"]))
    first = world.letters.backoff.longest(1)
    assert {one.due_at for one in engine.letters() if one.partition_id == "1"} == {world.clock.now() + first}


def test_a_letter_without_its_body_is_replayed_from_the_hub_and_gone_when_it_has_left(
    store: Store, engine: Engine
) -> None:
    world = World(store, {"0": LOG}, letters=LetterPolicy(keep_bodies=False))
    assert {one.body for one in engine.letters()} == {b""}
    world.transform = changed(lambda event, references: [reading_of(event.body.decode(), event)])
    world.hub.lose("0", 4)
    job = world.replay()
    assert [(one.first, one.last) for one in job.partitions[0].report.gone_ranges] == [(4, 4)]
    assert [(one.sequence_number, one.status) for one in engine.letters()] == [(4, "exhausted"), (6, "resolved")]
    assert [one.row.home_id for one in engine.rows(SensorReading) if one.sequence_number == 6] == ["bug"]  # type: ignore[attr-defined]


def test_the_books_stay_balanced_whatever_becomes_of_the_letters(world: World) -> None:
    for rows_of in (poisoned, transform, poisoned):
        world.transform = changed(rows_of)
        world.replay()
        assert [books.balanced for books in world.store.read_ledgers()] == [True, True]


def test_a_dry_run_writes_nothing_but_what_it_would_have_done(world: World, engine: Engine) -> None:
    before = (rows_as_written(engine), engine.letters(), engine.ledger(), engine.retracted(), engine.replays())
    commits = [books.checkpoint for books in world.store.read_ledgers()], world.store.read_partition(partition())
    world.transform = changed(twice_as_much)
    job = world.replay(order(dry_run=True))
    assert (rows_as_written(engine), engine.letters(), engine.ledger(), engine.retracted(), engine.replays()) == before
    assert ([one.checkpoint for one in world.store.read_ledgers()], world.store.read_partition(partition())) == commits
    assert job.task.status == "done"
    real = world.replay()
    for name in ("events", "written", "filtered", "dead_lettered", "rows_written", "letters_added", "letters_resolved"):
        assert getattr(job.counts, name) == getattr(real.counts, name), name
    assert job.counts.rows_retracted == real.counts.rows_retracted


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


HOSTILE = ["", "'; DROP TABLE home; --", "%_\\\"'`$1 ?1 :x @y", "a\nb\r\tc", "👩‍👩‍👧", "ß" * 32, "\x01\x1f"]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_hostile_texts_in_rows_that_are_taken_away_are_kept_as_they_were(
    store: Store, engine: Engine, text: str
) -> None:
    def hostile(event: Event, references: References) -> Iterable[Row]:
        return [SensorReading(text, text, "k", None, 2**63 - 1, event.enqueued_at), home(text, text, armed=True)]

    world = World(store, {"0": log_of("x", "y")}, changed(hostile))
    before = {one.row for each in (SensorReading, Home) for one in engine.rows(each)}
    assert len(before) == 3
    dry = world.replay(order(dry_run=True))
    assert dry.counts.events_changed == 0
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
