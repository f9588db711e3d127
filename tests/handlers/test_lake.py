"""handlers/timers.py: the timer maintains the tables of all jobs, and no fault leaves it."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from core.aggregation.runs import RunLimits
from core.aggregation.tick import Aggregation
from handlers.app import aggregation
from tests.fakes.lake_jobs import ONE_LEVEL, LakeWorld
from tests.handlers.running import functions

TABLE = f"gold/{ONE_LEVEL}"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LakeWorld]:
    yield LakeWorld(tmp_path)
    aggregation.value = None


def maintained(world: LakeWorld, caplog: pytest.LogCaptureFixture, *jobs: str) -> list[Any]:
    """Let the timer of an app with these jobs run; return the log lines."""
    engine: Any = None  # is not asked
    aggregation.value = Aggregation(world.store, engine, world.lake, world.clock.now, RunLimits(), (), jobs)
    with caplog.at_level(logging.INFO, logger="hubledger.timers"):
        functions()["maintain_lake"](None)
    return list(caplog.records)


def test_small_files_become_one_and_the_next_run_follows_but_not_while_an_open_run_knows_them(
    world: LakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
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
