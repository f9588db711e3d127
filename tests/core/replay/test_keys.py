from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from core.audit.audit import audit, recount_rows
from core.errors import TaskConflict, TaskOverlap
from core.ingest.ingest import Ingestion, ingest_batch
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.events import Event, PartitionId, span
from core.model.rows import References, Row
from core.model.transforms import Transform
from core.replay.pieces import ReplayCommit, ReplayCounts, ReplayJob
from core.tasks.run import open_parts, work_on
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.core.letters.test_held import HOLDING, statuses, written
from tests.fakes.builders import STREAM, batch, event, partition
from tests.fakes.kept import Engine
from tests.fakes.plain_transform import PLAIN, ROW_CLASSES, transform
from tests.fakes.replaying import World, changed, order
from tests.fakes.store import Store, operator_stores


def of_key(*bodies: str, first: int = 0) -> list[Event]:
    return [event(first + place, body, key="k") for place, body in enumerate(bodies)]


def breaking(*numbers: int) -> Transform:
    def rows_of(given: Event, references: References) -> Iterable[Row]:
        if given.sequence_number in numbers:
            raise KeyError("broken")
        if given.body == b"bug":
            return [SensorReading("mended", "sensor", "bug", None, 1, given.enqueued_at)]
        return transform(given, references)

    return changed(rows_of)


@pytest.fixture
def of(store: Store) -> Callable[..., World]:
    return lambda *bodies: World(store, {"0": of_key(*bodies)}, letters=HOLDING)


def replay(world: World, first: int, last: int, *, dry_run: bool = False, piece: int = 500) -> ReplayJob:
    world.piece = piece
    return world.replay(order(["0"], first, last, dry_run=dry_run))


def outcomes(counts: ReplayCounts) -> tuple[int, int, int]:
    return counts.written, counts.dead_lettered, counts.held


def keeper_of(world: World) -> Keeper:
    return Keeper(STREAM, world.store, world.transform, world.hub.find_event, world.own, world.letters)


def retry(world: World) -> None:
    world.clock.advance(3_600)
    for chunk in claim_due(keeper_of(world)):
        retry_chunk(chunk, keeper_of(world), "retry-1")


def test_letters_that_a_replay_resolves_free_the_one_after_its_range(of: Callable[..., World], engine: Engine) -> None:
    world = of("bug", "reading a", "reading b", "reading c")
    world.transform = breaking()
    assert outcomes(replay(world, 0, 1).counts) == (2, 0, 0)
    assert statuses(engine) == {0: "resolved", 1: "resolved", 2: "waiting", 3: "held"}
    retry(world)
    assert written(engine) == [0, 1, 2, 3]


@pytest.mark.parametrize("piece", [1, 500])
@pytest.mark.parametrize(("body", "status", "freed"), [("bug", "waiting", [0, 1, 2, 3]), ("poison", "exhausted", [])])
def test_events_after_an_open_letter_before_it_stay_held(
    of: Callable[..., World], engine: Engine, piece: int, body: str, status: str, freed: list[int]
) -> None:
    world = of(body, "reading a", "reading b", "reading c")
    world.transform = breaking(0)
    assert outcomes(replay(world, 1, 2, piece=piece).counts) == (0, 0, 2)
    assert statuses(engine) == {0: status, 1: "held", 2: "held", 3: "held"}
    assert written(engine) == []
    world.transform = breaking()
    retry(world)
    assert written(engine) == freed


@pytest.mark.parametrize("piece", [1, 2, 500])
def test_events_after_one_that_fails_in_the_range_are_held_and_their_rows_taken_away(
    of: Callable[..., World], engine: Engine, piece: int
) -> None:
    world = of(*["reading a"] * 5)
    world.transform = breaking(1)
    job = replay(world, 0, 3, piece=piece)
    assert (outcomes(job.counts), job.counts.letters_added) == ((1, 1, 2), 3)
    assert statuses(engine) == {1: "waiting", 2: "held", 3: "held"}
    assert written(engine) == [0, 4]
    (ledger,) = world.store.read_ledgers()
    assert ledger.balanced
    assert sum(kept.dead_lettered for kept in engine.replays()) == 1
    world.transform = breaking()
    retry(world)
    assert written(engine) == [0, 1, 2, 3, 4]


def test_a_letter_that_is_opened_again_takes_the_place_of_the_first(of: Callable[..., World], engine: Engine) -> None:
    world = of("reading a", "reading a", "bug", "reading a")
    world.transform = breaking(0, 2)
    keeper = keeper_of(world)
    world.clock.advance(60)
    (chunk,) = claim_due(keeper)
    replay(world, 0, 0)
    assert statuses(engine) == {0: "waiting", 2: "held", 3: "held"}
    assert retry_chunk(chunk, keeper, "late").lost == 1
    world.transform = breaking()
    retry(world)
    assert written(engine) == [0, 1, 2, 3]


