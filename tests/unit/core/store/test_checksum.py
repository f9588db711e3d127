"""core/store/checksum.py and changed.py: a commit's checksums fit until its rows are changed."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any

import pytest

from core.ledger.faults import ChangedCommit
from core.ledger.recount import LAST_NUMBER
from core.ledger.store.changed import NUMBERS, ChangedCommits
from core.model.commits import BatchCommit
from core.model.events import PartitionId
from core.model.rows import Row, appended_to
from core.model.spans import SequenceNumber, Span
from core.settle.store.partitions import batch_script
from core.store.checksum import RowsDigest, added, checksum_of, ledger_checksum
from core.store.decoding import row_of_json
from core.store.script import Script, Step, of_rows
from core.store.sqlserver.batch import run_batch
from core.store.stream import OneStream
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.builders import EPOCH, STREAM, alert, commit, event, home, letter, partition, reading, settled
from tests.fakes.engines import SqliteEngine
from tests.fakes.store import Store

ALL = Span(SequenceNumber(0), LAST_NUMBER)
ZONE = timezone(timedelta(hours=5, minutes=30))


class Word(str):
    __slots__ = ()


class Place(StrEnum):
    HERE = "here"


class Level(IntEnum):
    HIGH = 3


@appended_to("trial_value")
@dataclass(frozen=True, slots=True)
class TrialValue:
    name: str
    count: int | None
    ratio: float | None
    amount: Decimal | None
    paid: bool | None
    day: date | None
    at: datetime


PLAIN = TrialValue("a", 1, 0.5, Decimal("1.50"), True, date(2026, 1, 2), EPOCH)
TABLE = """CREATE TABLE trial_value (
    stream_id INTEGER NOT NULL, partition_id TEXT NOT NULL, sequence_number INTEGER NOT NULL, ordinal INTEGER NOT NULL,
    commit_number INTEGER NOT NULL, name TEXT, count INTEGER, ratio REAL, amount TEXT, paid INTEGER, day TEXT, at TEXT,
    PRIMARY KEY (stream_id, partition_id, sequence_number, ordinal)) STRICT"""
ODD: list[dict[str, Any]] = [
    {},
    {"name": 'Ü"\\],[\n\x00', "count": -(2**63), "ratio": 0.1 + 0.2, "amount": Decimal("1E+3")},
    {"count": None, "ratio": None, "amount": None, "paid": None, "day": None},
    {"count": True, "ratio": 1, "amount": 5, "name": Word("x")},
    {"count": Level.HIGH, "ratio": True, "amount": True, "name": Place.HERE},
    {"amount": Decimal("-0.00"), "ratio": -(2**53)},
    {"at": datetime(2026, 1, 1, 5, 30, 0, 1, tzinfo=ZONE), "day": date(1, 1, 1)},
    {"at": datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), "ratio": -1e300},
]


@pytest.fixture
def engine(tmp_path: Path) -> SqliteEngine:
    made = SqliteEngine(tmp_path / "store.db")
    made.sql(TABLE)
    return made


def keep(store: Store, rows: Sequence[Row]) -> BatchCommit:
    """Commit one row for each of the next numbers."""
    state = store.read_partition(partition())
    first = 0 if state.checkpoint is None else state.checkpoint.sequence_number + 1
    made = commit(state, first, first + len(rows) - 1, settled({first + at: [row] for at, row in enumerate(rows)}))
    store.commit_batch(made)
    return made


def changed(store: Store, *classes: type, within: Span = ALL) -> tuple[ChangedCommit, ...]:
    stream = OneStream(store.database, STREAM)
    return ChangedCommits(stream, classes or (TrialValue,), PartitionId("0")).find(within, 100)


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_a_value_is_read_back_as_it_was_written(engine: SqliteEngine, odd: dict[str, Any]) -> None:
    store = engine.open()
    keep(store, [PLAIN, replace(PLAIN, **odd)])
    assert engine.sql("SELECT rows_checksum <> 0 FROM batch_ledger") == [(1,)]
    assert changed(store) == ()


@pytest.mark.parametrize(
    "change",
    [
        "name = 'b'", "name = NULL", "name = ''", "count = 2", "count = NULL", "ratio = 0.5000000000000001",
        "ratio = -0.5", "amount = '1.51'", "amount = 'x'", "paid = 0", "paid = NULL", "day = '2026-01-03'",
        "at = 'yesterday'",
        "at = '2026-01-01T00:00:00.000001Z'", "ordinal = 1", "sequence_number = 9", "partition_id = '1'",
    ],
)  # fmt: skip
def test_every_change_of_a_value_or_a_place_shows(engine: SqliteEngine, change: str) -> None:
    store = engine.open()
    for _ in range(3):
        keep(store, [PLAIN])
    engine.sql(f"UPDATE trial_value SET {change} WHERE sequence_number = 1")
    assert [(one.commit_number, one.rows) for one in changed(store)] == [(2, True)]


@pytest.mark.parametrize(
    "change",
    ["written = 0, filtered = 1", "rows_written = 2", "rows_appended = 0", "invocation_id = 'x'", "kind = 'retry'"],
)
def test_every_change_of_a_row_in_the_ledger_shows(engine: SqliteEngine, change: str) -> None:
    store = engine.open()
    for _ in range(3):
        keep(store, [PLAIN])
    engine.sql(f"UPDATE batch_ledger SET {change} WHERE commit_number = 2")
    assert [(one.commit_number, one.rows) for one in changed(store)] == [(2, False)]


FLOATS = (0.1 + 0.2, 1 / 3, 5e-324, -1.7976931348623157e308, 123456789.12345679, -0.0, 1e22, 3.0, None)


def retract(store: Store, numbers: Sequence[int]) -> None:
    """Move the rows of some numbers to `retracted_row`, as a replay does."""
    place: dict[str, Any] = {
        "stream_id": store.read_partition(partition()).stream_id,
        "partition_id": "0",
        "commit_number": 9,
    }
    place["sequence_numbers"] = json.dumps([[number] for number in numbers])
    steps = (Step(of_rows("retract", TrialValue), place), Step(of_rows("delete", TrialValue), place))
    store.database.run(Script("a test", steps))


def test_a_float_that_a_replay_retracted_is_exact_and_still_compared(engine: SqliteEngine) -> None:
    store = engine.open()
    rows = [replace(PLAIN, ratio=ratio) for ratio in FLOATS]
    keep(store, rows)
    retract(store, range(1, len(rows)))
    documents = [text for (text,) in engine.sql("SELECT row FROM retracted_row ORDER BY sequence_number")]
    assert [row_of_json(TrialValue, text) for text in documents] == rows[1:]
    assert changed(store) == ()
    engine.sql(
        "UPDATE retracted_row SET row = json_set(row, '$.ratio', '0.3333333333333334') WHERE sequence_number = 1"
    )
    assert [(one.commit_number, one.rows) for one in changed(store)] == [(1, True)]


def test_only_commits_wholly_in_the_range_are_compared(engine: SqliteEngine) -> None:
    store = engine.open()
    keep(store, [PLAIN, PLAIN])
    engine.sql("UPDATE trial_value SET count = 2")
    assert changed(store, within=Span(SequenceNumber(1), LAST_NUMBER)) == ()
    assert changed(store, within=Span(SequenceNumber(0), SequenceNumber(0))) == ()
    assert len(changed(store, within=Span(SequenceNumber(0), SequenceNumber(1)))) == 1


def test_a_commit_whose_rows_lie_far_apart_is_read_in_parts(engine: SqliteEngine) -> None:
    store = engine.open()
    far = 3 * NUMBERS
    state = store.read_partition(partition())
    store.commit_batch(commit(state, 0, far, settled({0: [PLAIN], NUMBERS: [PLAIN], far: [PLAIN]}, filtered=far - 2)))
    assert changed(store) == ()
    engine.sql("UPDATE trial_value SET count = 2 WHERE sequence_number = ?", far)
    assert len(changed(store)) == 1


def test_states_are_not_covered_and_tables_are_told_apart(engine: SqliteEngine) -> None:
    store = engine.open()
    made = commit(store.read_partition(partition()), 0, 0, settled({0: [home(), reading(), alert()]}))
    store.commit_batch(made)
    keep(store, [home("home-1", "Asia/Tokyo")])
    assert changed(store, Home, SensorReading, HomeAlert) == ()
    assert [one.commit_number for one in changed(store, Home, SensorReading)] == [1]


def test_rows_may_be_given_in_any_number_of_parts() -> None:
    values = [[at, 0, f"],[{at}", None] for at in range(20)]
    for cuts in ([20], [1, 20], [7, 8, 20]):
        digest, begin = RowsDigest("t"), 0
        for end in cuts:
            digest.add(values[begin:end])
            begin = end
        assert digest.total() == checksum_of("t", values) != checksum_of("u", values)
    assert (checksum_of("t", []), added(2**63 - 1, 1), added(-1, 1)) == (0, -(2**63), 0)


def test_both_engines_write_the_same_checksums(engine: SqliteEngine) -> None:
    store = engine.open()
    rows = [replace(PLAIN, **odd) for odd in ODD[:3]]
    made = replace(keep(store, rows), committed_at=EPOCH + timedelta(days=1))
    text, values = run_batch(batch_script(made), rehearse=False)
    names = re.findall(r"@(\w+) [\w()]+ = (?:CONVERT\([^?]*)?\?", text)
    sent = dict(zip(names, values, strict=True))
    (found,) = engine.sql("SELECT rows_checksum, ledger_checksum FROM batch_ledger")
    assert found == (sent["rows_checksum"], sent["ledger_checksum"])
    assert found[1] == ledger_checksum("batch", {**sent, "committed_at": f"{sent['committed_at']}Z"})


def test_a_commit_without_rows_has_the_checksum_of_none(engine: SqliteEngine) -> None:
    store = engine.open()
    store.commit_batch(commit(store.read_partition(partition()), 0, 0, settled({}, letters=[letter(event(0))])))
    assert engine.sql("SELECT rows_checksum FROM batch_ledger") == [(0,)]
    assert changed(store) == ()
