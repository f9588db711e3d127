"""Stores that are closed when a test ends, in the thread that opened them: the garbage collector takes any thread."""

from collections.abc import Callable

_closing: list[Callable[[], object]] = []


def after_the_test(close: Callable[[], object]) -> None:
    _closing.append(close)


def close_all() -> None:
    while _closing:
        _closing.pop()()
