"""What is closed when a test is over, in the thread that opened it: the garbage collector would close it in any."""

from collections.abc import Callable

_closing: list[Callable[[], object]] = []


def after_the_test(close: Callable[[], object]) -> None:
    """Call `close` when the running test is over."""
    _closing.append(close)


def close_all() -> None:
    """Close what the test that is over opened, the last first."""
    while _closing:
        _closing.pop()()
