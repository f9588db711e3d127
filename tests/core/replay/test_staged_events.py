"""Promises of every store about staged events: a replay takes them where no letter has its event, and forgets them."""

from collections.abc import Iterable

import pytest
from msgspec import structs

from core.model.events import Event, SequenceNumber, Span
from core.model.letters import LetterPolicy
from core.model.rows import References, Row
from examples.home_security.transform import SensorReading
from tests.fakes.builders import event, partition
from tests.fakes.kept import Engine
from tests.fakes.replaying import World, changed, log_of, order
from tests.fakes.store import Store

LOG = log_of("reading a", "reading b", "quiet", "poison", "reading c", "reading d")
P = partition()


def told(event: Event, references: References) -> Iterable[Row]:
    """Return one reading for each event, with its body."""
    yield SensorReading(event.body.decode(), "sensor", "told", None, event.sequence_number, event.enqueued_at)


def bodies(engine: Engine, id: str = "0") -> dict[int, str]:
    """Return the homes of the rows of `told`, by number."""
    found = [one for one in engine.rows(SensorReading) if one.partition_id == id]
    return {one.sequence_number: one.row.home_id for one in found if one.row.kind == "told"}  # type: ignore[attr-defined]


@pytest.fixture
def world(store: Store) -> World:
    """Two partitions without events in the hub, and a transform that writes the bodies into rows."""
    made = World(store, {"0": LOG, "1": log_of("reading x", "reading y")})
    for id in ("0", "1"):
        made.hub.expire_before(id, 100)
    made.transform = changed(told)
    return made


def stage(world: World, engine: Engine, *events: Event, id: str = "0") -> None:
    engine.stage(world.store.read_partition(partition(id)), events)


def span(first: int, last: int) -> Span:
    return Span(SequenceNumber(first), SequenceNumber(last))


def kept(world: World, first: int = 0, last: int = 9, most: int = 10) -> list[tuple[int, bytes]]:
    state = world.store.read_partition(P)
    return [(one.sequence_number, one.body) for one in world.store.read_kept_events(state, span(first, last), most)]


def test_staged_events_are_replayed_although_the_hub_lost_them_and_then_forgotten(world: World, engine: Engine) -> None:
    stage(world, engine, *LOG)
    before = engine.rows(SensorReading)
    dry = world.replay(order(["0"], dry_run=True))
    assert (dry.counts.events, dry.counts.events_changed, dry.counts.gone) == (6, 6, 0)
    assert engine.rows(SensorReading) == before
    assert engine.staged() == [("0", number) for number in range(6)]
    real = world.replay(order(["0"]))
    assert (real.task.status, real.counts.events, real.counts.gone) == ("done", 6, 0)
    assert (real.counts.written, real.counts.rows_retracted) == (dry.counts.written, dry.counts.rows_retracted)
    assert bodies(engine) == {one.sequence_number: one.body.decode() for one in LOG}
    assert engine.staged() == []


def test_what_is_not_staged_is_gone_and_keeps_its_rows_and_only_what_was_replayed_is_forgotten(
    world: World, engine: Engine
) -> None:
    stage(world, engine, LOG[1], LOG[4], LOG[5])
    stage(world, engine, *log_of("reading x", "reading y"), id="1")
    job = world.replay(order(["0"], 0, 4))
    assert [(one.first, one.last) for one in job.partitions[0].report.gone_ranges] == [(0, 0), (2, 2)]
    assert bodies(engine) == {1: "reading b", 3: "poison", 4: "reading c"}  # 3 is a letter's
    readings = [one.sequence_number for one in engine.rows(SensorReading) if one.partition_id == "0"]
    assert readings == [0, 1, 3, 4, 5]
    assert engine.staged() == [("0", 5), ("1", 0), ("1", 1)]


def test_the_letters_event_goes_before_the_staged_one_and_is_one_of_as_many_as_asked(
    world: World, engine: Engine
) -> None:
    stage(world, engine, *(event(number, "staged") for number in (2, 3, 4)))
    whole = [(2, b"staged"), (3, b"poison"), (4, b"staged")]
    assert kept(world) == whole
    assert [kept(world, most=most) for most in range(4)] == [whole[:most] for most in range(4)]
    assert [kept(world, 3, 3), kept(world, 4, 9), kept(world, 5)] == [whole[1:2], whole[2:], []]
    world.replay(order(["0"]))
    assert bodies(engine) == {2: "staged", 3: "poison", 4: "staged"}
    assert engine.staged() == []


def test_a_letter_without_its_body_leaves_the_word_to_the_staged_event(store: Store, engine: Engine) -> None:
    world = World(store, {"0": LOG}, letters=LetterPolicy(keep_bodies=False))
    world.hub.expire_before("0", 100)
    world.transform = changed(told)
    stage(world, engine, event(3, "staged"))
    world.replay(order(["0"]))
    assert bodies(engine) == {3: "staged"}
    assert [one.status for one in engine.letters()] == ["resolved"]


def test_the_staged_event_goes_before_the_hubs(store: Store, engine: Engine) -> None:
    world = World(store, {"0": LOG})
    world.transform = changed(told)
    stage(world, engine, event(1, "staged"))
    world.replay(order(["0"], 0, 2))
    assert bodies(engine) == {0: "reading a", 1: "staged", 2: "quiet"}


def test_an_event_is_staged_whole_and_once(world: World, engine: Engine) -> None:
    hostile = "'; DROP TABLE staged_event; --\"\\\n👩‍👩‍👧"
    changes = {"partition_key": hostile, "properties": {hostile: [1, None, hostile]}, "offset": "o" * 200}
    whole = structs.replace(event(2), body=bytes(range(256)), **changes)
    plain = structs.replace(event(4), partition_key=None, properties={}, body=b"")
    stage(world, engine, whole, plain)
    stage(world, engine, event(2, "a second one"), event(5, "new"))
    state = world.store.read_partition(P)
    assert world.store.read_kept_events(state, span(2, 2), 9) == (whole,)
    assert world.store.read_kept_events(state, span(4, 9), 9) == (plain, event(5, "new"))
