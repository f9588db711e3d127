"""An erasure amid batches, retries and replays of other processes: none of them stores a subject after it began.

Of a state that a column orders, a row that lost is not stored, so none comes back.
"""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from core.erasure.store import Erasures
from core.ingest.ingest import ingest_batch
from core.model.events import Event
from core.model.letters import LetterPolicy
from core.model.rows import References, Row, state_of
from core.model.transforms import Transform
from core.store.database import read_time
from core.tasks.run import open_parts, work_on
from examples.home_security.transform import SensorReading
from tests.core.erasure.test_erasure import GONE, OTHER_KEY, STAYS, rows_of
from tests.fakes.builders import batch, event, partition
from tests.fakes.engines import SqliteEngine
from tests.fakes.erasing import ErasingWorld, events_of
from tests.fakes.kept import Engine
from tests.fakes.plain_transform import ROW_CLASSES, transform
from tests.fakes.replaying import changed, log_of, order, request_replay
from tests.fakes.store import Store


@pytest.fixture
def world(store: Store) -> ErasingWorld:
    return ErasingWorld(store, {"0": events_of(f"bug {GONE}", f"bug {STAYS}"), "1": events_of(f"reading {STAYS}")})


def letters_with(engine: Engine, name: str) -> list[tuple[int, str]]:
    """Return the letters whose key or body has a name."""
    found = [(one, f"{one.partition_key} {one.body.decode()} {one.properties}") for one in engine.letters()]
    return [(one.sequence_number, one.status) for one, text in found if name in text.replace(STAYS, "")]


def of_key(key: str | None, events: list[Event]) -> list[Event]:
    return [msgspec.structs.replace(one, partition_key=key) for one in events]


def test_after_a_lost_key_is_forgotten_every_process_commits_and_the_next_erasure_counts(
    world: ErasingWorld, engine: Engine
) -> None:
    world.erase(GONE)
    world.key = OTHER_KEY
    keys = Erasures(world.stream, ROW_CLASSES)
    for _ in range(2):
        keys.forget_keys([one.key_hash for one in keys.read_lost_keys(())])
    given = events_of(f"double {STAYS}", first=2)
    assert ingest_batch(batch(given, partition("0")), world.ingesting).facts()["written"] == 1
    world.erase(GONE)
    given = events_of(f"double {GONE}", first=3)
    assert ingest_batch(batch(given, partition("0")), world.ingesting).facts()["filtered"] == 1


@dataclass
class ErasesFirst:
    """A transform that erases a subject once, at its first event."""

    world: ErasingWorld
    status: str = ""

    def __call__(self, event: Event, references: References) -> Iterable[Row]:
        if not self.status:
            self.status = "open"
            self.status = self.world.erase(GONE).status
        return transform(event, references)


@pytest.mark.parametrize("hours", [-1, 1])
def test_two_erasures_at_one_time_of_the_hub_each_refuse_a_former_plan(
    world: ErasingWorld, engine: Engine, hours: int
) -> None:
    """The newest committed event is the time of both, if the hub's clock is ahead."""
    at = read_time(world.store.database) + timedelta(hours=hours)
    given = [msgspec.structs.replace(one, enqueued_at=at) for one in events_of(f"reading {STAYS}", first=1)]
    ingest_batch(batch(given, partition("1")), world.ingesting)
    world.erase("nobody")
    erases = ErasesFirst(world)
    given = events_of(f"double {GONE}", f"double {STAYS}", first=2)
    report = ingest_batch(batch(given, partition("0")), replace(world.ingesting, transform=changed(erases)))
    assert (erases.status, report.facts()["written"]) == ("done", 1)
    assert rows_of(engine, GONE) == []


