"""Commands that end with their test."""

from collections.abc import Iterator

import pytest

from tests.acceptance.demo.started import Start, Started


@pytest.fixture
def start() -> Iterator[Start]:
    """Start commands, and end those that still run after the test."""
    started: list[Started] = []

    def starting(*command: str) -> Started:
        started.append(Started(*command))
        return started[-1]

    yield starting
    for each in started:
        each.end()
