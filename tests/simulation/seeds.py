"""The seeds of the worlds: some for every check, all of them for `make test`."""

import pytest


def seeds(all_of_them: range, in_every_check: int) -> list[object]:
    """Parameters, of which all but the first few are slow."""
    return [
        each if at < in_every_check else pytest.param(each, marks=pytest.mark.slow)
        for at, each in enumerate(all_of_them)
    ]
