"""A run over many seeds ends, and says which world killed its process or hung."""

import os
import signal
import threading
from collections import Counter

import pytest

from tests.simulation.runner import Result
from tests.simulation.workers import run_all

KILLS, HANGS = 1, 3


def attempt(seed: int) -> Result:
    if seed == KILLS:
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == HANGS:
        threading.Event().wait()
    return Result(seed, Counter())


@pytest.mark.slow
def test_a_world_that_kills_its_process_or_hangs_fails_and_the_others_go_on(capfd: pytest.CaptureFixture[str]) -> None:
    found = {one.seed: one.fault for one in run_all(range(6), attempt, processes=1, patience=2.0)}
    killed, hung = found.pop(KILLS) or "", found.pop(HANGS) or ""
    assert found == {0: None, 2: None, 4: None, 5: None}
    assert killed == "the process of this world died with exit code -9"
    assert hung.startswith("this world has not ended after 2 s")
    assert "in attempt" in capfd.readouterr().err  # the lines where it stands
