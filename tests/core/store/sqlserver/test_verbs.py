"""The verbs of the store over core/store/sqlserver, before a driver that fails on demand."""

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from core.aggregation.runs import Failure
from core.aggregation.store import Aggregations
from core.model.events import Event, SequenceNumber
from core.model.letters import LetterHold
from examples.home_security.transform import Home
from tests.fakes.odbc_driver import DECLARED, FakeDriver, unmet
from tests.fakes.store import Store
from tests.sql.statements import PORTION, RUN, STAGED, commit_of, every_run, replay_of
from tests.sql.values import EPOCH, ROW_CLASSES

SEVEN = SequenceNumber(7)
FAILURE = Failure("r", 1, 1, EPOCH, "why")


def hold(*numbers: int) -> LetterHold:
    return LetterHold(commit_of((), first=False, letters=False).state, tuple(map(SequenceNumber, numbers)), "claim-1")


def values(driver: FakeDriver) -> dict[str, Any]:
    """Return the values of the last batch by their variables."""
    text, given = driver.server.executed[-1]
    return dict(zip(DECLARED.findall(text), given, strict=True))


class TestLetters:
    def test_that_are_claimed_are_read_whole(self, store: Store, committed: FakeDriver) -> None:
        row = (7, "448", "2026-01-01T00:00:00.0000000", "key", '{"a": [1]}', b"\x00\xff", True, 3, 1)
        committed.server.answers["SET claimed_by = @run"] = [row]
        (read,) = store.begin_chunk(hold(7, 9), "run-1")
        assert read.event == Event(SEVEN, "448", EPOCH, "key", {"a": [1]}, b"\x00\xff")
        assert (read.body_kept, read.attempts, read.lost_claims) == (True, 3, 1)
        given = values(committed)
        assert (given["sequence_numbers"], given["claimed_by"], given["run"]) == ("[[7], [9]]", "claim-1", "run-1")


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
        "run ended": (
            "fail_run",
            lambda runs: runs.fail_run(RUN, "why", EPOCH, FAILURE),
        ),
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
