"""A loss of power while a run is committed into SQLite leaves a prefix of its transactions, and the run continues."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import core.aggregation.tick
import core.store.sqlite.database
from core.aggregation.runs import AggregationRun, Portion, Staged
from core.model.aggregates import SLICES
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import open_checked
from tests.fakes.aggregation_engines import (
    HOME_ACTIVITY,
    AggregatingStore,
    SqliteAggregation,
    committed,
    ingest,
    slice_of,
)
from tests.fakes.builders import reading
from tests.fakes.engines import SqliteEngine
from tests.fakes.runs import HOMES, NOW, opened_run, staged_result, stored, window

NUMBERS = sorted({slice_of(home) for home in HOMES})
PORTIONS = 4  # until a checkpoint; each changes four rows: the cut's and the run's, the slice's facts, and a window
HEADER, FRAME_HEADER = 32, 24  # bytes of the log, and of each of its frames, which has a page after them


@dataclass(frozen=True, slots=True)
class Files:
    """The bytes of the database and of its log at one moment."""

    database: bytes
    log: bytes

    @property
    def frame(self) -> int:
        return FRAME_HEADER + int.from_bytes(self.log[8:12], "big")

    def commits(self) -> list[int]:
        """Return the ends of the transactions in the log, without those that were there before its last restart."""
        ends = []
        for start in range(HEADER, len(self.log), self.frame):
            if self.log[start + 8 : start + 16] != self.log[16:24]:
                break
            if self.log[start + 4 : start + 8] != bytes(4):
                ends.append(start + self.frame)
        return ends

    def without_power(self) -> Iterator[bytes]:
        """Return logs that a loss of power may leave: an end, whole or torn, or a frame that is lost before others."""
        yield b""
        for end in self.commits():
            yield self.log[:end]
            yield self.log[: end - self.frame // 2]
            yield self.log[: end - self.frame] + bytes(self.frame) + self.log[end:]


class Photographed(AggregatingStore):
    """A store that keeps the files after each transaction of a run, and commits one event between them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = [read_files(path)]
        super().__init__(SqliteDatabase(path))

    def commit_portion(self, run: AggregationRun, staged: Staged, portion: Portion) -> bool:
        done = super().commit_portion(run, staged, portion)
        self.files.append(read_files(self.path))
        if len(self.files) == len(NUMBERS) // 2:
            ingest(self, [reading()])
        return done


def read_files(path: Path) -> Files:
    log = Path(f"{path}-wal")
    return Files(path.read_bytes(), log.read_bytes() if log.exists() else b"")


def readings(store: AggregatingStore) -> dict[str, int]:
    return {one.home_id: one.readings for one in stored(store)}


def opened(store: AggregatingStore, engine: SqliteAggregation) -> tuple[AggregationRun, Staged]:
    """Open a run with a result that adds 2 to each home."""
    run = opened_run(store)
    return run, staged_result(store, engine, run, [window(home) for home in HOMES])


@pytest.fixture
def single(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each slice be a separate transaction, and let a checkpoint follow some of them."""
    monkeypatch.setattr(core.aggregation.tick, "PORTION", 1)
    monkeypatch.setattr(core.store.sqlite.database, "CHECKPOINT_AFTER", 4 * PORTIONS)


@pytest.mark.slow
def test_a_run_continues_from_every_prefix_that_a_loss_of_power_leaves(tmp_path: Path, single: None) -> None:
    engine = SqliteAggregation(SqliteEngine(tmp_path / "store.db"))
    with closing(engine.open()) as first:
        assert committed(first, *opened(first, engine), NOW)
    with closing(engine.open()) as second:
        run, staged = opened(second, engine)
    engine.sqlite.sql("PRAGMA wal_checkpoint(TRUNCATE)")  # so that no prefix is without the run
    store = Photographed(tmp_path / "store.db")
    assert committed(store, run, staged, NOW)
    before, found, tried = store.files[0], set(), 0
    for files in store.files[1:]:
        # A checkpoint first writes its log to the disk: then no shorter log can be left beside the changed file.
        logs = files.without_power() if files.database == before.database else iter([files.log])
        for log in logs:
            found.add(continued(tmp_path / "left", Files(files.database, log), staged))
            tried += 1
        before = files
    store.close()
    assert tried > 2 * len(NUMBERS)
    assert len(found) == len(NUMBERS) + 1  # each number of slices was left once, none and all among them


def continued(place: Path, files: Files, staged: Staged) -> int:
    """Start on the files that are left, and commit the rest; return the slices that were committed before."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    (place / "store.db").write_bytes(files.database)
    (place / "store.db-wal").write_bytes(files.log)
    with closing(SqliteAggregation(SqliteEngine(place / "store.db")).open()) as store:
        left = store.read_standing(HOME_ACTIVITY).last_run
        assert left is not None
        done = sum(number < left.committed_slices for number in NUMBERS)
        assert readings(store) == {home: 4 if slice_of(home) < left.committed_slices else 2 for home in HOMES}
        assert committed(store, left, staged, NOW)
        assert readings(store) == dict.fromkeys(HOMES, 4)
        closed = store.read_standing(HOME_ACTIVITY)
        assert closed.last_run is not None
        assert (closed.last_run.committed_slices, closed.cut) == (SLICES, left.cut_to)
    return done


class Noting(sqlite3.Connection):
    """A connection that notes how each commit is synchronous, and each checkpoint."""

    notes: list[str]

    def execute(self, text: str, *given: Any) -> sqlite3.Cursor:
        if text == "COMMIT":
            self.notes.append({1: "normal", 2: "full"}[super().execute("PRAGMA synchronous").fetchone()[0]])
        if "wal_checkpoint" in text:
            self.notes.append("checkpoint")
        return super().execute(text, *given)


def test_only_the_portions_of_a_run_do_not_wait_for_the_disk(tmp_path: Path, single: None) -> None:
    engine = SqliteAggregation(SqliteEngine(tmp_path / "store.db"))
    with closing(engine.open()) as other:
        run, staged = opened(other, engine)
    notes: list[str] = []

    def connect() -> sqlite3.Connection:
        open_checked(engine.sqlite.path, 5.0).close()
        connection = sqlite3.connect(engine.sqlite.path, isolation_level=None, factory=Noting)
        connection.notes = notes
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    with closing(AggregatingStore(SqliteDatabase(engine.sqlite.path, connect=connect))) as store:
        ingest(store, [reading()])
        assert committed(store, run, staged, NOW)
        ingest(store, [reading()])
    assert len(NUMBERS) % PORTIONS == 0
    assert notes[1:-2] == [*["normal"] * PORTIONS, "checkpoint"] * (len(NUMBERS) // PORTIONS)
    assert (notes[0], notes[-2:]) == ("full", ["full", "full"])  # events, and the transaction that closes the run
