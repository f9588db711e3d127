import gc
import logging
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from deltalake import DeltaTable

from core.aggregation.runs import RunLimits
from core.aggregation.tick import Aggregation
from core.app import TURN, YOUNG_OBJECTS
from core.errors import InvalidTransform, SchemaMismatch
from handlers.app import CLOCK, OnFirstUse, aggregation, app
from handlers.operations.tasks import kind_named
from tests.fakes.lake_jobs import ONE_LEVEL, LakeWorld
from tests.fakes.written_modules import broken_room, written_modules
from tests.handlers.running import CONTEXT, HOME, MOTION, Running, functions, request
from tests.patience import allowed


def test_all_who_use_a_value_first_at_once_get_the_same_one() -> None:
    made: list[object] = []
    start = Barrier(4)

    def make() -> object:
        made.append(object())
        return made[-1]

    def use(_: int) -> object:
        start.wait(allowed(10))
        return value()

    value = OnFirstUse(make)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(use, range(4))) == {*made}
    assert len(made) == 1


def test_all_that_is_stored_has_the_time_of_the_database(running: Running) -> None:
    running.sqlite.path.unlink()
    own = app()
    assert (app() is own, running.sqlite.path.exists()) == (True, False), "it is put together without the database"
    tasks = [kind_named(own, kind).clock for kind in ("replay", "redrive")]
    for clock in (own.core.ingestion.clock, own.stalled.means.clock, own.core.retrying.clock, *tasks):
        assert clock.now is not CLOCK.now
    with pytest.raises(SchemaMismatch, match="does not exist"):
        own.clock.now()


def test_cycles_are_looked_for_less_often_and_threads_wait_less_once_the_app_is_used(running: Running) -> None:
    before, turn = gc.get_threshold(), sys.getswitchinterval()
    try:
        gc.set_threshold(700)
        sys.setswitchinterval(0.005)
        app()
        assert (gc.get_threshold()[0], sys.getswitchinterval()) == (YOUNG_OBJECTS, TURN)
    finally:
        gc.set_threshold(*before)
        sys.setswitchinterval(turn)


def test_a_room_with_a_broken_aggregate_or_without_its_table_is_a_fault_before_the_first_event(
    running: Running, tmp_path: Path
) -> None:
    running.sqlite.sql("DROP TABLE home_alert")
    with pytest.raises(SchemaMismatch, match="there is no table home_alert"):
        app().core.ingestion.store.open_stream(app().settings.stream)
    with written_modules(tmp_path / "rooms") as modules:
        running.restart(TRANSFORM=broken_room(modules))
        for _ in range(2):
            with pytest.raises(InvalidTransform, match=r"^TRANSFORM=broken_room: broken_room/aggregates/hours\.py:1: "):
                app()


TABLE = f"gold/{ONE_LEVEL}"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LakeWorld]:
    yield LakeWorld(tmp_path)
    aggregation.value = None


def maintained(world: LakeWorld, caplog: pytest.LogCaptureFixture, *jobs: str) -> list[Any]:
    """Let the timer of an app with these jobs run. Return the log lines."""
    engine: Any = None  # is not asked
    aggregation.value = Aggregation(world.store, engine, world.lake, world.clock.now, RunLimits(), (), jobs)
    with caplog.at_level(logging.INFO, logger="hubledger.timers"):
        functions()["maintain_lake"](None)
    return list(caplog.records)


def test_small_files_become_one(world: LakeWorld, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(3):
        world.run(f"home-{number}")
        assert world.publish()
    (line,) = maintained(world, caplog, ONE_LEVEL)
    assert (line.levelname, line.job) == ("INFO", ONE_LEVEL)
    assert line.did == f"{TABLE}: 3 compacted, 0 removed"
    assert len(world.state().files) == 1
    world.run("home-9")
    assert world.publish()
    assert [home for home, _ in world.rows()] == ["home-0", "home-1", "home-2", "home-9"]
    assert any((world.folder / TABLE / "_delta_log").glob("*.checkpoint.parquet"))
    world.plan()
    version = DeltaTable(str(world.folder / TABLE)).version()
    assert maintained(world, caplog, ONE_LEVEL)[-1].did == "a run is open"
    assert DeltaTable(str(world.folder / TABLE)).version() == version


def test_a_fault_is_logged_and_the_next_job_is_maintained(world: LakeWorld, caplog: pytest.LogCaptureFixture) -> None:
    table = world.folder / "silver" / "a_first_removed"
    table.mkdir(parents=True)
    (table / "_delta_log").mkdir()
    (table / "_delta_log" / f"{0:020}.json").write_text("{ half")
    world.run("home-1")
    assert world.publish()
    first, second = maintained(world, caplog, "rows.a_first", ONE_LEVEL)
    assert (first.levelname, first.job) == ("WARNING", "rows.a_first")
    assert "silver/a_first_removed" in first.fault
    assert second.levelname == "INFO"


ASKED = {"home_id": "home-1"}


def test_a_home_whose_readings_are_not_summed_shows_them_as_they_came(running: Running) -> None:
    running.ingest([0, 1, 2], [HOME, MOTION, MOTION.replace(b"idle", b"active")])
    body = running.get("show_activity", ASKED).body
    assert (body["day"]["kinds"], body["week"]["kinds"], body["as_of"]["committed_at"]) == ([], [], None)
    plain = {"sensor_id": "h", "kind": "motion", "ppm": None, "observed_at": "2026-01-01T12:00:00Z"}
    assert body["readings"] == [plain | {"state": "active"}, plain | {"state": "idle"}]
    assert running.get("show_activity", ASKED, until="2026-01-02T00:00:00Z").body["readings"] == []


def test_the_page_of_a_home_is_served_while_the_settings_are_wrong(running: Running) -> None:
    running.without("EVENTHUB_NAME")
    page = functions()["home_page"](request("GET", route_params=ASKED), CONTEXT)
    assert (page.status_code, page.mimetype, app.value) == (200, "text/html", None)
