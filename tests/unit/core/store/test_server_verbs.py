"""The verbs of the store over core/store/sqlserver, before a driver that fails on demand."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, ClassVar

import pytest

from core.aggregation.runs import Failure
from core.errors import (
    CommitOutcomeUnknown,
    DataRefused,
    StoreUnavailable,
)
from core.model.events import Event, PartitionId
from core.model.letters import ClaimedPosition, FoundLetter, LetterClaim, LetterHold, LetterPosition
from core.model.rows import ReferenceKey
from core.model.spans import SequenceNumber
from core.store.aggregation import Aggregations
from examples.home_security.aggregates.home_activity import HomeActivity
from examples.home_security.transform import Home
from tests.fakes.odbc_driver import DECLARED, Error, FakeDriver, fault, lost, unmet
from tests.fakes.store import Store
from tests.sql.statements import PORTION, RUN, STAGED, commit_of, every_run, move_of, replay_of, retry_of
from tests.sql.values import EPOCH, ROW_CLASSES

PARTITION = commit_of((), first=True, letters=False).partition
SEVEN = SequenceNumber(7)


def hold(*numbers: int) -> LetterHold:
    return LetterHold(commit_of((), first=False, letters=False).state, tuple(map(SequenceNumber, numbers)), "claim-1")


def values(driver: FakeDriver) -> dict[str, Any]:
    """Return the values of the last batch by their variables."""
    text, given = driver.server.executed[-1]
    return dict(zip(DECLARED.findall(text), given, strict=True))


class TestReferences:
    def test_are_asked_for_in_one_call_by_keys_as_they_are(self, store: Store, driver: FakeDriver) -> None:
        store.read_references([])
        keys = [ReferenceKey(Home, (key,)) for key in ("a", '"\\', "\x00", "x" * 5_000)]
        before = len(driver.server.executed)
        assert dict(store.read_references(keys)) == {}
        checked, columns, asked = driver.server.executed[before:]
        assert "schema_migration" in checked[0]
        assert "sys.columns" in columns[0]
        assert asked[1] == [f'[["a"], ["\\"\\\\"], ["\\u0000"], ["{"x" * 5_000}"]]']

    @pytest.mark.parametrize(
        "key",
        ["\ud800", 2**63, -(2**63) - 1, float("nan"), Decimal("Infinity"), datetime(2026, 1, 1)],  # noqa: DTZ001
        ids=ascii,
    )
    def test_that_no_row_can_have_are_absent_and_not_asked_for(
        self, store: Store, driver: FakeDriver, key: object
    ) -> None:
        assert dict(store.read_references([ReferenceKey(Home, (key,)), ReferenceKey(Home, ("a",))])) == {}
        assert driver.server.executed[-1][1] == ['[["a"]]']
        calls = len(driver.server.executed)
        assert dict(store.read_references([ReferenceKey(Home, (key,))])) == {}
        assert len(driver.server.executed) == calls


class TestLetters:
    def test_of_a_claim_are_positions(self, store: Store, committed: FakeDriver) -> None:
        committed.server.answers["UPDATE TOP (@most) d"] = [
            ("3", 7, 0),
            ("0", 9, 2),
        ]  # the second step of the batch reads
        there = datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
        until = there + timedelta(seconds=300)
        got = store.claim_letters(LetterClaim(PARTITION.stream, "claim-1", there, until, until, 1_600))
        assert got == (
            ClaimedPosition(LetterPosition(PartitionId("3"), SEVEN), 0),
            ClaimedPosition(LetterPosition(PartitionId("0"), SequenceNumber(9)), 2),
        )
        assert values(committed) == {
            "stream_id": 1,
            "claimed_by": "claim-1",
            "claimed_at": "2026-01-01T00:00:00.000000",
            "claimed_until": "2026-01-01T00:05:00.000000",
            "latest": "2026-01-01T00:05:00.000000",
            "most": 1_600,
        }

    def test_that_are_claimed_are_read_whole(self, store: Store, committed: FakeDriver) -> None:
        row = (7, "448", "2026-01-01T00:00:00.0000000", "key", '{"a": [1]}', b"\x00\xff", True, 3, 1)
        committed.server.answers["SET claimed_by = @run"] = [row]
        (read,) = store.begin_chunk(hold(7, 9), "run-1")
        assert read.event == Event(SEVEN, "448", EPOCH, "key", {"a": [1]}, b"\x00\xff")
        assert (read.body_kept, read.attempts, read.lost_claims) == (True, 3, 1)
        given = values(committed)
        assert (given["sequence_numbers"], given["claimed_by"], given["run"]) == ("[[7], [9]]", "claim-1", "run-1")

    def test_are_marked_before_a_lone_try(self, store: Store, committed: FakeDriver) -> None:
        store.begin_lone_try(hold(7), EPOCH, EPOCH + timedelta(seconds=300))
        text, given = committed.server.executed[-1]
        assert "SET began_at = @began_at" in text
        assert given[-2:] == ["2026-01-01T00:00:00.000000", "2026-01-01T00:05:00.000000"]

    def test_are_moved_and_found_as_they_stand(self, store: Store, committed: FakeDriver) -> None:
        committed.server.answers["d.claimed_by"] = [(7, "discarded", "move-1"), (9, "resolved", None)]
        found = (FoundLetter(SEVEN, "discarded", "move-1"), FoundLetter(SequenceNumber(9), "resolved", None))
        assert store.move_letters(move_of("discard")) == store.find_letters(hold(7, 9)) == found

    def test_of_a_retry_count_on_from_the_last_commit(self, store: Store, committed: FakeDriver) -> None:
        assert store.commit_retry(retry_of(())) == 2
        assert committed.server.checkpoints["0"][:4] == (7, "448", "2026-01-01T00:00:00", 2)

    @pytest.mark.parametrize(
        ("text", "due"),
        [(None, None), ("2026-01-01T00:00:00.0000010", datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC))],
    )
    def test_are_due_next_at_an_aware_instant_or_never(
        self, store: Store, committed: FakeDriver, text: str | None, due: datetime | None
    ) -> None:
        committed.server.answers["MIN(d.due_at)"] = [(text,)]
        assert store.next_due_at(PARTITION.stream, EPOCH) == due


class TestARehearsal:
    ROW = ("home", 7, 0, '{"home_id": "home-1", "time_zone": "Europe/Berlin", "armed": true}')

    @pytest.mark.parametrize("rows", [[], [ROW]], ids=["takes nothing away", "takes a row away"])
    def test_answers_with_what_it_takes_away_and_what_it_counted(
        self, store: Store, committed: FakeDriver, rows: list[tuple[Any, ...]]
    ) -> None:
        committed.server.answers["FROM hubledger.retracted_row AS r"] = rows
        rehearsal = store.rehearse_replay(replay_of(ROW_CLASSES, letters=True))
        home = Home("home-1", "Europe/Berlin", True)
        assert [(one.sequence_number, one.ordinal, one.row) for one in rehearsal.retracted] == [(7, 0, home)] * len(
            rows
        )
        assert (rehearsal.letters_added, rehearsal.letters_resolved) == (0, 0)
        assert "ROLLBACK TRANSACTION;" in committed.server.executed[-1][0]


class TestAnAggregation:
    @pytest.fixture
    def runs(self, store: Store) -> Aggregations:
        return Aggregations(store.database)

    WRITES: ClassVar[dict[str, tuple[str, Callable[[Aggregations], bool]]]] = {
        "run plan": ("number_run", lambda runs: runs.open_run(RUN)),
        "run slices": ("mark_slices", lambda runs: runs.commit_portion(RUN, STAGED, PORTION)),
        "run result": ("move_cut", lambda runs: runs.close_run(RUN, STAGED, EPOCH)),
        "run ended": ("fail_run", lambda runs: runs.fail_run(RUN, "why", EPOCH, Failure("r", 1, 1, EPOCH, "why"))),
    }

    @pytest.mark.parametrize("name", WRITES)
    def test_that_was_overtaken_is_false_and_keeps_the_connection(
        self, runs: Aggregations, driver: FakeDriver, name: str
    ) -> None:
        guard, write_run = self.WRITES[name]
        assert write_run(runs)
        driver.server.refused = ("aggregation_run", unmet(every_run()[name][0], guard))
        assert not write_run(runs)
        assert len(driver.open) == 1

    @pytest.mark.parametrize("name", WRITES)
    @pytest.mark.parametrize(
        ("error", "raised"),
        [
            (lost(), CommitOutcomeUnknown),
            (fault("40001", 1205), StoreUnavailable),
            (fault("22001", 2628), DataRefused),
        ],
        ids=["lost", "a deadlock", "too long"],
    )
    def test_that_fails_says_how(
        self, runs: Aggregations, driver: FakeDriver, name: str, error: Error, raised: type[Exception]
    ) -> None:
        driver.server.refused = ("aggregation_run", error)
        with pytest.raises(raised):
            self.WRITES[name][1](runs)
        assert len(driver.open) == int(raised is not CommitOutcomeUnknown)

    def test_touches_what_comes_back(self, runs: Aggregations) -> None:
        assert not runs.note_submitted(RUN, "job", EPOCH)
        assert runs.read_staged("r") is None
        assert runs.read_runs(RUN.job, 9, 9) == runs.read_committed_runs(RUN.job, 0) == ()
        assert runs.read_windows(HomeActivity, "home-1", EPOCH, EPOCH) == ()
