"""Promises of every store about replays by key: only the events of the requested partition keys are touched."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from core.audit.audit import audit, recount_rows
from core.errors import StreamIncarnationChanged, TaskOverlap
from core.model.events import Event, span
from core.model.rows import References, Row
from core.replay.pieces import ReplayJob
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.core.letters.test_held import HOLDING, statuses
from tests.fakes.builders import STREAM, event, partition
from tests.fakes.kept import Engine
from tests.fakes.operator_stores import operator_stores
from tests.fakes.plain_transform import ROW_CLASSES, transform
from tests.fakes.replaying import World, changed, order
from tests.fakes.store import Store

BODIES = ["reading a", "double a", "quiet", "home h 1", "poison", "look h", "bug", "home h 0", "look h", "double b"]
LOG = [event(number, body, key="xyz"[number % 3]) for number, body in enumerate([*BODIES, *BODIES])]


def log_of(*given: tuple[str, str]) -> list[Event]:
    """Return events with these keys and bodies."""
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
    """Return the rows and letters of the events of a key, or of the events of all others."""
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
def test_only_the_events_of_the_keys_are_settled_again(world: World, engine: Engine, rows_of: Any, piece: int) -> None:
    others = [all_of(engine, key) for key in ("y", "z")]
    world.transform = changed(rows_of)
    world.piece = piece
    job = world.replay(order(keys=["x"]))
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
    def written() -> list[tuple[int, int, object]]:
        """The rows that need no state of an earlier event."""
        kept = [one for each in (SensorReading, HomeAlert) for one in engine.rows(each)]
        return [
            (one.sequence_number, one.ordinal or 0, one.row)
            for one in kept
            if LOG[one.sequence_number].body != b"look h"
        ]

    world.transform = changed(other_rows)
    for key in "xyz":
        world.replay(order(keys=[key]))
    by_key = written()
    world.replay()
    assert written() == by_key


def test_several_keys_are_replayed_together(world: World) -> None:
    assert totals(world.replay(order(keys=["x", "z"]))) == (13, 0, 7)


def test_numbers_that_no_source_has_are_gone_and_events_of_other_keys_are_not(world: World) -> None:
    world.hub.lose("0", 0, 1, 11)
    job = world.replay(order(keys=["x"]))
    assert totals(job) == (6, 3, 11)
    assert [one.ends for one in job.partitions[0].report.gone_ranges] == [(0, 1), (11, 11)]


def test_events_of_a_new_hub_hold_the_job_although_they_have_other_keys(world: World) -> None:
    late = structs.replace(LOG[1], enqueued_at=LOG[1].enqueued_at + timedelta(days=99))
    world.hub.publish("0", [late])
    job = world.ask(order(keys=["x"]))
    with pytest.raises(StreamIncarnationChanged):
        world.work(job)
    assert world.find(job.task.task_id).task.status == "running"


def test_staged_events_of_other_keys_stay_staged(world: World, engine: Engine) -> None:
    world.hub.expire_before("0", 100)
    engine.stage(world.store.read_partition(partition()), LOG[:6])
    job = world.replay(order(["0"], 0, 5, keys=["x"]))
    assert totals(job) == (2, 0, 4)
    assert engine.staged() == [("0", number) for number in (1, 2, 4, 5)]


def test_a_dry_run_shows_only_the_events_of_the_keys_and_what_the_replay_then_does(
    world: World, engine: Engine
) -> None:
    world.transform = changed(other_rows)
    dry = world.replay(order(keys=["y"], dry_run=True))
    shown = world.store.read_replay_diffs(dry.task.task_id, None, 100)
    assert shown
    assert {one.sequence_number % 3 for one in shown} == {1}
    real = world.replay(order(keys=["y"]))
    for name in ("events", "written", "dead_lettered", "rows_written", "rows_retracted", "letters_resolved"):
        assert getattr(dry.counts, name) == getattr(real.counts, name), name


def test_two_replays_of_the_same_numbers_overlap_although_their_keys_differ(world: World) -> None:
    first = world.ask(order(keys=["x"]))
    with pytest.raises(TaskOverlap, match=str(first.task.task_id)):
        world.ask(order(keys=["y"]))


def test_a_request_without_keys_is_stored_as_before(world: World) -> None:
    without, keyed = world.ask(order(dry_run=True)), world.ask(order(dry_run=True, keys=["x"]))
    assert "keys" not in without.task.asked
    assert (without.asked.keys, keyed.asked.keys) == ((), ("x",))


def test_the_newest_number_keeps_a_state_although_an_earlier_event_of_a_key_is_replayed(
    store: Store, engine: Engine
) -> None:
    world = World(store, {"0": log_of(("x", "home h 1"), ("y", "home h 0"), ("x", "home g 1"))})
    world.transform = changed(other_rows)
    world.replay(order(keys=["x"]))
    found = {one.row.home_id: (one.sequence_number, one.row.time_zone) for one in engine.rows(Home)}  # type: ignore[attr-defined]
    assert found == {"h": (1, "Europe/Berlin"), "g": (2, "Asia/Tokyo")}


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
    world = World(store, {"0": log_of(*log)})
    world.piece = piece
    world.replay(order(keys=["x"]))
    assert [one.row.sensor_id for one in engine.rows(SensorReading)] == [f"sensor{seen}"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("piece", [1, 500])
def test_letters_of_the_keys_are_freed_in_order_and_those_of_other_keys_stay_held(
    store: Store, engine: Engine, piece: int
) -> None:
    keys = ("x", "bug"), ("y", "bug"), ("x", "reading a"), ("y", "reading a"), ("x", "reading b"), ("y", "reading b")
    world = World(store, {"0": log_of(*keys)}, letters=HOLDING)
    held = {0: "waiting", 1: "waiting", 2: "held", 3: "held", 4: "held", 5: "held"}
    assert statuses(engine) == held
    world.transform = changed(other_rows)
    world.piece = piece
    world.replay(order(["0"], 0, 3, keys=["x"]))
    assert statuses(engine) == {**held, 0: "resolved", 2: "resolved", 4: "waiting"}
