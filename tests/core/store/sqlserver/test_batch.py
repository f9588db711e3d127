import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.errors import DataRefused, LetterConflict
from core.letters.store import retry_script
from core.model.commits import BatchCommit
from core.model.rows import Row, appended_to, state_of
from core.settle.partition_store import batch_script
from core.store.script import Script, Step
from core.store.sqlserver import statements
from core.store.sqlserver.batch import UNMET, ask_batch, run_batch
from core.store.sqlserver.statements import many_json, rows_json, server_instant_text, without_zone
from examples.home_security.transform import Home, SensorReading
from tests.fakes.odbc_driver import DECLARED
from tests.offenders import holds_for
from tests.sql.statements import commit_of, commit_with, every_script, retry_of
from tests.sql.values import DECIMALS, EPOCH, LARGEST_DECIMAL, row_of


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


DAY, NOON = date(2026, 1, 2), datetime(2026, 1, 2, 12, tzinfo=UTC)
PLACE = {"stream_id": 1, "partition_id": "0"}
COUNTED = {**PLACE, "known_erasures": 0}
NO_LETTERS = {**PLACE, "claimed_by": "c", "transform_version": "v", "committed_at": "2026-01-01T00:00:00.000000Z"}
SENDABLE = st.text(st.characters(exclude_categories=["Cs"]))


def batch_of(*steps: Step, rehearse: bool = False) -> tuple[str, Sequence[Any]]:
    return run_batch(Script("a test", steps), rehearse)


def values_of(script: Script | BatchCommit) -> dict[str, Any]:
    text, given = run_batch(batch_script(script) if isinstance(script, BatchCommit) else script, rehearse=False)
    plain = [str(value) if isinstance(value, str) else value for value in given]  # orjson takes no LongText
    return dict(zip(DECLARED.findall(text), plain, strict=True))


def rows_of(table: str, *rows: Row) -> list[list[Any]]:
    placed = [(7 + at, 0, row) for at, row in enumerate(rows)]
    return orjson.loads(values_of(commit_with({type(rows[0]): placed}))[f"rows_of_{table}"])


def test_a_read_declares_its_parameters_with_their_types_and_a_missing_value_as_null_without_a_marker() -> None:
    text, values = ask_batch("read_checkpoint", PLACE)
    assert text.startswith("SET NOCOUNT ON;\nDECLARE @stream_id int = ?, @partition_id varchar(8000) = ?;\nSELECT ")
    assert values == [1, "0"]
    assert ask_batch("find_letters", {**PLACE, "sequence_numbers": "[[7]]", "more": 1})[1] == [1, "0", "[[7]]"]
    missing = {"stream_id": 1, "hub_created_at": None}
    text, values = ask_batch("adopt_hub", missing)
    assert "\nDECLARE @stream_id int = ?, @hub_created_at datetime2(6);\n" in text
    assert values == batch_of(*[Step("adopt_hub", missing)] * 2)[1] == [1]


def test_one_statement_without_a_condition_is_plain_and_any_other_or_a_rehearsal_is_a_transaction() -> None:
    anchor = {**PLACE, "sequence_number": 5, "anchored_at": "2026-01-01T00:00:00.000000Z"}
    script = Script("a test", (Step("anchor_partition", anchor, answers=True),), may_repeat=True)
    assert run_batch(script, rehearse=False) == ask_batch("anchor_partition", anchor)
    claimed = Step("close_gaps", PLACE)
    assert "COMMIT TRANSACTION;" in batch_of(replace(claimed, expect=1))[0]
    assert batch_of(claimed, rehearse=True)[0].endswith("ROLLBACK TRANSACTION;")
    untyped = Step("find_letters", {**PLACE, "sequence_numbers": "[]"}, answers=True)
    with pytest.raises(ValueError, match=r"^find_letters cannot be rehearsed: its header has no `-- answers:`"):
        batch_of(untyped, rehearse=True)