def test_a_batch_that_remembers_no_open_letter_sees_one_of_a_replay(of: Callable[..., World], engine: Engine) -> None:
    world = of("reading a", "reading a")
    remembering = world.store.remembering(timedelta(minutes=1))
    means = Ingestion(remembering, PLAIN, world.own, letters=HOLDING)
    ingest_batch(batch(of_key("reading a", first=2)), means)
    world.transform = breaking(1)
    replay(world, 1, 1)
    ingest_batch(batch(of_key("reading a", first=3)), means)
    assert statuses(engine) == {1: "waiting", 3: "held"}


def test_a_replay_that_does_not_know_of_a_different_one_is_refused(of: Callable[..., World], engine: Engine) -> None:
    world, planned = of(*["reading a"] * 4), list[ReplayCommit]()

    class Noting(Store):
        def commit_replay(self, commit: ReplayCommit) -> ReplayCounts:
            planned.append(commit)
            raise KeyboardInterrupt

    job = world.ask(order(["0"], 2, 3))
    noting = replace(world.means, store=Noting(world.store.database))
    open_parts(job.task.task_id, noting)
    with pytest.raises(KeyboardInterrupt):
        work_on(job.task.task_id, PartitionId("0"), noting, world.clock.now())
    world.transform = breaking(0)
    world.replay(order(["0"], 0, 0))
    with pytest.raises(TaskConflict):
        world.store.commit_replay(planned[0])
    assert written(engine) == [1, 2, 3]


@pytest.mark.parametrize("is_dry_run", [True, False])
@pytest.mark.parametrize("piece", [1, 2, 500])
def test_events_after_an_open_letter_whose_event_is_gone_stay_held(
    store: Store, engine: Engine, piece: int, is_dry_run: bool
) -> None:
    log = of_key("reading a", "bug", "reading a", "reading b")
    world = World(store, {"0": log}, letters=replace(HOLDING, keep_bodies=False))
    world.transform = breaking()
    world.hub.lose("0", 1)
    assert outcomes(replay(world, 0, 3, dry_run=is_dry_run, piece=piece).counts) == (1, 0, 2)
    assert statuses(engine) == {1: "waiting", 2: "held", 3: "held"}
    assert written(engine) == [0]


BODIES = ["reading a", "double a", "quiet", "home h 1", "poison", "look h", "bug", "home h 0", "look h", "double b"]
LOG = [event(number, body, key="xyz"[number % 3]) for number, body in enumerate([*BODIES, *BODIES])]


def keyed_log(*given: tuple[str, str]) -> list[Event]:
    return [event(number, body, key=key) for number, (key, body) in enumerate(given)]


def other_rows(event: Event, references: References) -> Iterable[Row]:
    """Readings count twice, alerts are no more, homes are elsewhere, and what was quiet or failed is a reading."""
    for row in transform(event, references) if event.body.split()[0] not in (b"quiet", b"poison", b"bug") else ():
        if isinstance(row, SensorReading):
            yield replace(row, ppm=2 * (row.ppm or 0) + 1)
        elif isinstance(row, Home):
            yield replace(row, time_zone="Asia/Tokyo")
    if event.body in (b"quiet", b"poison", b"bug"):
        yield SensorReading("mended", "sensor", "quiet", None, 1, event.enqueued_at)


def failing(event: Event, references: References) -> Iterable[Row]:
    raise ValueError("nothing is good enough")


def all_of(engine: Engine, key: str | None = None) -> list[Any]:
    numbers = {one.sequence_number for one in LOG if one.partition_key == key}
    kept: list[Any] = [one for each in (SensorReading, HomeAlert, Home) for one in engine.rows(each)]
    kept += [*engine.letters(), *engine.attempts(), *engine.retracted()]
    return [one for one in kept if one.sequence_number in numbers]


@pytest.fixture
def world(store: Store) -> World:
    return World(store, {"0": LOG})


def totals(job: ReplayJob) -> tuple[int, int, int]:
    return job.counts.events, job.counts.gone, job.others


