"""core/store/database.py: the time of the database, read rarely, whatever the clock of the process says."""

from datetime import timedelta

import pytest

from core.errors import StoreUnavailable
from core.model.ports import Clock
from core.store.database import OF_BATCHES, OF_LETTERS, store_clock
from core.store.sqlserver.connections import Access
from core.store.sqlserver.database import SqlServerDatabase
from tests.fakes.builders import EPOCH, FakeClock, stamps
from tests.fakes.memory_store import MemoryStore
from tests.fakes.noted_database import NotedDatabase
from tests.fakes.odbc_driver import FakeDriver

WRONG = EPOCH - timedelta(days=400)


class World:
    """A process whose own clock is wrong, and a database whose clock is `there`."""

    def __init__(self) -> None:
        self.here, self.there = FakeClock(), FakeClock()
        self.database = NotedDatabase(MemoryStore(now=self.there.now).database)
        self.own = Clock(lambda: WRONG, stamps().new_id)

    def clock(self, age: timedelta = OF_BATCHES) -> Clock:
        return store_clock(self.database, self.own, age, self.here.monotonic)

    def pass_by(self, seconds: float) -> None:
        self.here.advance(seconds)
        self.there.advance(seconds)


@pytest.fixture
def world() -> World:
    return World()


def test_the_time_is_that_of_the_database_and_goes_on_between_two_readings(world: World) -> None:
    clock = world.clock()
    for _ in range(600):
        assert clock.now() == world.there.now()
        world.pass_by(0.5)
    assert world.database.calls == ["read_time"] * 5  # one a minute


@pytest.mark.parametrize("seconds", [-86_400, -3_600, 3_600, 86_400])
def test_a_change_of_the_clock_of_the_database_is_seen_at_the_next_reading(world: World, seconds: float) -> None:
    of_batches, of_letters = world.clock(), world.clock(OF_LETTERS)
    assert of_batches.now() == of_letters.now()
    world.there.advance(seconds)
    world.pass_by(1)
    assert of_letters.now() == world.there.now()
    assert of_batches.now() == world.there.now() - timedelta(seconds=seconds)
    world.pass_by(59)
    assert of_batches.now() == world.there.now()


def test_without_the_database_there_is_no_time_once_the_last_reading_is_too_old(world: World) -> None:
    clock = world.clock()
    clock.now()
    world.database.out = {"read_time"}
    world.pass_by(59)
    assert clock.now() == world.there.now()
    world.pass_by(1)
    with pytest.raises(StoreUnavailable):
        clock.now()


def test_ids_and_chance_stay_those_of_the_process(world: World) -> None:
    assert (world.clock().new_id, world.clock().chance) == (world.own.new_id, world.own.chance)


def test_the_time_of_a_server_is_read_from_the_server() -> None:
    driver = FakeDriver()
    driver.server.now = lambda: WRONG.replace(tzinfo=None)
    database = SqlServerDatabase("SERVER=host;UID=app;PWD=secret", access=Access(lambda: driver))
    assert store_clock(database, stamps(), monotonic=lambda: 0.0).now() == WRONG
