"""core/store/server_commit.py: one batch for a whole commit, and the values that go with it."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import orjson
import pytest

from core.commits import BatchCommit
from core.errors import DataRefused
from core.rows import Row, appended_to, state_of
from core.store.server_commit import commit_statement, statement
from core.transforms.home_security import Home, SensorReading
from tests.fakes.odbc_driver import DECLARED
from tests.sql.statements import commit_of, commit_with
from tests.sql.values import EPOCH, ID, row_of


@appended_to("price")
@dataclass(frozen=True, slots=True)
class Price:
    amount: Decimal | None
    ratio: float
    day: date
    paid: bool


@state_of("version", key=("name",))
@dataclass(frozen=True, slots=True)
class Version:
    name: str


def values_of(commit: BatchCommit) -> dict[str, Any]:
    """The values by the variables that the text declares for them."""
    text, given = commit_statement(commit)
    return dict(zip(DECLARED.findall(text), given, strict=True))


def rows_of(table: str, *rows: Row) -> list[list[Any]]:
    placed = [(7 + at, 0, row) for at, row in enumerate(rows)]
    return orjson.loads(values_of(commit_with({type(rows[0]): placed}))[f"rows_of_{table}"])


def test_the_first_commit_expects_nothing_and_a_later_one_the_checkpoint() -> None:
    assert "expected" not in values_of(commit_of((), first=True, letters=False))
    assert values_of(commit_of((), first=False, letters=False))["expected"] == 6


def test_every_value_is_declared_once_under_its_own_name() -> None:
    values = values_of(commit_of((Home,), first=False, letters=True))
    text, given = commit_statement(commit_of((Home,), first=False, letters=True))
    assert len(values) == len(given) == text.count("?")
    assert (values["stream_id"], values["partition_id"], values["sequence_number"]) == (1, "0", 7)
    assert (values["first_sequence_number"], values["last_sequence_number"]) == (7, 7)
    assert (values["offset_token"], values["commit_id"]) == ("448", str(ID))
    assert (values["written"], values["dead_lettered"], values["rows_written"]) == (0, 1, 1)


def test_instants_are_sent_as_text_in_utc_without_a_zone() -> None:
    there = datetime(2026, 1, 1, 5, 45, 0, 1, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    commit = commit_of((), first=True, letters=False)
    values = values_of(replace(commit, committed_at=there, last=replace(commit.last, enqueued_at=EPOCH)))
    assert values["committed_at"] == values["updated_at"] == "2026-01-01T00:00:00.000001"
    assert values["enqueued_at"] == "2026-01-01T00:00:00.000000"


def test_appended_rows_are_arrays_of_position_and_columns() -> None:
    assert rows_of("sensor_reading", row_of(SensorReading)) == [
        [7, 0, "home-1", "sensor-1", "carbon_monoxide", None, 5, "2026-01-01T00:00:00.000000"]
    ]


def test_of_several_states_of_a_key_only_the_newest_is_sent() -> None:
    assert rows_of("home", Home("a", "x", True), Home("b", "x", True), Home("a", "y", False)) == [
        [9, "a", "y", False],
        [8, "b", "x", True],
    ]


def test_numbers_keep_every_digit() -> None:
    amounts = [Decimal("12345678901234567890.0123456789"), Decimal("1E+3"), Decimal("-0.10"), None]
    sent = rows_of("price", *(Price(amount, 0.1, date(2026, 1, 2), True) for amount in amounts))
    assert [row[2:] for row in sent] == [
        [text, 0.1, "2026-01-02", True] for text in ("12345678901234567890.0123456789", "1000", "-0.10", None)
    ]
    ends = [replace(row_of(SensorReading), ppm=number) for number in (2**63 - 1, -(2**63))]
    assert [row[6] for row in rows_of("sensor_reading", *ends)] == [2**63 - 1, -(2**63)]


def test_a_letter_is_sent_whole_with_its_body_in_hex() -> None:
    (letter,) = orjson.loads(values_of(commit_of((), first=True, letters=True))["letters"])
    assert letter == [
        7, "448", "2026-01-01T00:00:00.000000", None, "{}", b"body".hex(), 1, "unknown", "builtins.ValueError", "why",
        "0123456789abcdef", "test/1", "waiting", "2026-01-01T00:00:00.000000", "2026-01-01T00:00:00.000000",
    ]  # fmt: skip


@pytest.mark.parametrize("body", [b"", b"\x00\xff", "👩‍👩‍👧".encode(), bytes(range(256)) * 3600], ids=len)
def test_a_body_of_any_bytes_can_be_sent(body: bytes) -> None:
    commit = commit_of((), first=True, letters=True)
    (letter,) = commit.settled.letters
    changed = replace(commit.settled, letters=[replace(letter, event=replace(letter.event, body=body))])
    (sent,) = orjson.loads(values_of(replace(commit, settled=changed))["letters"])
    assert bytes.fromhex(sent[5]) == body


@pytest.mark.parametrize(
    "row",
    [
        Home("\ud800", "x", True),
        SensorReading("a", "b", "c", None, 2**64, EPOCH),
        SensorReading("a", "b", "c", None, -(2**63) - 1, EPOCH),
        SensorReading("a", "b", "c", None, 1, datetime(2026, 1, 1)),  # noqa: DTZ001
        SensorReading("a", "b", "c", b"bytes", 1, EPOCH),  # type: ignore[arg-type]
    ],
    ids=["a lone surrogate", "65 bits", "below 64 bits", "no time zone", "a value of no column"],
)
def test_a_row_that_json_cannot_hold_is_refused_data(row: Row) -> None:
    with pytest.raises(DataRefused, match=r"^the rows cannot be written as JSON: "):
        commit_statement(commit_with({type(row): [(7, 0, row)]}))


def test_a_table_named_like_a_parameter_has_a_variable_of_its_own() -> None:
    names = DECLARED.findall(commit_statement(commit_with({Version: [(7, 0, Version("a"))]}))[0])
    assert "rows_of_version" in names
    assert len(set(names)) == len(names)


def test_commits_of_one_shape_share_one_text() -> None:
    one, other = (commit_of((Home,), first=False, letters=False) for _ in range(2))
    assert (
        commit_statement(one)[0] is commit_statement(replace(other, committed_at=datetime(2027, 1, 1, tzinfo=UTC)))[0]
    )


def test_classes_without_rows_leave_no_trace() -> None:
    text, _ = commit_statement(commit_with({Home: [], SensorReading: [(7, 0, row_of(SensorReading))]}))
    assert "hubledger.home" not in text


def test_a_query_without_params_declares_nothing() -> None:
    assert statement("SELECT 1 AS one;", ()) == "SET NOCOUNT ON;\n\nSELECT 1 AS one;"


def test_texts_are_declared_wider_than_any_column_so_that_none_is_cut_unseen() -> None:
    text = statement("", ("event_hub", "consumer_group", "partition_id", "offset_token", "invocation_id"))
    assert text.count("nvarchar(4000)") == 4
    assert "@partition_id varchar(8000)" in text
