"""handlers/app.py: the app is put together once, by the first who uses it."""

import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from core.app import TURN, YOUNG_OBJECTS
from core.errors import InvalidTransform, SchemaMismatch
from handlers.app import CLOCK, OnFirstUse, app
from handlers.operations.tasks import kind_named
from tests.fakes.written_modules import broken_room, written_modules
from tests.handlers.running import Running
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
