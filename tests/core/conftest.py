from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core.model.commits import BatchCommit, DeadLetter, PartitionState, Settled
from core.model.events import Partition, SequenceNumber
from examples.home_security.homes import Homes
from tests.fakes.builders import EPOCH, STREAM, commit, partition, settled
from tests.fakes.engines import EACH_ENGINE, ENGINES
from tests.fakes.kept import Engine
from tests.fakes.store import OperatorStores, homes_of, operator_stores
from tests.sql.values import ROW_CLASSES


@dataclass(frozen=True)
class Office:
    engine: Engine
    store: Any
    desk: OperatorStores
    homes: Homes

    def commit(self, first: int, last: int, outcome: Settled | None = None, of: Partition | None = None) -> BatchCommit:
        made = commit(self.anchored(of or partition(), first), first, last, outcome)
        self.store.commit_batch(made)
        return made

    def anchored(self, of: Partition, first: int) -> PartitionState:
        state: PartitionState = self.store.read_partition(of)
        if state.checkpoint is None and state.anchor is None:
            state = self.store.anchor_partition(state, SequenceNumber(first), EPOCH)
        return state

    def letters(self, *given: DeadLetter, of: Partition | None = None) -> None:
        """One range a letter. The numbers between them are filtered."""
        for one in given:
            state = self.anchored(of or partition(), 0)
            first = 0 if state.checkpoint is None else state.checkpoint.sequence_number + 1
            last = one.event.sequence_number
            self.store.commit_batch(commit(state, first, last, settled({}, letters=[one], filtered=last - first)))


@pytest.fixture(params=EACH_ENGINE)
def make_office(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Office]]:
    """Opens desks over one empty database."""
    engine = ENGINES[request.param](tmp_path)
    opened: list[Any] = []

    def make() -> Office:
        opened.append(engine.open())
        database = opened[-1].database
        return Office(engine, opened[-1], operator_stores(database, STREAM, ROW_CLASSES), homes_of(database))

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def office(make_office: Callable[[], Office]) -> Office:
    return make_office()