def test_each_step_that_expects_is_checked_by_a_number_of_its_own_and_those_that_count_one_number_add_up() -> None:
    one = Step("count_commit", COUNTED, expect=1, keeps="commit_number")
    text = batch_of(one, Step("settle_letters", NO_LETTERS, many=[], expect=0))[0]
    assert f"IF @@ROWCOUNT <> 1 THROW {UNMET}, 'count_commit touched" in text
    assert f"IF @@ROWCOUNT <> @expected_of_step_1 THROW {UNMET + 1}, 'settle_letters touched" in text
    text = batch_of(*[Step("close_gaps", PLACE, counts="closed")] * 2)[0]
    assert text.count("SET @closed = @closed + @@ROWCOUNT;") == 2
    assert text.count("@closed bigint") == 1


@holds_for(every_script())
def test_every_step_that_expects_has_an_error_of_its_own(name: str) -> None:
    errors = [step.otherwise() for step in every_script()[name].steps if step.otherwise is not None]
    assert all(isinstance(error, Exception) and not isinstance(error, ValueError) for error in errors)
    assert not name.startswith("retry ") or {type(error) for error in errors} == {LetterConflict}


def test_scripts_of_one_shape_have_the_same_text_object_which_names_no_class_without_rows() -> None:
    one, other = commit_of((Home,), first=False, letters=True), commit_of((Home,), first=False, letters=True)
    several = replace(other, settled=replace(other.settled, letters=[*other.settled.letters] * 3))
    later = replace(several, committed_at=datetime(2027, 1, 1, tzinfo=UTC))
    assert run_batch(batch_script(one), False)[0] is run_batch(batch_script(later), False)[0]
    retry = retry_of((Home,))
    more = replace(retry, claimed_by="claim-2", outcomes=retry.outcomes * 2)
    assert run_batch(retry_script(retry), False)[0] is run_batch(retry_script(more), False)[0]
    without = commit_with({Home: [], SensorReading: [(7, 0, row_of(SensorReading))]})
    assert "hubledger.home" not in run_batch(batch_script(without), False)[0]


def test_parameters_that_are_missing_or_that_steps_share_with_different_values_are_a_fault_of_the_script() -> None:
    with pytest.raises(KeyError, match="partition_id"):
        batch_of(Step("count_commit", {"stream_id": 1, "known_erasures": 0}))
    with pytest.raises(ValueError, match=r"^close_gaps gives partition_id a different value"):
        batch_of(Step("count_commit", COUNTED), Step("close_gaps", {**PLACE, "partition_id": "1"}))
    gap = {"first_sequence_number": 1, "last_sequence_number": 1}
    many = [Step("settle_gap", PLACE, many=[{**gap, "status": status}]) for status in ("healed", "absent")]
    with pytest.raises(ValueError, match=r"^settle_gap gives gaps a different value"):
        batch_of(*many)


