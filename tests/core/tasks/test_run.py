from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from core.errors import CommitOutcomeUnknown, StreamIncarnationChanged, TaskConflict
from core.model.ports import Clock
from core.store.script import Named, Outcome, Script
from core.tasks.run import CONFLICT_LIMIT, ONE_PIECE, Done, TaskKind, open_parts, open_task, work_on
from core.tasks.statuses import TaskMove
from core.tasks.store import Ending, Tasks, advance_steps
from core.tasks.task import Advance, PartRequest, Task, TaskOrder, TaskPart, TaskRequest
from tests.fakes import builders
from tests.fakes.builders import EPOCH
from tests.fakes.store import MemoryStore

TASK = UUID(int=7)
PIECES = 3


class Lossy:
    """The database of a store. `lose` says of a script whether its answer is lost, and whether it stands."""

    def __init__(self, store: MemoryStore) -> None:
        self._database = store.database
        self.lose: list[bool] = []
        self.is_mute = False
        self.opened = 0

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        if self.is_mute and statement == "find_task":
            return []
        return self._database.ask(statement, **values)

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        self.opened += script.steps[-1].statement == "add_parts"
        if not self.lose:
            return self._database.run(script, rehearse)
        if self.lose.pop():
            self._database.run(script, rehearse)
        raise CommitOutcomeUnknown("it was not answered")

    def close(self) -> None:
        self._database.close()


class Counting(TaskKind):
    """A kind whose task has one part of three pieces. Each takes a second."""

    name = "audit"

    def __init__(self, database: Lossy) -> None:
        self._tasks = Tasks(database)
        self.now = EPOCH
        self.clock = Clock(lambda: self.now, lambda: TASK, lambda: 0.5)
        self.before: Callable[[], object] = lambda: None
        self.database = database
        self.cleaned: list[UUID] = []

    @property
    def tasks(self) -> Tasks:
        return self._tasks

    def request(self, order: TaskOrder, asked: object) -> TaskRequest:
        raise NotImplementedError

    def report(self, task: Task, *, is_listed: bool) -> dict[str, object]:
        return {}

    def advance(self, task: Task, part: TaskPart, until: datetime) -> Done:
        self.before()
        self.now += timedelta(seconds=1)
        step = part.step + 1
        ahead = Advance(part.name, part.step, step, str(step), is_last=step == PIECES)
        ending = Ending(task.task_id, "audit", self.now)
        self.database.run(Script("a piece", tuple(advance_steps(ending, ahead))))
        return ONE_PIECE

    def over(self, task_id: UUID) -> None:
        self.cleaned.append(task_id)


@pytest.fixture
def kind() -> Counting:
    store = MemoryStore()
    store.open_stream(builders.STREAM)
    return Counting(Lossy(store))


def request() -> TaskRequest:
    return TaskRequest(TaskOrder(TASK, 1, "ann", "", EPOCH), "audit", "all", "{}", (PartRequest("all"),))


def work(kind: Counting, seconds: float = 60) -> tuple[bool, int]:
    report = work_on(TASK, None, kind, kind.now + timedelta(seconds=seconds))
    return report.is_over, report.pieces


@pytest.mark.parametrize(("stands", "tries"), [(True, 1), (False, 2)])
def test_a_task_whose_opening_was_not_answered_is_opened_once(kind: Counting, stands: bool, tries: int) -> None:
    kind.database.lose = [stands]
    assert open_task(request(), kind.tasks).status == "planned"
    assert kind.database.opened == tries
    assert len(kind.tasks.read(1, 10)) == 1


def test_a_task_that_cannot_be_read_back_is_named(kind: Counting) -> None:
    kind.database.is_mute = True
    with pytest.raises(CommitOutcomeUnknown, match=f"audit {TASK} was opened .* look for it in the list"):
        open_task(request(), kind.tasks)


@pytest.mark.parametrize("stands", [True, False])
def test_a_piece_whose_answer_was_lost_is_done_once(kind: Counting, stands: bool) -> None:
    open_task(request(), kind.tasks)
    assert open_parts(TASK, kind) == (None,)
    kind.database.lose = [stands]
    is_over, _ = work(kind)
    task = kind.tasks.find(TASK)
    assert task is not None
    assert (is_over, task.status, task.parts[0].step, task.parts[0].report) == (True, "done", PIECES, str(PIECES))
    assert kind.cleaned == []


@pytest.mark.parametrize("conflicts", [CONFLICT_LIMIT - 1, CONFLICT_LIMIT])
def test_conflicts_in_a_row_are_borne_up_to_a_limit(kind: Counting, conflicts: int) -> None:
    open_task(request(), kind.tasks)
    left = iter(range(conflicts))

    def rival() -> None:
        if next(left, None) is not None:
            raise TaskConflict("audit", TASK)

    kind.before = rival
    if conflicts < CONFLICT_LIMIT:
        assert work(kind) == (True, PIECES)
        return
    with pytest.raises(TaskConflict):
        work(kind)


@pytest.mark.parametrize(
    ("meanwhile", "pieces", "status", "step"),
    [
        ("a piece of another driver", PIECES - 1, "done", PIECES),
        ("pause", 0, "paused", 0),
        ("cancel", 0, "cancelled", 0),
    ],
)
def test_a_piece_that_another_driver_did_or_whose_task_was_stopped_meanwhile_is_not_done(
    kind: Counting, meanwhile: Any, pieces: int, status: str, step: int
) -> None:
    open_task(request(), kind.tasks)

    def once() -> None:
        kind.before = lambda: None
        if meanwhile in ("pause", "cancel"):
            assert kind.tasks.move(TaskMove(TASK, meanwhile, "ann", "why", kind.now))
        else:
            assert work(kind, seconds=0) == (False, 1)

    kind.before = once
    assert work(kind) == (True, pieces)
    task = kind.tasks.find(TASK)
    assert task is not None
    assert (task.status, task.parts[0].step) == (status, step)


def test_a_slice_ends_in_time_but_tries_a_piece(kind: Counting) -> None:
    open_task(request(), kind.tasks)
    assert [work(kind, seconds=0), work(kind, seconds=2)] == [(False, 1), (True, 2)]


def test_a_task_of_a_different_hub_goes_on_when_its_own_is_back(kind: Counting) -> None:
    open_task(request(), kind.tasks)

    def renewed() -> None:
        raise StreamIncarnationChanged("partition 0", "the hub is a new one")

    kind.before = renewed
    with pytest.raises(StreamIncarnationChanged):
        work(kind)
    task = kind.tasks.find(TASK)
    assert task is not None
    assert (task.status, kind.cleaned) == ("running", [])
    kind.before = lambda: None
    assert work(kind) == (True, PIECES)


def test_no_more_parts_are_in_work_than_the_kind_allows(kind: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    order, parts = TaskOrder(TASK, 1, "ann", "", EPOCH), tuple(PartRequest(name) for name in "abc")
    open_task(TaskRequest(order, "audit", "all", "{}", parts), kind.tasks)
    assert open_parts(TASK, kind) == (None,)
    monkeypatch.setattr(Counting, "fan_out", 2)
    assert open_parts(TASK, kind) == ("a", "b")