@pytest.mark.parametrize("rows_of", [transform, other_rows, failing])
@pytest.mark.parametrize("piece", [1, 3, 500])
def test_only_the_events_of_the_keys_are_settled_again_as_a_dry_run_says(
    world: World, engine: Engine, rows_of: Any, piece: int
) -> None:
    others = [all_of(engine, key) for key in ("y", "z")]
    world.transform = changed(rows_of)
    world.piece = piece
    dry = world.replay(order(keys=["x"], dry_run=True))
    shown = world.store.read_replay_diffs(dry.task.task_id, None, 100)
    job = world.replay(order(keys=["x"]))
    assert {one.sequence_number % 3 for one in shown} == ({0} if rows_of is not transform else set())
    for name in ("events", "written", "dead_lettered", "rows_written", "rows_retracted", "letters_resolved"):
        assert getattr(dry.counts, name) == getattr(job.counts, name), name
    assert (*totals(job), job.counts.states_left) == (7, 0, 13, 0)
    assert [all_of(engine, key) for key in ("y", "z")] == others
    by_key = [(one.sequence_number, one.row_commit_number) for one in engine.retracted()]
    assert {number % 3 for number, _ in by_key} <= {0}
    assert job.counts.rows_retracted == len(by_key)
    audits = operator_stores(world.store.database, STREAM, ROW_CLASSES).audits
    audited = audit(audits, None)
    assert audited.balanced
    assert recount_rows(audited.partitions[0], span(0, 19), audits).faults == ()
    assert sum(one.absent for one in engine.replays()) == 13


def test_all_keys_one_by_one_write_what_a_whole_replay_writes(world: World, engine: Engine) -> None:
    def written() -> list[tuple[int, int | None, object]]:
        kept = [one for each in (SensorReading, HomeAlert) for one in engine.rows(each)]
        own = [one for one in kept if LOG[one.sequence_number].body != b"look h"]
        return [(one.sequence_number, one.ordinal, one.row) for one in own]

    first = world.ask(order(keys=["x"]))
    with pytest.raises(TaskOverlap, match=str(first.task.task_id)):
        world.ask(order(keys=["y"]))
    world.work(first)
    world.transform = changed(other_rows)
    for key in "xyz":
        world.replay(order(keys=[key]))
    by_key = written()
    world.replay()
    assert written() == by_key


def test_numbers_that_no_source_has_are_gone_and_events_of_other_keys_are_not(world: World) -> None:
    world.hub.lose("0", 0, 1, 11)
    job = world.replay(order(keys=["x", "z"]))
    assert totals(job) == (11, 3, 6)
    assert [one.ends for one in job.partitions[0].report.gone_ranges] == [(0, 1), (11, 11)]


def test_staged_events_of_other_keys_stay_staged(world: World, engine: Engine) -> None:
    world.hub.expire_before("0", 100)
    engine.stage(world.store.read_partition(partition()), LOG[:6])
    job = world.replay(order(["0"], 0, 5, keys=["x"]))
    assert totals(job) == (2, 0, 4)
    assert engine.staged() == [("0", number) for number in (1, 2, 4, 5)]


@pytest.mark.parametrize(
    ("log", "seen"),
    [
        # A state of a different key that was written before the event and still stands is newer than the replay's own.
        ([("x", "home h 1"), ("y", "home h 0"), ("x", "look h")], "False"),
        # Where a later event has replaced it, nobody knows it: what the replay wrote is the newest that is known.
        ([("x", "home h 1"), ("y", "home h 0"), ("x", "look h"), ("y", "home h 0")], "True"),
        # Where the replay wrote none, it is the one that stands now.
        ([("y", "home h 0"), ("x", "look h"), ("y", "home h 1")], "True"),
    ],
)
@pytest.mark.parametrize("piece", [1, 500])
def test_a_replayed_event_sees_the_states_of_other_keys_as_they_stand(
    store: Store, engine: Engine, log: list[tuple[str, str]], seen: str, piece: int
) -> None:
    world = World(store, {"0": keyed_log(*log)})
    world.piece = piece
    world.replay(order(keys=["x"]))
    assert [one.row.sensor_id for one in engine.rows(SensorReading)] == [f"sensor{seen}"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("piece", [1, 500])
def test_letters_of_the_keys_are_freed_in_order(store: Store, engine: Engine, piece: int) -> None:
    keys = ("x", "bug"), ("y", "bug"), ("x", "reading a"), ("y", "reading a"), ("x", "reading b"), ("y", "reading b")
    world = World(store, {"0": keyed_log(*keys)}, letters=HOLDING)
    held = {0: "waiting", 1: "waiting", 2: "held", 3: "held", 4: "held", 5: "held"}
    assert statuses(engine) == held
    world.transform = changed(other_rows)
    world.piece = piece
    world.replay(order(["0"], 0, 3, keys=["x"]))
    assert statuses(engine) == {**held, 0: "resolved", 2: "resolved", 4: "waiting"}
