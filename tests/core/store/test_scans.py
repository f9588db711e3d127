"""Nothing scans the ledger at start or per request: the work of SQLite does not grow with the ranges.

A store with few ranges and one with many are asked the same, and the steps of SQLite's virtual machine are counted: a
scan takes more of them by as much as there are more ranges.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench.large_store import STREAM, Size, fill, start_worker
from core.audit.audit import audit
from core.ledger.explain import explain
from core.letters.listing import FIRST_PAGE, LetterChoice
from core.model.events import PartitionId, SequenceNumber
from core.model.letters import OPEN
from core.model.release import DEFAULT_TRANSFORM
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import open_checked
from core.transforms.loading import load_transform
from tests.fakes.operator_stores import OperatorStores, operator_stores

ROW_CLASSES = load_transform(DEFAULT_TRANSFORM).row_classes  # of the rooms that the filled store has
pytestmark = pytest.mark.slow
FEW, MANY = Size(ranges=8_000, letters=160), Size(ranges=64_000, letters=160)
MORE = MANY.ranges / FEW.ranges
P, NUMBER, NOW = PartitionId("7"), SequenceNumber(70), datetime(2026, 6, 1, tzinfo=UTC)


@dataclass
class Measured:
    """A store, and the steps of SQLite so far, in hundreds."""

    path: Path
    steps: int = 0
    database: SqliteDatabase = field(init=False)
    desk: OperatorStores = field(init=False)

    def __post_init__(self) -> None:
        self.database = SqliteDatabase(self.path, connect=self._connect)
        self.desk = operator_stores(self.database, STREAM, ROW_CLASSES)

    def _connect(self) -> sqlite3.Connection:
        connection = open_checked(self.path, 5.0)
        connection.set_progress_handler(self._count, 100)
        return connection

    def _count(self) -> None:
        self.steps += 1

    def steps_of(self, ask: Callable[["Measured"], object]) -> int:
        before = self.steps
        ask(self)
        return self.steps - before


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Measured, Measured]]:
    """A store with few ranges and one with many."""
    folder = tmp_path_factory.mktemp("scans")
    made = []
    for name, size in (("few", FEW), ("many", MANY)):
        fill(folder / name, size)
        made.append(Measured(folder / name))
        assert audit(made[-1].desk.audits, None).balanced
    few, many = made
    with closing(few.database), closing(many.database):
        yield few, many


def status(of: Measured) -> None:
    """Read the values that the status, the page, the health and the watch show."""
    own = of.desk.ledger
    assert all(one.balanced for one in own.read_books())
    own.read_stops(), own.read_incarnation(), own.count_open(), own.find_oldest_letter(OPEN)
    own.read_last_batches(), own.count_absent(NOW), own.find_anchor(P), own.count_tasks_held_up()


ASKED: dict[str, Callable[[Measured], object]] = {
    "start of a worker": lambda of: start_worker(of.database),
    "status, health and watch": status,
    "a page of letters": lambda of: of.desk.letters.list_letters(LetterChoice(), FIRST_PAGE, 50),
    "letters by cause": lambda of: of.desk.letters.group_letters(LetterChoice(), 50),
    "the explanation of a number": lambda of: explain(P, NUMBER, of.desk.explanations),
    "the open tasks": lambda of: of.desk.tasks.read_open(1),
}


@pytest.mark.parametrize("name", ASKED)
def test_the_work_does_not_grow_with_the_ranges(stores: tuple[Measured, Measured], name: str) -> None:
    few, many = (one.steps_of(ASKED[name]) for one in stores)
    assert many <= 1.1 * few + 5, f"{few} hundred steps with {FEW.ranges} ranges, {many} with {MANY.ranges}"


def test_a_scan_would_be_seen(stores: tuple[Measured, Measured]) -> None:
    few, many = (one.steps_of(lambda of: audit(of.desk.audits, P)) for one in stores)
    assert many > MORE / 2 * few
