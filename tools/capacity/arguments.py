"""The numbers on the command line of the calculators."""

import argparse
from collections.abc import Callable

MOST = 1e12


def positive(text: str) -> float:
    """Return a number above 0, which may have commas or underscores between its digits."""
    value = _number(float, text)
    if not 0 < value < MOST:
        raise argparse.ArgumentTypeError(f"must be above 0 and below {MOST:,.0f}, not {text!r}")
    return value


def whole(text: str) -> int:
    """Return a whole number of at least 1, which may have commas or underscores between its digits."""
    value = int(_number(int, text))
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text!r}")
    return value


def _number(kind: Callable[[str], float], text: str) -> float:
    try:
        return kind(text.replace(",", "").replace("_", ""))
    except ValueError as error:
        words = "a whole number" if kind is int else "a number"
        raise argparse.ArgumentTypeError(f"must be {words}, not {text!r}") from error
