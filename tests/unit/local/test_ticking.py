"""local/ticking.py"""

import threading

from local.ticking import ticking


def test_the_action_is_done_again_and_again_beside_the_block_and_not_after_it() -> None:
    ticks, thrice = list[int](), threading.Event()

    def action() -> None:
        ticks.append(1)
        if len(ticks) == 3:
            thrice.set()

    with ticking(0.001, action):
        assert thrice.wait(10)
    done = len(ticks)
    assert not threading.Event().wait(0.02)
    assert len(ticks) == done
