"""Databases that do something else at a call: faults on demand, notes of the calls, or a time of their own."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from enum import Enum, auto
from typing import Any
from uuid import UUID

from core.errors import CommitOutcomeUnknown, StoreUnavailable
from core.model.commits import BatchCommit
from core.store.columns import instant_text
from core.store.database import Database
from core.store.script import Named, Outcome, Script
from tests.fakes.store import Store


class OverDatabase:
    """Any Database, as it is: each double of this file changes some of its calls."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        return self._database.ask(statement, **values)

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        return self._database.run(script, rehearse)

    def close(self) -> None:
        self._database.close()


class NotedDatabase(OverDatabase):
    """A database that notes its calls, each by its first statement. Those that are `out` get no answer."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.calls: list[str] = []
        self.out: set[str] = set()

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        self._note(statement)
        return super().ask(statement, **values)

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        self._note(script.steps[0].statement)
        return super().run(script, rehearse)

    def _note(self, statement: Named) -> None:
        self.calls.append(str(statement))
        if statement in self.out:
            raise StoreUnavailable("the database does not answer")


class TimedDatabase(OverDatabase):
    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        super().__init__(database)
        self._now = now

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        return [(instant_text(self._now()),)] if statement == "read_time" else super().ask(statement, **values)


class Fault(Enum):
    """The fault of one call. Reads have only NOT_REACHED and KILLED."""

    NOT_REACHED = auto()  # StoreUnavailable, nothing written
    UNANSWERED = auto()  # committed, and the answer lost
    LOST = auto()  # not committed, and the answer lost
    RIVAL = auto()  # another owner commits first; before a call of letters, `meanwhile` runs
    KILLED = auto()  # the process dies before it
    KILLED_AFTER = auto()  # the process dies when it is committed


class Killed(KeyboardInterrupt):
    """The process died. Only the database is left."""


def rival_takes_all(store: Store, commit: BatchCommit) -> None:
    store.commit_batch(replace(commit, commit_id=UUID(int=commit.commit_id.int ^ 1), invocation_id="rival"))


# The counted calls, each named by its statement: the first of a script, or the one that reads.
COMMITS = {"open_checkpoint": "commit_batch", "advance_checkpoint": "commit_batch"}
READS = {
    "read_checkpoint": "read_partition",
    "select_states": "read_references",
    "anchor_partition": "anchor_partition",
    "note_gap_again": "note_gap",
    "close_gaps": "close_gaps",
}
LETTERS = {
    "claim_letters": "claim_letters",
    "begin_chunk": "begin_chunk",
    "begin_lone_try": "begin_lone_try",
    "count_commit": "commit_retry",
    "find_letters": "find_letters",
    "move_letters": "move_letters",
    "take_freed_letters": "take_freed",
    "next_due_at": "next_due_at",
}
UNKNOWN = ("commit_retry", "move_letters")  # a lost answer to these says so


class FaultyDatabase(OverDatabase):
    """Any Database. Faults have one entry for each call to come, by kind of call, and later calls have none."""

    def __init__(
        self,
        database: Database,
        *,
        on_commit: Iterable[Fault | None] = (),
        on_read: Iterable[Fault | None] = (),
        on_letters: Iterable[Fault | None] = (),
        rival: Callable[[], object] = lambda: None,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(database)
        self._on_commit, self._on_read, self._on_letters = iter(on_commit), iter(on_read), iter(on_letters)
        self._rival = rival
        self._meanwhile = meanwhile
        self.calls: list[str] = []

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        return self._faulty(statement, lambda: self._database.ask(statement, **values))

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        named = [step.statement for step in script.steps if step.statement != "lock_partition"]  # it only locks
        return self._faulty(named[0], lambda: self._database.run(script, rehearse))

    def close(self) -> None:
        self.calls.append("close")
        super().close()

    def _faulty(self, statement: Named, call: Callable[[], Any]) -> Any:
        name = statement if isinstance(statement, str) else statement.verb
        if name in COMMITS:
            return self._write(COMMITS[name], self._on_commit, call, self._rival)
        if name in LETTERS:
            return self._write(LETTERS[name], self._on_letters, call, self._meanwhile)
        if name in READS:
            self._read(READS[name])
        return call()

    def _read(self, call: str) -> None:
        self.calls.append(call)
        fault = next(self._on_read, None)
        if fault is not None:
            raise Killed if fault is Fault.KILLED else StoreUnavailable("the database does not answer")

    def _write(
        self, name: str, faults: Iterator[Fault | None], call: Callable[[], Any], other: Callable[[], Any]
    ) -> Any:
        self.calls.append(name)
        fault = next(faults, None)
        unanswered = CommitOutcomeUnknown if name == "commit_batch" or name in UNKNOWN else StoreUnavailable
        before = {
            Fault.NOT_REACHED: StoreUnavailable("the database does not answer"),
            Fault.LOST: unanswered("it was not answered"),
            Fault.KILLED: Killed(),
        }
        if fault in before:
            raise before[fault]
        if fault is Fault.RIVAL:
            other()
        answer = call()
        if fault in (Fault.UNANSWERED, Fault.KILLED_AFTER):
            raise Killed if fault is Fault.KILLED_AFTER else unanswered("it was not answered")
        return answer


class FaultyStore(Store):
    """The store over a faulty database. The rival of a commit gets the store without faults, and the commit."""

    def __init__(
        self, store: Store, *, rival: Callable[[Store, BatchCommit], None] = rival_takes_all, **faults: Any
    ) -> None:
        self._in_hand: list[BatchCommit] = []
        self.faulty = FaultyDatabase(store.database, rival=lambda: rival(store, self._in_hand[-1]), **faults)
        super().__init__(self.faulty)

    @property
    def calls(self) -> list[str]:
        return self.faulty.calls

    def commit_batch(self, commit: BatchCommit) -> int:
        self._in_hand.append(commit)
        return super().commit_batch(commit)
