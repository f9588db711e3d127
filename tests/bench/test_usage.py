"""bench/usage.py: the processor's time and the memory of this process, and of one that it starts."""

import os
import subprocess
import sys
import time

import pytest

from bench.usage import READABLE, cpu_of, family, peak_of, resident_of

pytestmark = pytest.mark.skipif(not READABLE, reason="this system has no /proc")
BLOCK = 64 << 20  # bytes


def test_the_time_of_a_process_is_that_of_its_own_clock() -> None:
    began, clock = cpu_of(os.getpid()), time.process_time()
    while time.process_time() < clock + 0.2:
        pass
    assert cpu_of(os.getpid()) - began == pytest.approx(time.process_time() - clock, abs=0.05)


def test_memory_that_is_filled_and_given_back_is_seen_now_and_at_the_peak() -> None:
    before = resident_of(os.getpid())
    block = b"x" * BLOCK
    filled = resident_of(os.getpid())
    assert len(block) == BLOCK <= filled - before + (1 << 20)
    del block
    assert resident_of(os.getpid()) < filled - BLOCK // 2
    assert peak_of(os.getpid()) * (1 << 20) >= filled - (1 << 20)


def test_a_process_that_was_started_belongs_to_the_family_until_it_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.pid in family(os.getpid())
        child.communicate(b"\n")
    assert child.pid not in family(os.getpid())
    with pytest.raises(OSError):
        cpu_of(child.pid)
