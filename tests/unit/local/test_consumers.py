"""local/consumers.py: workers, with small processes in their place."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from local.consumers import Workers
from local.feed.domains import HOMES
from local.processes import Child, ChildFailed, Children, Command
from local.stack import Place, Stack


class SmallStack(Stack):
    """Its workers are ready and do nothing."""

    def __init__(self, folder: Path, children: Children) -> None:
        super().__init__(Place(folder), children, time.sleep)
        self._started = children
        self.connection = (
            "Endpoint=sb://localhost:1;SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true"
        )
        self.workers: list[Child] = []

    def start_worker(self, transform: str) -> Child:
        name = f"worker-{len(self.workers) + 1}"
        self.workers.append(self._started.start(Command(name, "tests.unit.local.child", ["ready"])))
        self.workers[-1].wait_ready("child ready", self.pause)
        return self.workers[-1]


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[SmallStack]:
    with Children(tmp_path) as children:
        yield SmallStack(tmp_path, children)


def started(stack: Stack, seed: int = 1) -> Workers:
    return Workers(stack, HOMES.transform, 3, Random(seed))


def test_a_killed_worker_has_another_in_its_place_and_leaves_its_log(stack: SmallStack) -> None:
    workers = started(stack)
    workers.kill_one()
    assert [child.exit_code() for child in stack.workers].count(-9) == 1
    assert stack.workers[3].running
    assert workers.logs == [child.output for child in stack.workers]
    workers.refuse_dead()


@pytest.mark.slow
def test_chance_decides_which_worker_is_killed(tmp_path: Path) -> None:
    killed: set[str] = set()
    for seed in range(5):
        (tmp_path / str(seed)).mkdir()
        with Children(tmp_path / str(seed)) as children:
            stack = SmallStack(tmp_path / str(seed), children)
            started(stack, seed).kill_one()
            killed.update(child.name for child in stack.workers if not child.running)
    assert len(killed) > 1


def test_a_worker_that_dies_by_itself_is_reported_by_name(stack: SmallStack) -> None:
    workers = started(stack)
    os.kill(stack.workers[1].pid, 9)
    while stack.workers[1].running:
        stack.pause(0.01)
    with pytest.raises(ChildFailed, match="worker-2 ended with code -9"):
        workers.refuse_dead()


def test_workers_end_together(stack: SmallStack) -> None:
    started(stack).end()
    assert not any(child.running for child in stack.workers)