def test_instants_are_texts_in_utc_without_a_zone() -> None:
    there = datetime(2026, 1, 1, 5, 45, 0, 1, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    values = values_of(replace(commit_of((), first=True, letters=False), committed_at=there))
    assert values["committed_at"] == values["updated_at"] == "2026-01-01T00:00:00.000001"
    assert values["enqueued_at"] == "2026-01-01T00:00:00.000000"
    text = server_instant_text(NOON)
    assert text == "2026-01-02T12:00:00.000000"
    assert statements.server_instant_texts([NOON, NOON]) == [text, text]
    assert [without_zone(value) for value in (f"{text}Z", None, 7)] == [text, None, 7]


def test_further_parameters_are_an_array_in_the_order_of_the_columns_with_bytes_in_hex() -> None:
    many = [{"body": b"\x00\xff", "due_at": "2026-01-02T12:00:00.000000Z", "error": "at Z", "more": 1}]
    columns = ("error", "due_at", "body")
    assert many_json(many, columns) == '[["at Z","2026-01-02T12:00:00.000000","00ff"]]'
    assert many_json([], columns) == "[]"
    none = values_of(Script("a test", (Step("settle_letters", NO_LETTERS, many=[], expect=0),)))
    assert (none["letters"], none["expected_of_step_0"]) == ("[]", 0)
    at = "2026-01-01T00:00:00.000000"
    (letter,) = orjson.loads(values_of(commit_of((), first=True, letters=True))["letters"])
    assert letter[:8] == [7, "448", at, None, "{}", b"body".hex(), 1, "unknown"]
    error = ["builtins.ValueError", "why", "0123456789abcdef", "test/1"]
    assert letter[8:] == [*error, "waiting", at, at, None, None]


def test_rows_are_arrays_of_position_and_columns_and_of_several_states_of_a_key_only_the_newest_is_sent() -> None:
    reading = [7, 0, "home-1", "sensor-1", "carbon_monoxide", None, 5, "2026-01-01T00:00:00.000000"]
    assert rows_of("sensor_reading", row_of(SensorReading)) == [reading]
    homes = (Home("a", "x", True), Home("b", "x", True), Home("a", "y", False))
    assert rows_of("home", *homes) == [[9, "a", "y", False], [8, "b", "x", True]]
    assert "rows_of_version" in values_of(commit_with({Version: [(7, 0, Version("a"))]}))  # a parameter is named so


@pytest.mark.parametrize(
    "row",
    [
        Home("\ud800", "x", True),
        SensorReading("a", "b", "c", None, 2**64, EPOCH),
        SensorReading("a", "b", "c", None, -(2**63) - 1, EPOCH),
        SensorReading("a", "b", "c", None, 1, datetime(2026, 1, 1)),  # noqa: DTZ001
        SensorReading("a", "b", "c", None, 1, None),  # type: ignore[arg-type]
        SensorReading("a", "b", "c", b"bytes", 1, EPOCH),  # type: ignore[arg-type]
        Price(Decimal(1), 0.1, "today", True),  # type: ignore[arg-type]
        *(Price(Decimal(1), ratio, DAY, True) for ratio in (float("nan"), float("inf"), float("-inf"))),
        *(Price(Decimal(1), ratio, DAY, True) for ratio in (5e-324, -2.225073858507201e-308)),
        SensorReading("a", "b", "c", None, float("nan"), EPOCH),  # type: ignore[arg-type]
        Price(Decimal(1), 0.1, DAY, float("nan")),  # type: ignore[arg-type]
        Price(float("-inf"), 0.1, DAY, True),  # type: ignore[arg-type]
        *(Price(Decimal(text), 0.1, DAY, True) for text in ("0.12345678901", "1E-11", "NaN", "Infinity")),
        Home("home-1 ", "Europe/Berlin", True),
    ],
    ids=str,
)
def test_a_row_that_no_column_holds_is_refused_data(row: Row) -> None:
    with pytest.raises(DataRefused, match=r"^the rows cannot be written as JSON: "):
        rows_of("any", row)


@given(st.lists(st.tuples(SENDABLE, st.integers(-(2**63), 2**63 - 1), st.none(), st.booleans()), min_size=1))
@example([("x" * 5_000, 0, None, True), ('"' * 5_000, 0, None, True), ("👩‍👩‍👧" * 2_000, 0, None, True)])
@example([("\n\r\t\x1f\\", 0, None, True), ("\x00", 0, None, True), ("\ufdd0\ufffe\uffff\u2028\x7f", 0, None, True)])
def test_rows_are_sent_as_they_are_whatever_their_texts_say(rows: list[tuple[str, int, None, bool]]) -> None:
    assert json.loads(rows_json(rows)) == [list(row) for row in rows]


def test_values_are_written_as_t_sql_reads_them_and_one_without_a_form_is_refused() -> None:
    row = [datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), DAY, Decimal("1E+3"), Decimal("-0.1"), 0.5, None]
    assert rows_json([row]) == '[["2026-01-02T03:04:05.000006","2026-01-02","1000","-0.1",0.5,null]]'
    for text in ("0.0000000001", "0.10000000000000", "-0", "1E+20", "1E-10"):
        assert Decimal(json.loads(rows_json([[Decimal(text)]]))[0][0]) == Decimal(text)
    rounded = map(Decimal, ("0.00000000001", "NaN", "Infinity", "-Infinity", "1E-11"))
    for value in (*rounded, object(), b"bytes", 2**64, datetime(2026, 1, 1)):  # noqa: DTZ001
        with pytest.raises(DataRefused):
            rows_json([[value]])


@given(DECIMALS)
@example(LARGEST_DECIMAL)
@example(LARGEST_DECIMAL.copy_negate())
def test_every_decimal_that_a_server_holds_is_sent_with_all_its_digits(number: Decimal) -> None:
    ((text,),) = json.loads(rows_json([[number]]))
    assert (Decimal(text), len(text.lstrip("-").replace(".", "")) <= 38) == (number, True)
