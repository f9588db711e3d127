"""core/store/sqlserver/connections.py: a process connects again 5 seconds after a failure, then ever more rarely."""

import pytest

from core.errors import SchemaMismatch, StoreMisconfigured, StoreUnavailable, StoreUnreachable
from core.store.sqlserver.connections import Access, Connections, Reconnects, connect
from tests.fakes.builders import FakeClock
from tests.fakes.odbc_driver import FakeDriver, lost

CONNECTION = "SERVER=host;UID=app;PWD=secret"


class World:
    """The attempts of a process on a fake clock; each of them fails while there are faults."""

    def __init__(self, *faults: Exception) -> None:
        self.clock = FakeClock()
        self.reconnects = Reconnects(self.clock.monotonic)
        self.faults = list(faults)
        self.attempts = 0

    def connect(self) -> str:
        return self.reconnects.attempt(self._open)

    def pause(self) -> float:
        """Return the pause after an attempt that fails."""
        with pytest.raises(StoreUnreachable) as caught:
            self.connect()
        return caught.value.pause

    def _open(self) -> str:
        self.attempts += 1
        if self.faults:
            raise self.faults.pop(0)
        return "a connection"


def test_pauses_begin_with_5_seconds_and_double_up_to_60() -> None:
    world = World(*[StoreUnavailable("no answer")] * 7)
    pauses = []
    for _ in range(7):
        pauses.append(world.pause())
        world.clock.advance(pauses[-1])
    assert pauses == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0, 60.0]
    assert world.connect() == "a connection"


def test_a_connection_ends_the_row_of_failures() -> None:
    world = World(*[StoreUnavailable("no answer")] * 2)
    for pause in (5.0, 10.0):
        assert world.pause() == pause
        world.clock.advance(pause)
    world.connect()
    world.faults = [StoreUnavailable("no answer")]
    assert world.pause() == 5.0


def test_during_a_pause_nobody_attempts_and_the_fault_says_why_and_how_long() -> None:
    world = World(StoreUnavailable("the database cannot be reached"))
    world.pause()
    world.clock.advance(2)
    with pytest.raises(
        StoreUnreachable, match="the database cannot be reached; the next attempt follows in 3 s"
    ) as caught:
        world.connect()
    assert (caught.value.pause, world.attempts) == (3.0, 1)


def test_threads_that_fail_together_count_once() -> None:
    world = World(StoreUnavailable("first"))
    world.faults = [StoreUnavailable("second")]

    def fail_within() -> str:
        assert world.pause() == 5.0  # a different thread fails while this one waits for its answer
        raise StoreUnavailable("first")

    with pytest.raises(StoreUnreachable) as caught:
        world.reconnects.attempt(fail_within)
    assert caught.value.pause == 5.0
    world.clock.advance(5)
    world.faults = [StoreUnavailable("third")]
    assert world.pause() == 10.0


@pytest.mark.parametrize("fault", [StoreMisconfigured("a login"), SchemaMismatch("too old")], ids=["login", "schema"])
def test_a_fault_that_a_person_mends_makes_no_pause(fault: Exception) -> None:
    world = World(fault)
    with pytest.raises(type(fault)):
        world.connect()
    assert world.connect() == "a connection"


def test_all_sessions_of_a_database_share_the_pause() -> None:
    driver, clock = FakeDriver(), FakeClock()
    driver.refusals = [lost()]
    pool = Connections(
        lambda: connect(CONNECTION, access=Access(lambda: driver)), lambda session: None, Reconnects(clock.monotonic)
    )
    for _ in range(3):
        with pytest.raises(StoreUnreachable, match=r"^STORE_CONNECTION: "):
            pool.get()
    assert len(driver.options) == 1
    clock.advance(5)
    assert pool.get() is pool.get()
