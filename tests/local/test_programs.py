"""local/programs.py"""

import os
import signal
from collections.abc import Iterator

import pytest

from local.programs import SIGNALS, Interrupted, Interruption


@pytest.fixture
def interruption() -> Iterator[Interruption]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    listening = Interruption()
    listening.listen()
    yield listening
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_comes_out_of_the_next_pause(interruption: Interruption, number: signal.Signals) -> None:
    interruption.pause(0)
    os.kill(os.getpid(), number)
    with pytest.raises(Interrupted, match=f"stopped by {number.name}"):
        interruption.pause(10)
