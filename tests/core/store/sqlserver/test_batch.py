"""core/store/sqlserver/batch.py: a script is one batch of one text, and the values that go with it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import orjson
import pytest

from core.errors import DataRefused, LetterConflict
from core.letters.store import retry_script
from core.model.commits import BatchCommit
from core.model.rows import Row, appended_to, state_of
from core.settle.partition_store import batch_script
from core.store.script import Script, Step
from core.store.sqlserver.batch import UNMET, ask_batch, run_batch
from examples.home_security.transform import Home, SensorReading
from tests.fakes.odbc_driver import DECLARED
from tests.offenders import holds_for
from tests.sql.statements import (
    commit_of,
    commit_with,
    every_script,
    retry_of,
)
from tests.sql.values import EPOCH, row_of


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


DAY = date(2026, 1, 2)
PLACE = {"stream_id": 1, "partition_id": "0"}
READ = Step("read_retracted", PLACE, answers=True)
NO_LETTERS = {**PLACE, "claimed_by": "c", "transform_version": "v", "committed_at": "2026-01-01T00:00:00.000000Z"}


def text_of(*steps: Step, rehearse: bool = False) -> str:
    return run_batch(Script("a test", steps), rehearse)[0]


def values_of(script: Script | BatchCommit) -> dict[str, Any]:
    """Return the values by the variables that the text declares for them."""
    text, given = run_batch(batch_script(script) if isinstance(script, BatchCommit) else script, rehearse=False)
    plain = [str(value) if isinstance(value, str) else value for value in given]  # orjson takes no LongText
    return dict(zip(DECLARED.findall(text), plain, strict=True))


def rows_of(table: str, *rows: Row) -> list[list[Any]]:
    placed = [(7 + at, 0, row) for at, row in enumerate(rows)]
    return orjson.loads(values_of(commit_with({type(rows[0]): placed}))[f"rows_of_{table}"])


class TestTheText:
    def test_of_a_statement_that_reads_declares_its_parameters_with_their_types(self) -> None:
        text, given = ask_batch("read_checkpoint", PLACE)
        assert text.startswith("SET NOCOUNT ON;\nDECLARE @stream_id int = ?, @partition_id varchar(8000) = ?;\nSELECT ")
        assert given == [1, "0"]

    def test_declares_a_missing_value_as_null_without_a_marker(self) -> None:
        values = {"stream_id": 1, "hub_created_at": None}
        text, given = ask_batch("adopt_hub", values)
        assert "\nDECLARE @stream_id int = ?, @hub_created_at datetime2(7);\n" in text
        assert given == [1]
        adopted = Step("adopt_hub", values)
        assert run_batch(Script("a test", (adopted, adopted)), False)[1] == [1]

    def test_of_one_statement_without_a_condition_is_plain_and_the_same_as_of_a_read(self) -> None:
        values = {**PLACE, "sequence_number": 5, "anchored_at": "2026-01-01T00:00:00.000000Z"}
        script = Script("a test", (Step("anchor_partition", values, answers=True),), may_repeat=True)
        assert run_batch(script, rehearse=False) == ask_batch("anchor_partition", values)

    def test_of_one_statement_with_a_condition_or_of_a_rehearsal_is_a_transaction(self) -> None:
        claimed = Step("close_gaps", PLACE)
        assert "COMMIT TRANSACTION;" in text_of(replace(claimed, expect=1))
        assert text_of(claimed, rehearse=True).endswith("ROLLBACK TRANSACTION;")

    def test_of_a_rehearsal_whose_answer_has_no_types_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"^find_letters cannot be rehearsed: its header has no `-- answers:`"):
            text_of(Step("find_letters", {**PLACE, "sequence_numbers": "[]"}, answers=True), rehearse=True)

    def test_checks_each_step_that_expects_by_a_number_of_its_own(self) -> None:
        one = Step("count_commit", PLACE, expect=1, keeps="commit_number")
        many = Step("settle_letters", NO_LETTERS, many=[], expect=0)
        text = text_of(one, many)
        assert f"IF @@ROWCOUNT <> 1 THROW {UNMET}, 'count_commit touched" in text
        assert f"IF @@ROWCOUNT <> @expected_of_step_1 THROW {UNMET + 1}, 'settle_letters touched" in text

    def test_adds_the_steps_up_that_count_one_number(self) -> None:
        text = text_of(*[Step("close_gaps", PLACE, counts="closed")] * 2)
        assert text.count("SET @closed = @closed + @@ROWCOUNT;") == 2
        assert text.count("@closed bigint") == 1

    def test_is_the_same_object_for_scripts_of_one_shape(self) -> None:
        one, other = commit_of((Home,), first=False, letters=True), commit_of((Home,), first=False, letters=True)
        several = replace(other, settled=replace(other.settled, letters=[*other.settled.letters] * 3))
        later = replace(several, committed_at=datetime(2027, 1, 1, tzinfo=UTC))
        assert run_batch(batch_script(one), False)[0] is run_batch(batch_script(later), False)[0]
        retry = retry_of((Home,))
        more = replace(retry, claimed_by="claim-2", outcomes=retry.outcomes * 2)
        assert run_batch(retry_script(retry), False)[0] is run_batch(retry_script(more), False)[0]

    def test_names_no_class_without_rows(self) -> None:
        text, _ = run_batch(
            batch_script(commit_with({Home: [], SensorReading: [(7, 0, row_of(SensorReading))]})), False
        )
        assert "hubledger.home" not in text


class TestParameters:
    def test_that_steps_share_with_different_values_are_a_fault_of_the_script(self) -> None:
        steps = Step("count_commit", PLACE), Step("close_gaps", {**PLACE, "partition_id": "1"})
        with pytest.raises(ValueError, match=r"^close_gaps gives partition_id a different value"):
            text_of(*steps)
        gap = {"first_sequence_number": 1, "last_sequence_number": 1}
        many = [Step("settle_gap", PLACE, many=[{**gap, "status": status}]) for status in ("healed", "absent")]
        with pytest.raises(ValueError, match=r"^settle_gap gives gaps a different value"):
            text_of(*many)

    def test_that_are_missing_are_a_fault_of_the_script(self) -> None:
        with pytest.raises(KeyError, match="partition_id"):
            text_of(Step("count_commit", {"stream_id": 1}))

    def test_that_are_instants_are_texts_in_utc_without_a_zone(self) -> None:
        there = datetime(2026, 1, 1, 5, 45, 0, 1, tzinfo=timezone(timedelta(hours=5, minutes=45)))
        values = values_of(replace(commit_of((), first=True, letters=False), committed_at=there))
        assert values["committed_at"] == values["updated_at"] == "2026-01-01T00:00:00.000001"
        assert values["enqueued_at"] == "2026-01-01T00:00:00.000000"

    def test_of_a_step_of_many_that_has_none_are_an_empty_array(self) -> None:
        values = values_of(Script("a test", (Step("settle_letters", NO_LETTERS, many=[], expect=0),)))
        assert (values["letters"], values["expected_of_step_0"]) == ("[]", 0)

    def test_of_a_table_named_like_a_parameter_have_a_variable_of_their_own(self) -> None:
        assert "rows_of_version" in values_of(commit_with({Version: [(7, 0, Version("a"))]}))


class TestRows:
    def test_that_are_appended_are_arrays_of_position_and_columns(self) -> None:
        assert rows_of("sensor_reading", row_of(SensorReading)) == [
            [7, 0, "home-1", "sensor-1", "carbon_monoxide", None, 5, "2026-01-01T00:00:00.000000"]
        ]

    def test_of_several_states_of_a_key_only_the_newest_is_sent(self) -> None:
        assert rows_of("home", Home("a", "x", True), Home("b", "x", True), Home("a", "y", False)) == [
            [9, "a", "y", False],
            [8, "b", "x", True],
        ]

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
    def test_that_no_column_holds_are_refused_data(self, row: Row) -> None:
        with pytest.raises(DataRefused, match=r"^the rows cannot be written as JSON: "):
            rows_of("any", row)


class TestLetters:
    def test_are_sent_whole_with_their_bodies_in_hex(self) -> None:
        (letter,) = orjson.loads(values_of(commit_of((), first=True, letters=True))["letters"])
        assert letter == [
            7, "448", "2026-01-01T00:00:00.000000", None, "{}", b"body".hex(), 1, "unknown", "builtins.ValueError",
            "why", "0123456789abcdef", "test/1", "waiting", "2026-01-01T00:00:00.000000", "2026-01-01T00:00:00.000000",
            None, None,
        ]  # fmt: skip


@holds_for(every_script())
def test_every_step_that_expects_has_an_error_of_its_own(name: str) -> None:
    errors = [step.otherwise() for step in every_script()[name].steps if step.otherwise is not None]
    assert all(isinstance(error, Exception) and not isinstance(error, ValueError) for error in errors)
    assert not name.startswith("retry ") or {type(error) for error in errors} == {LetterConflict}


def test_a_read_gives_each_parameter_that_its_statement_declares() -> None:
    wanted: Mapping[str, Any] = {**PLACE, "sequence_numbers": "[[7]]", "more": 1}
    assert ask_batch("find_letters", wanted)[1] == [1, "0", "[[7]]"]
