"""core/store/server_commit.py: one batch for a whole commit, and the values that go with it."""

import json
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import orjson
import pytest

from core.errors import DataRefused
from core.model.commits import BatchCommit, DeadLetter
from core.model.events import Event
from core.model.rows import Row, appended_to, state_of
from core.model.spans import SequenceNumber
from core.store.server_commit import commit_statement, statement
from core.store.server_json import FOLDED, PLAIN
from core.transforms.home_security import Home, SensorReading
from tests.fakes.odbc_driver import DECLARED
from tests.sql.statements import commit_of, commit_with, with_gap
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
    values = values_of(replace(commit, committed_at=there))
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
    values = values_of(commit_of((), first=True, letters=True))
    (letter,) = orjson.loads(values["letters"])
    assert letter == [
        7, "448", "2026-01-01T00:00:00.000000", None, 1, 2, 3, 8, 1, "unknown", "builtins.ValueError", "why",
        "0123456789abcdef", "test/1", "waiting", "2026-01-01T00:00:00.000000", "2026-01-01T00:00:00.000000",
    ]  # fmt: skip
    assert values["letter_texts"] == "{}" + b"body".hex()


def commit_of_letters(*letters: DeadLetter) -> BatchCommit:
    commit = commit_of((), first=True, letters=True)
    return replace(commit, settled=replace(commit.settled, letters=letters))


def letters_of(commit: BatchCommit) -> list[tuple[str, bytes]]:
    """Properties and body of each letter, cut out as the statement does."""
    values = values_of(commit)
    texts = values["letter_texts"]
    assert texts.isascii(), "a character must be one unit, so that server and client count alike"
    cut = []
    for letter in orjson.loads(values["letters"]):
        properties_at, properties_length, body_at, body_length = letter[4:8]
        body = texts[body_at - 1 : body_at - 1 + body_length]
        cut.append((texts[properties_at - 1 : properties_at - 1 + properties_length], bytes.fromhex(body)))
    return cut


@pytest.mark.parametrize("body", [b"", b"\x00\xff", "👩‍👩‍👧".encode(), bytes(range(256)) * 3600], ids=len)
def test_a_body_of_any_bytes_can_be_sent(body: bytes) -> None:
    given = letter_of({"tenant": "ß👩", "deep": {"a": ['"', "\\", "\x00"]}}, body)
    assert letters_of(commit_of_letters(given)) == [(json.dumps(given.event.properties), body)]


def test_each_of_many_letters_has_its_own_texts() -> None:
    given = [letter_of({"n": "x" * number}, bytes(number)) for number in range(5)]
    sent = [(json.dumps({"n": "x" * number}), bytes(number)) for number in range(5)]
    assert letters_of(commit_of_letters(*given)) == sent


def letter_of(properties: dict[str, object], body: bytes, key: str | None = None, error: str = "why") -> DeadLetter:
    event = Event(SequenceNumber(7), "448", EPOCH, key, properties, body)
    return DeadLetter(event, "unknown", "builtins.ValueError", error, "0123456789abcdef", "waiting")


def briefly(text: str) -> str:
    return f"{len(text)} {text[:2]!a}"


def unfolded(text: str) -> str:
    """As TRANSLATE on the server does it."""
    return text.translate(str.maketrans(FOLDED, PLAIN))


HOSTILE = ["", '"', "\\", 'say "no"\\', "a\nb\r\tc", "\x1f\x01", "'; DROP", "é👩‍👩‍👧\x7f\u2028"]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_no_text_is_sent_in_a_form_that_a_server_may_leave_escaped(text: str) -> None:
    given, of_letter = values_of(commit_with({Home: [(7, 0, Home(text, text, True))]})), letter_of({}, b"", text, text)
    (row,) = orjson.loads(given["rows_of_home"])
    values = values_of(commit_of_letters(of_letter))
    (letter,) = orjson.loads(values["letters"])
    assert "\\" not in given["rows_of_home"] + values["letters"]
    assert (unfolded(row[1]), unfolded(row[2])) == (text, text)
    assert (unfolded(letter[3]), unfolded(letter[11])) == (text, text)


def test_only_rows_that_need_it_are_unfolded_by_the_server() -> None:
    plain, folded = (commit_with({Home: [(7, 0, Home("a", zone, True))]}) for zone in ("x", '"'))
    assert "TRANSLATE" not in commit_statement(plain)[0]
    assert "folded" not in values_of(plain)
    assert (values_of(folded)["folded"], values_of(folded)["plain"]) == (FOLDED, PLAIN)
    assert commit_statement(folded)[0].count("TRANSLATE") >= 4


@pytest.mark.parametrize("text", ["\x00", "a\ufdd0", "\ufffe", "\uffff", "x" * 4_001, "👩" * 2_001], ids=briefly)
def test_a_text_that_not_every_server_takes_is_refused_in_a_row_and_mended_in_a_letter(text: str) -> None:
    with pytest.raises(DataRefused, match=r"^the rows cannot be written as JSON: a text "):
        commit_statement(commit_with({Home: [(7, 0, Home("a", text, True))]}))
    (letter,) = orjson.loads(values_of(commit_of_letters(letter_of({}, b"", text)))["letters"])
    kept = unfolded(letter[3])
    assert (
        kept == text.replace(text[-1], "\ufffd") if len(text) < 10 else text.startswith(kept[:-1]) and kept[-1] == "…"
    )
    assert len(kept.encode("utf-16-le")) <= 8_000


@pytest.mark.parametrize("text", ["x" * 4_000, "👩" * 2_000, "ß" * 4_000], ids=briefly)
def test_the_longest_text_is_sent(text: str) -> None:
    assert rows_of("home", Home("a", text, True)) == [[7, "a", text, True]]


@pytest.mark.parametrize("amount", ["0.12345678901", "1E-11", "NaN", "Infinity"])
def test_a_number_that_the_server_would_round_is_refused(amount: str) -> None:
    with pytest.raises(DataRefused, match="10 decimal places"):
        commit_statement(commit_with({Price: [(7, 0, Price(Decimal(amount), 0.1, date(2026, 1, 2), True))]}))


def test_zeros_behind_the_tenth_place_are_none() -> None:
    assert rows_of("price", Price(Decimal("1.50000000000000"), 0.1, date(2026, 1, 2), True))[0][2] == "1.50000000000000"


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


def test_the_parts_of_gaps_are_arrays_and_absent_numbers_a_count() -> None:
    values = values_of(with_gap(commit_of((), first=False, letters=False)))
    assert orjson.loads(values["gaps"]) == [[6, 6, "absent"]]
    assert (values["absent"], values["first_sequence_number"]) == (1, 6)


def test_a_commit_without_gaps_sends_none() -> None:
    text, _ = commit_statement(commit_of((), first=False, letters=False))
    assert "sequence_gap" not in text
