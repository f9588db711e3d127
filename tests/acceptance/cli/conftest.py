"""One app for the commands of a module, over a store with letters, one of them hostile to a terminal."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.model.events import SequenceNumber
from tests.acceptance.api.conftest import fill
from tests.acceptance.api.served import HUB, Contents, Served
from tests.fakes.builders import EPOCH, commit, event, letter, partition, settled

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[31m[bold red]no such kind[/]\x9b1;1H\u202e"


def fill_hostile(served: Served) -> None:
    """Add a partition with a letter whose error, key and body try to steer the terminal."""
    of = partition("11", hub=HUB)
    served.store.anchor_partition(served.store.read_partition(of), SequenceNumber(0), EPOCH)
    given = letter(event(0, f'{{"n":"{HOSTILE}"}}', key="home\x1b[2J"), error=HOSTILE)
    later = datetime.now(UTC) + timedelta(minutes=50)
    outcome = settled({}, letters=[replace(given, status="waiting", due_at=later)])
    served.store.commit_batch(commit(served.store.read_partition(of), 0, 0, outcome))


@pytest.fixture(scope="package")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The app, filled."""
    made = Served(tmp_path_factory.mktemp("cli"))
    fill(made)
    fill_hostile(made)
    yield made
    made.close()


@pytest.fixture(scope="package")
def beginning(app: Served) -> Contents:
    """The rows of the store before any test."""
    return app.contents()


@pytest.fixture
def fresh(app: Served, beginning: Contents) -> Served:
    """The app, with the rows of the beginning."""
    app.restore(beginning)
    return app


@pytest.fixture
def short_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose path is short enough for a socket."""
    return tmp_path_factory.mktemp("t", numbered=True)
