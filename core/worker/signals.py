"""SIGTERM and Ctrl-C as one request to stop: those that follow change nothing, up to the end of the process."""

import asyncio
import signal
from collections.abc import Callable

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def stop_at_signal(stop: Callable[[], None]) -> None:
    """Call `stop` on the running loop at the first signal, and ignore those that follow; for the main thread.

    A handler of the loop ends with the loop, and one of Python with the interpreter: then a signal would kill the
    process. A signal that is ignored stays ignored.
    """
    loop = asyncio.get_running_loop()

    def take(*_: object) -> None:
        ignore_signals()
        loop.call_soon_threadsafe(stop)

    for number in SIGNALS:
        signal.signal(number, take)


def ignore_signals() -> None:
    """Ignore SIGTERM and Ctrl-C from now on; call it before the loop ends."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
