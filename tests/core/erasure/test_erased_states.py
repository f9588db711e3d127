"""Erasures of states that a column orders: a row that lost is not stored, so none comes back."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from core.erasure.store import Erasures
from core.ingest.ingest import ingest_batch
from core.model.events import Event
from core.model.rows import References, Row, state_of
from core.model.transforms import Transform
from core.tasks.run import open_parts, work_on
from tests.fakes.builders import batch, event
from tests.fakes.engines import SqliteEngine
from tests.fakes.erasing import ErasingWorld
from tests.fakes.replaying import log_of


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
