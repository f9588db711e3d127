"""core/store/server_letters.py before a driver that fails on demand: one batch for a retry, one for a move."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from core.errors import (
    CommitOutcomeUnknown,
    DataRefused,
    LetterConflict,
    SchemaMismatch,
    StoreUnavailable,
)
from core.model.events import PartitionId
from core.model.letters import (
    ClaimedPosition,
    FoundLetter,
    LetterClaim,
    LetterHold,
    LetterOutcome,
    LetterPosition,
    Move,
    RetryCommit,
)
from core.model.spans import SequenceNumber
from core.store.odbc import Access
from core.store.server_letters import move_statement, retry_statement
from core.store.sqlserver import SqlServerStore
from core.transforms.home_security import Home, SensorReading
from tests.fakes.odbc_driver import DECLARED, Error, FakeDriver, When, fault, lost
from tests.sql.statements import MOVED, commit_of, move_of, retry_of
from tests.sql.values import EPOCH, ROW_CLASSES, row_of

CONNECTION = "SERVER=host;UID=app;PWD=secret"
PARTITION = commit_of((), first=True, letters=False).partition
SEVEN = SequenceNumber(7)


@pytest.fixture
def driver() -> FakeDriver:
    """Before a server with one commit of the partition, whose letter 7 is claimed."""
    driver = FakeDriver()
    driver.server.stream_id = 1
    driver.server.checkpoints["0"] = (7, "448", "2026-01-01T00:00:00", 1, "6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11")
    driver.server.held = {7}
    return driver


@pytest.fixture
def store(driver: FakeDriver) -> SqlServerStore:
    return SqlServerStore(CONNECTION, access=Access(lambda: driver))


def values_of(text: str, given: list[Any]) -> dict[str, Any]:
    return dict(zip(DECLARED.findall(text), given, strict=True))


def retry_values(commit: RetryCommit) -> dict[str, Any]:
    """The values by the variables that the text declares for them."""
    return values_of(*retry_statement(commit))


def hold(*numbers: int) -> LetterHold:
    state = commit_of((), first=False, letters=False).state
    return LetterHold(state, tuple(map(SequenceNumber, numbers)), "claim-1")


def answer(driver: FakeDriver, part: str, *rows: tuple[Any, ...]) -> None:
    driver.server.answers[part] = list(rows)


class TestARetry:
    def test_counts_on_and_gives_its_number(self, store: SqlServerStore, driver: FakeDriver) -> None:
        assert store.commit_retry(retry_of(())) == 2
        assert driver.server.checkpoints["0"][:4] == (7, "448", "2026-01-01T00:00:00", 2)

    def test_is_one_call_whatever_it_carries(self, store: SqlServerStore, driver: FakeDriver) -> None:
        store.read_partition(PARTITION)
        before = len(driver.server.executed)
        store.commit_retry(retry_of(ROW_CLASSES))
        assert len(driver.server.executed) - before == 1

    def test_of_letters_that_were_taken_conflicts_and_keeps_the_connection(
        self, store: SqlServerStore, driver: FakeDriver
    ) -> None:
        driver.server.held = set()
        with pytest.raises(LetterConflict, match="claim-1"):
            store.commit_retry(retry_of(()))
        assert len(driver.open) == 1

    @pytest.mark.parametrize("when", [When.AT_ONCE, When.LATE], ids=["at once", "at nextset"])
    @pytest.mark.parametrize(
        ("error", "named", "kept"),
        [
            (fault("42000", 51002), LetterConflict, True),
            (fault("22001", 2628), DataRefused, True),
            (fault("40001", 1205), StoreUnavailable, False),
            (fault("42S02", 208), SchemaMismatch, False),
            (lost(), CommitOutcomeUnknown, False),
            (Error("HYT00", "[HYT00] Query timeout expired (0) (SQLExecute)"), CommitOutcomeUnknown, False),
        ],
        ids=["taken", "too long", "a deadlock", "a missing table", "the line cut", "too slow"],
    )
    def test_that_fails_is_named_and_a_doubtful_connection_is_dropped(
        self,
        store: SqlServerStore,
        driver: FakeDriver,
        error: Error,
        named: type[Exception],
        kept: bool,
        when: When,
    ) -> None:
        driver.server.faults = [(when, error)]
        with pytest.raises(named):
            store.commit_retry(retry_of(()))
        assert len(driver.open) == int(kept)
        assert store.commit_retry(retry_of(())) == 2

    def test_that_another_partition_inserts_the_same_state_is_passing(
        self, store: SqlServerStore, driver: FakeDriver
    ) -> None:
        words = "Violation of PRIMARY KEY constraint 'pk_home'. Cannot insert duplicate key in object 'hubledger.home'."
        driver.server.faults = [(When.AT_ONCE, fault("23000", 2627, words))]
        with pytest.raises(StoreUnavailable):
            store.commit_retry(retry_of((Home,)))

    def test_declares_every_value_once(self) -> None:
        text, given = retry_statement(retry_of(ROW_CLASSES))
        names = DECLARED.findall(text)
        assert len(names) == len(set(names)) == len(given) == text.count("?")
        values = values_of(text, given)
        assert (values["claimed_by"], values["touched_by"], values["letter_count"]) == ("claim-1", "claim-1", 1)
        assert (values["kind"], values["why"], values["done_by"]) == ("retry", "", "invocation-2")
        assert (values["sequence_numbers"], values["committed_at"]) == ("[[7]]", "2026-01-01T00:00:00.000000")

    def test_sends_an_outcome_as_an_array(self) -> None:
        (failed,) = json.loads(retry_values(retry_of(()))["letters"])
        assert failed == [
            7, "waiting", 1, "2026-01-01T00:00:00.000000", "unknown", "builtins.ValueError", "why", "0123456789abcdef",
            None,
        ]  # fmt: skip
        (resolved,) = json.loads(retry_values(retry_of((Home,)))["letters"])
        assert resolved == [7, "resolved", 1, None, None, None, None, None, "its rows were written"]

    def test_counts_what_was_not_resolved_as_dead_lettered(self) -> None:
        commit = retry_of((SensorReading,))
        more = (*commit.outcomes, LetterOutcome(SequenceNumber(9), "exhausted", why="gone", attempted=False))
        values = retry_values(replace(commit, outcomes=more))
        assert (values["written"], values["filtered"], values["dead_lettered"], values["rows_written"]) == (1, 0, 1, 1)
        assert (values["first_sequence_number"], values["last_sequence_number"]) == (7, 9)

    def test_shares_its_text_with_others_of_its_shape(self) -> None:
        one = retry_of((Home,))
        assert retry_statement(one)[0] is retry_statement(replace(one, claimed_by="claim-2"))[0]

    def test_with_a_row_that_json_cannot_hold_is_refused_data(self) -> None:
        commit = retry_of((SensorReading,))
        bad = replace(row_of(SensorReading), ppm=2**64)
        with pytest.raises(DataRefused, match=r"^the rows cannot be written as JSON: "):
            retry_statement(replace(commit, settled=replace(commit.settled, rows={SensorReading: [(7, 0, bad)]})))


class TestAClaim:
    def test_is_one_statement_and_gives_positions(self, store: SqlServerStore, driver: FakeDriver) -> None:
        answer(driver, "UPDATE TOP (@most) d", ("3", 7, 0), ("0", 9, 2))
        there = datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
        got = store.claim_letters(
            LetterClaim(PARTITION.stream, "claim-1", there, there + timedelta(seconds=300), 1_600)
        )
        assert got == (
            ClaimedPosition(LetterPosition(PartitionId("3"), SEVEN), 0),
            ClaimedPosition(LetterPosition(PartitionId("0"), SequenceNumber(9)), 2),
        )
        values = values_of(driver.server.executed[-1][0], list(driver.server.executed[-1][1]))
        assert values == {
            "stream_id": 1,
            "claimed_by": "claim-1",
            "claimed_at": "2026-01-01T00:00:00.000000",
            "claimed_until": "2026-01-01T00:05:00.000000",
            "most": 1_600,
        }

    def test_whose_answer_is_lost_is_unavailable(self, store: SqlServerStore, driver: FakeDriver) -> None:
        driver.server.refused = ("UPDATE TOP (@most) d", lost())
        with pytest.raises(StoreUnavailable):
            store.claim_letters(LetterClaim(PARTITION.stream, "claim-1", EPOCH, EPOCH, 1))

    def test_is_read_whole(self, store: SqlServerStore, driver: FakeDriver) -> None:
        row = (7, "448", "2026-01-01T00:00:00.0000000", "key", '{"a": [1]}', b"\x00\xff", True, 3, 1)
        answer(driver, "d.body, d.body_kept", row)
        (read,) = store.read_claimed(hold(7, 9))
        assert (read.event.sequence_number, read.event.offset, read.event.enqueued_at) == (7, "448", EPOCH)
        assert (read.event.partition_key, dict(read.event.properties), read.event.body) == (
            "key",
            {"a": [1]},
            b"\x00\xff",
        )
        assert (read.body_kept, read.attempts, read.lost_claims) == (True, 3, 1)
        assert driver.server.executed[-1][1] == [1, "0", "[[7], [9]]", "claim-1"]

    def test_is_marked_before_a_lone_try(self, store: SqlServerStore, driver: FakeDriver) -> None:
        store.begin_lone_try(hold(7), EPOCH, EPOCH + timedelta(seconds=300))
        text, given = driver.server.executed[-1]
        assert "SET began_at = @began_at" in text
        assert given[-2:] == ["2026-01-01T00:00:00.000000", "2026-01-01T00:05:00.000000"]


class TestAMove:
    def test_is_one_call_and_gives_the_letters_as_they_stand(self, store: SqlServerStore, driver: FakeDriver) -> None:
        answer(driver, "CHARINDEX(", (7, "discarded", "move-1"), (9, "resolved", None))
        store.read_partition(PARTITION)
        before = len(driver.server.executed)
        found = store.move_letters(move_of("discard"))
        assert found == (
            FoundLetter(SEVEN, "discarded", "move-1"),
            FoundLetter(SequenceNumber(9), "resolved", None),
        )
        assert len(driver.server.executed) - before == 2  # the stream is looked up

    def test_names_where_it_may_come_from_and_goes_to(self) -> None:
        values = values_of(*move_statement(move_of("requeue"), 1))
        assert (values["sources"], values["status"]) == (",waiting,exhausted,", "waiting")
        assert (values["move_id"], values["claimed_by"]) == ("move-1", "")
        assert (values["done_by"], values["why"], values["kind"]) == ("somebody", "because", "requeue")

    @pytest.mark.parametrize("move", MOVED)
    def test_leaves_an_attempt_unless_it_is_a_release(self, move: Move) -> None:
        text, _ = move_statement(move_of(move), 1)
        assert ("dead_letter_attempt" in text) is (move != "release")

    def test_of_a_keeper_names_its_claim(self) -> None:
        values = values_of(*move_statement(replace(move_of("release"), claimed_by="claim-1"), 1))
        assert values["claimed_by"] == "claim-1"


def test_letters_are_found_by_number(store: SqlServerStore, driver: FakeDriver) -> None:
    answer(driver, "SELECT d.sequence_number, d.status, d.claimed_by", (7, "waiting", "claim-0"))
    assert store.find_letters(hold(7)) == (FoundLetter(SEVEN, "waiting", "claim-0"),)


@pytest.mark.parametrize(
    ("text", "due"),
    [(None, None), ("2026-01-01T00:00:00.0000010", datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC))],
)
def test_the_next_one_due_is_an_aware_instant_or_none(
    store: SqlServerStore, driver: FakeDriver, text: str | None, due: datetime | None
) -> None:
    answer(driver, "MIN(d.due_at)", (text,))
    assert store.next_due_at(PARTITION.stream) == due


def test_a_schema_of_another_name_is_named_everywhere() -> None:
    driver = FakeDriver()
    driver.server.schema, driver.server.stream_id = "trial_7", 1
    driver.server.checkpoints["0"] = (7, "448", "2026-01-01T00:00:00", 1, "id")
    driver.server.held = {7}
    store = SqlServerStore(CONNECTION, schema="trial_7", access=Access(lambda: driver))
    answer(driver, "MIN(d.due_at)", (None,))
    store.claim_letters(LetterClaim(PARTITION.stream, "claim-1", EPOCH, EPOCH, 1))
    store.read_claimed(hold(7))
    store.begin_lone_try(hold(7), EPOCH, EPOCH)
    store.commit_retry(retry_of(ROW_CLASSES))
    store.find_letters(hold(7))
    store.move_letters(move_of("discard"))
    store.next_due_at(PARTITION.stream)
    assert [text for text, _ in driver.server.executed if "hubledger." in text] == []
