"""The numbers on the command line of the calculators."""

import argparse

MOST = 1e12


def positive(text: str) -> float:
    """Return a number above 0, which may have commas or underscores between its digits."""
    value = float(text.replace(",", "").replace("_", ""))
    if not 0 < value < MOST:
        raise argparse.ArgumentTypeError(f"must be above 0 and below {MOST:,.0f}, not {text!r}")
    return value


def whole(text: str) -> int:
    """Return a whole number of at least 1, which may have commas or underscores between its digits."""
    value = int(text.replace(",", "").replace("_", ""))
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text!r}")
    return value
