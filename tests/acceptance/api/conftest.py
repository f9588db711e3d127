"""One host for all tests that change nothing, over a store with letters and ranges in it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.model.events import SequenceNumber
from tests.acceptance.api.served import HUB, Served
from tests.fakes.builders import EPOCH, commit, event, letter, partition, reading, settled

PARTITIONS, LETTERS = ("0", "1", "10"), 12


def fill(served: Served) -> None:
    """Three partitions, each with four letters, two of them of one cause."""
    later = datetime.now(UTC) + timedelta(minutes=50)
    for id in PARTITIONS:
        of = partition(id, hub=HUB)
        served.store.anchor_partition(served.store.read_partition(of), SequenceNumber(0), EPOCH)
        for at in range(LETTERS // len(PARTITIONS)):
            first = at * 10
            given = letter(event(first + 1, f'{{"n":{at}}}', key=f"home-{at}"), error=f"no such kind {at}")
            poison = replace(given, fingerprint="aaaa", status="exhausted", error_class="poison")
            unknown = replace(given, fingerprint="bbbb", status="waiting", due_at=later)
            outcome = settled(
                {first: [reading()]},
                letters=[poison if at % 2 else unknown],
                filtered=8,
            )
            served.store.commit_batch(commit(served.store.read_partition(of), first, first + 9, outcome))


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The app, filled."""
    made = Served(tmp_path_factory.mktemp("served"))
    fill(made)
    yield made
    made.close()


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A filled app of a module, whose tests change its store."""
    made = Served(tmp_path_factory.mktemp("own"))
    fill(made)
    yield made
    made.close()
