import faulthandler
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.events import Event
from core.model.rows import References, Row
from core.model.transforms import Transform
from core.settle import watchdog as subject
from core.settle.settle import reference_keys, settle
from core.settle.watchdog import EXIT_STATUS, GRACE, Watchdog
from local.programs import APP
from tests.fakes.builders import NOON, STREAM, FakeClock, events, keep_letters, partition, stamps
from tests.fakes.store import MemoryStore
from tests.patience import allowed

DEADLINE = 240.0


class Ended(BaseException):
    """The process ended."""


class Machine:
    """The alarm of the C runtime and the process's end on a fake clock. The test looks, not a thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = FakeClock()
        self.set_at: float | None = None
        self.alarms = 0
        monkeypatch.setattr(faulthandler, "dump_traceback_later", self._set)
        monkeypatch.setattr(faulthandler, "cancel_dump_traceback_later", self._cancel)
        monkeypatch.setattr(subject, "LOOK", 3_600.0)
        self.watchdog = Watchdog(timedelta(seconds=DEADLINE), self.clock.monotonic, self._end)

    def look_after(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.watchdog.look()

    def _set(self, seconds: float, **_: object) -> None:
        assert seconds == DEADLINE + GRACE
        self.alarms += 1
        self.set_at = self.clock.monotonic()

    def _cancel(self) -> None:
        self.set_at = None

    def _end(self, facts: dict[str, object]) -> None:
        raise Ended(facts)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    machine = Machine(monkeypatch)
    with closing(machine.watchdog):
        yield machine


def test_a_run_in_time_is_left_alone_and_an_idle_process_has_no_alarm(machine: Machine) -> None:
    with machine.watchdog.over(partition(), events(0, 4)):
        assert machine.set_at == 0
        machine.look_after(DEADLINE - 1)
        assert machine.set_at == DEADLINE - 1
    machine.look_after(2)
    assert machine.set_at is None
    with machine.watchdog.over(partition(), events(5, 9)):
        assert machine.set_at == DEADLINE + 1
        machine.look_after(DEADLINE - 1)


def test_a_run_that_hangs_ends_the_process_with_its_partition_and_numbers(machine: Machine) -> None:
    with machine.watchdog.over(partition("1"), events(0, 1)):
        machine.clock.advance(2)
        with machine.watchdog.over(partition("3"), events(5, 9)), pytest.raises(Ended) as ended:
            machine.look_after(DEADLINE - 2)
    facts = {"action": "hang", "partition": "telemetry/hubledger/1", "first": 0, "last": 1, "seconds": DEADLINE}
    assert ended.value.args == (facts,)


def test_many_runs_of_a_second_set_the_alarm_once(machine: Machine) -> None:
    for _ in range(100):
        with machine.watchdog.over(None, events(0, 4)):
            pass
    assert machine.alarms == 1


def test_a_closed_watchdog_ends_no_process(machine: Machine) -> None:
    with machine.watchdog.over(None, events(0, 4)):
        machine.watchdog.close()
        assert machine.set_at is None
        machine.look_after(2 * DEADLINE)


def settling(transform: Transform) -> None:
    settle(events(4, 5), References({}), transform, of=partition())


def referring(transform: Transform) -> None:
    own = replace(transform, references_of=lambda one: transform.rows_of(one, References({})))  # type: ignore
    reference_keys(events(4, 5), own, partition())


def retrying(transform: Transform) -> None:
    store, clock = MemoryStore(), FakeClock()
    keep_letters(store, {4: b"", 5: b""})
    clock.seconds = (NOON - clock.now()).total_seconds()
    keeper = Keeper(STREAM, store, transform, lambda *_: None, stamps(0, clock))
    for chunk in claim_due(keeper):
        retry_chunk(chunk, keeper, "call")


@pytest.mark.parametrize("work", [settling, referring, retrying])
def test_it_watches_over_a_batch_its_references_and_the_retry_of_letters(
    machine: Machine, work: Callable[[Transform], None]
) -> None:
    def rows_of(event: Event, references: References) -> Iterable[Row]:
        try:
            machine.look_after(DEADLINE)
        except Ended as ended:
            raise KeyboardInterrupt(*ended.args) from None
        return ()

    with pytest.raises(KeyboardInterrupt) as ended:
        work(Transform("test/1", rows_of, watch=machine.watchdog.over))
    (facts,) = ended.value.args
    assert (facts["partition"], facts["first"], facts["last"]) == ("telemetry/hubledger/0", 4, 5)


HANGS = {
    "time.sleep(99)": (EXIT_STATUS, "telemetry/hubledger/0, events 7 to 7; the process ends"),
    "re.match(r'(a+)+$', 'a' * 99 + 'b')": (1, "Timeout (0:00:06)!"),
}


@pytest.mark.slow
@pytest.mark.parametrize("hang", HANGS)
def test_a_real_process_ends_while_it_sleeps_and_while_native_code_holds_the_lock_of_python(hang: str) -> None:
    program = f"""
import re, time
from datetime import timedelta
from core.model.rows import References
from core.model.transforms import Transform
from core.settle.settle import settle
from core.settle.watchdog import Watchdog
from tests.fakes.builders import event, partition
watchdog = Watchdog(timedelta(seconds=1))
settle([event(7)], References({{}}), Transform("t/1", lambda event, _: {hang}, watch=watchdog.over), of=partition())
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=APP, capture_output=True, text=True, timeout=allowed(60))
    assert (done.returncode, HANGS[hang][1] in done.stderr) == (HANGS[hang][0], True), done.stderr
    assert "<lambda>" in done.stderr
