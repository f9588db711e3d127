"""tests/patience.py: a wait lasts longer where the machine is slow, and while something moves."""

import subprocess
import sys
from itertools import count

import pytest

from tests.patience import FRESH, IDLE, TURNS, Machine, Patience, ended, until, work


class Slow:
    """A machine that takes `times` as long as an idle one for the work. Its clock moves with each sleep."""

    def __init__(self, times: float = 1.0) -> None:
        self.times, self.now, self.measurements = times, 0.0, 0
        self.machine = Machine(self.work, lambda: self.now, self.sleep)

    def work(self) -> float:
        self.measurements += 1
        return IDLE * self.times

    def sleep(self, _: float) -> None:
        self.now += 0.5

    def waited(self, patience: Patience, moving_until: float = 0.0) -> float:
        """Return the seconds until the patience is over, when something moves until then."""
        with pytest.raises(AssertionError):
            while True:
                patience.pause(lambda: min(self.now, moving_until))
        return self.now


def test_an_idle_machine_waits_for_the_deadline_and_one_that_is_faster_no_less() -> None:
    for times in (0.3, 1.0):
        slow = Slow(times)
        assert slow.machine.allowed(60) == 60
        assert 10 < slow.waited(Patience(10, slow.machine)) < 12


def test_a_machine_that_takes_half_as_long_again_waits_twice_as_long_and_one_half_as_fast_three_times() -> None:
    assert [Slow(times).machine.allowed(60) for times in (1.5, 2.0)] == [pytest.approx(120), pytest.approx(180)]
    slow = Slow(2.0)
    assert 30 < slow.waited(Patience(10, slow.machine)) < 32


def test_a_machine_is_measured_again_when_a_measurement_is_old() -> None:
    slow = Slow()
    assert [slow.machine.allowed(1) for _ in range(3)] == [1, 1, 1]
    assert slow.measurements == 1
    slow.now, slow.times = FRESH, 3.0
    assert slow.machine.allowed(1) == pytest.approx(5)


def test_a_load_that_comes_during_a_wait_makes_it_longer() -> None:
    slow = Slow()
    patience = Patience(60, slow.machine)
    slow.times = 2.0
    assert 180 < slow.waited(patience) < 182


def test_a_wait_measures_nothing_before_its_deadline() -> None:
    slow = Slow()
    patience = Patience(10, slow.machine)
    while slow.now < 10:
        patience.pause()
    assert slow.measurements == 0


def test_the_patience_starts_anew_when_something_moves() -> None:
    slow = Slow()
    assert 50 < slow.waited(Patience(10, slow.machine), moving_until=40) < 53


def test_a_wait_in_which_something_moves_for_ever_ends_too() -> None:
    slow = Slow()
    assert 10 * TURNS < slow.waited(Patience(10, slow.machine), moving_until=1e9) < 10 * TURNS + 2


def test_a_wait_that_fails_says_how_things_stand() -> None:
    slow = Slow()
    patience = Patience(3, slow.machine)
    with pytest.raises(AssertionError, match=r"nothing new in 3 s: 7 of 9 events"):
        while True:
            patience.pause(lambda: "7 of 9 events")


def test_a_condition_is_asked_until_it_holds() -> None:
    tries = count()
    assert until(lambda: next(tries) >= 3 and "found", 60) == "found"
    assert next(tries) == 4


def test_the_outputs_of_a_process_are_returned_at_its_end() -> None:
    command = [sys.executable, "-I", "-S", "-c", "import sys; print('out'); sys.exit('err')"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert ended(process, 60) == ("out\n", "err\n")
    assert process.returncode == 1


def test_a_process_that_does_not_end_is_not_waited_for_without_end() -> None:
    command = [sys.executable, "-I", "-S", "-c", "import signal; signal.pause()"]
    with subprocess.Popen(command) as process:
        with pytest.raises(AssertionError, match="nothing new"):
            ended(process, 0.01)
        process.kill()


def test_this_machine_does_the_work() -> None:
    assert work() > 0
