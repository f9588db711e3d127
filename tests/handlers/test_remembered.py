import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.errors import StoreUnavailable
from handlers.remembered import Lifetime, Remembered
from tests.fakes.builders import FakeClock
from tests.patience import allowed

QUICK, FRESH, LIMIT = 0.01, 5.0, 60.0
ALWAYS_SLOW = Lifetime(fresh=FRESH, limit=FRESH)


class Looking:
    """Counts its looks, each of which takes `takes` seconds. What is put off runs with `run`."""

    def __init__(self, takes: float, lifetime: Lifetime = Lifetime(FRESH, LIMIT, QUICK)) -> None:  # noqa: B008 - frozen
        self.takes, self.looks, self.fault = takes, 0, False
        self.time = FakeClock()
        self.put_off: list[Callable[[], None]] = []
        self.remembered = Remembered(self.look, lifetime, self.time.monotonic, self.put_off.append)

    def look(self) -> int:
        self.time.advance(self.takes)
        if self.fault:
            raise StoreUnavailable("the database does not answer")
        self.looks += 1
        return self.looks

    def shown(self) -> int:
        return self.remembered.get()

    def run(self) -> None:
        while self.put_off:
            self.put_off.pop()()


def test_a_quick_look_is_taken_for_every_request_and_a_slow_one_once_and_then_in_the_background() -> None:
    assert [quick.shown() for quick in [Looking(QUICK / 2)] * 4] == [1, 2, 3, 4]
    own = Looking(QUICK * 5)
    assert [own.shown() for _ in range(4)] == [1, 1, 1, 1]
    assert own.remembered.get_aged() == (1, 0.0)
    own.time.advance(FRESH)
    before = own.time.seconds
    assert own.remembered.get_aged() == (1, FRESH)
    assert [own.shown(), own.shown(), len(own.put_off), own.time.seconds] == [1, 1, 1, before]
    own.run()
    assert own.shown() == 2
    own.remembered.forget()
    assert own.shown() == 3
    own.takes = 0
    own.time.advance(FRESH + 1)
    assert own.shown() == 3
    own.run()
    assert [own.shown(), own.shown()] == [5, 6], "looks became quick"


def test_a_fault_in_the_background_is_raised_once_the_value_is_too_old() -> None:
    own = Looking(QUICK * 5)
    own.shown()
    own.fault = True
    own.time.advance(FRESH)
    assert own.shown() == 1
    own.run()
    own.time.advance(LIMIT)
    with pytest.raises(StoreUnavailable):
        own.shown()
    own.fault = False
    assert own.shown() == 2


@pytest.mark.parametrize("lifetime", [Lifetime(FRESH, LIMIT, QUICK), ALWAYS_SLOW])
def test_the_first_fault_is_the_request_s_and_is_not_remembered(lifetime: Lifetime) -> None:
    own = Looking(QUICK * 5, lifetime)
    own.fault = True
    with pytest.raises(StoreUnavailable):
        own.shown()
    own.fault = False
    assert own.shown() == 1


def test_a_look_that_began_before_its_value_was_forgotten_is_not_remembered() -> None:
    moves: list[int] = []

    def look() -> int:
        seen = len(moves)
        if not moves:  # somebody moves letters while they are counted
            moves.append(1)
            remembered.forget()
        return seen

    remembered = Remembered(look, ALWAYS_SLOW)
    assert [remembered.get(), remembered.get()] == [0, 1]


def test_without_a_background_the_value_is_looked_up_again_while_the_request_waits() -> None:
    own = Looking(0, ALWAYS_SLOW)
    assert [own.shown(), own.shown()] == [1, 1]
    own.time.advance(FRESH)
    assert [own.shown(), own.shown(), own.put_off] == [2, 2, []]


def test_requests_that_wait_for_one_look_share_it() -> None:
    looks, begun, release = [], threading.Event(), threading.Event()

    def look() -> int:
        looks.append(1)
        begun.set()
        assert release.wait(allowed(10))
        return len(looks)

    remembered = Remembered(look, ALWAYS_SLOW)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(remembered.get)]
        assert begun.wait(allowed(10))
        asked += [pool.submit(remembered.get) for _ in range(3)]
        release.set()
        assert [one.result(allowed(10)) for one in asked] == [1, 1, 1, 1]