@pytest.mark.parametrize("key", [GONE, STAYS])
def test_an_event_that_waits_for_a_letter_of_its_key_leaves_nothing_of_the_subject(
    store: Store, engine: Engine, key: str
) -> None:
    """An event of the erased key is filtered. An event of a different key waits without its body, which a retry reads
    from the hub."""
    logs = {"0": events_of(f"bug {GONE}", f"bug {STAYS}")}
    world = ErasingWorld(store, logs, letters=LetterPolicy(order="hold_key"))
    given = of_key(key, events_of(f"reading {GONE}", f"reading {STAYS}", first=2))
    world.hub.publish("0", given)
    task = world.ask_erasure(GONE)
    ingest_batch(batch(given, partition("0")), world.ingesting)
    assert letters_with(engine, GONE) == [(0, "waiting")]
    world.drive(task)
    assert letters_with(engine, GONE) == []
    world.transform = changed(lambda event, references: [SensorReading(STAYS, "s", "a", None, 1, event.enqueued_at)])
    for _ in range(3):
        world.retry()
    rest = [1, 2, 3] if key == STAYS else [1]
    assert [one.sequence_number for one in rows_of(engine, STAYS) if one.partition_id == "0"] == rest  # type: ignore[attr-defined]
    assert world.faults() == []


def test_an_event_with_too_many_rows_leaves_no_letter_and_no_part_of_its_rows(
    world: ErasingWorld, engine: Engine
) -> None:
    world.erase(GONE)
    given = of_key(None, events_of(f"many {GONE}", f"many {STAYS} x", first=2))

    def many(event: Event, references: References) -> list[Row]:
        names = [GONE, *(f"{event.sequence_number}-{one}" for one in "abc")]
        return [SensorReading(one, "s", "late", None, 1, event.enqueued_at) for one in names]

    means = replace(world.ingesting, transform=replace(changed(many), rows_limit=2))
    report = ingest_batch(batch(given, partition("0")), means)
    assert [report.facts()[name] for name in ("written", "filtered", "dead_lettered")] == [0, 1, 1]
    assert letters_with(engine, GONE) == []


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_state_that_an_open_replay_of_another_stream_carries_goes_with_its_subject(
    tmp_path: Path, dry_run: bool
) -> None:
    engine = SqliteEngine(tmp_path / "store.db")
    other, log = partition("0", group="other"), events_of(f"home {GONE} 1", "home other-1 1", f"look {GONE}")
    world = ErasingWorld(engine.open(), {"0": log}, piece=2)
    ingest_batch(batch(log, other), world.ingesting)
    means = replace(world.means, stream=other.stream)
    job = request_replay(order(["0"], dry_run=dry_run), means, 1_000)
    open_parts(job.task.task_id, means)
    work_on(job.task.task_id, "0", means, world.clock.now() - timedelta(seconds=1))
    world.erase(GONE)
    with closing(sqlite3.connect(engine.path)) as connection:
        carried = [row for (row,) in connection.execute("SELECT row FROM replay_state")]
    assert len(carried) == 1
    assert "other-1" in carried[0]
    world.store.close()


@state_of("fob", key=("fob_id",), subject="home_id", newest_by="version")
@dataclass(frozen=True, slots=True)
class Fob:
    fob_id: str
    home_id: str
    version: int


def fobs_of(given: Event, references: References) -> Iterable[Row]:
    fob_id, home_id, version = given.body.decode().split()
    return [Fob(fob_id, home_id, int(version))]


def test_an_erased_newest_row_does_not_bring_back_an_older_one(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path / "store.db")
    engine.sql(
        "CREATE TABLE fob (fob_id TEXT PRIMARY KEY, home_id TEXT, version INTEGER, stream_id INTEGER,"
        " partition_id TEXT, sequence_number INTEGER, commit_number INTEGER)"
    )
    logs = {"0": log_of("a home-1 3", "a home-7 9", "b home-1 1")}
    world = ErasingWorld(engine.open(), logs, Transform("fobs/1", fobs_of, None, (Fob,)))
    assert engine.sql("SELECT fob_id, version FROM fob ORDER BY 1") == [("a", 9), ("b", 1)]
    task = world.ask_erasure("home-7")
    kind = replace(world.erasing, store=Erasures(world.stream, (Fob,), ()))
    while ids := open_parts(task.task_id, kind):
        for id in ids:
            work_on(task.task_id, id, kind, world.clock.now() + timedelta(minutes=1))
    assert engine.sql("SELECT fob_id, version FROM fob") == [("b", 1)]
    ingest_batch(batch([event(3, "a home-1 2")]), world.ingesting)
    assert engine.sql("SELECT fob_id, version FROM fob ORDER BY 1") == [("a", 2), ("b", 1)]
    world.replay()
    assert engine.sql("SELECT fob_id, version FROM fob ORDER BY 1") == [("a", 3), ("b", 1)]
