"""Do something small every few seconds beside whatever else is going on, so that progress is told while it waits."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def ticking(seconds: float, action: Callable[[], None]) -> Iterator[None]:
    """Inside the block, `action` is called after each `seconds`; it must neither fail nor wait."""
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(seconds):
            action()

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield
    finally:
        ended.set()
        ticker.join()
