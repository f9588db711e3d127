"""local/stack/consumers.py: workers, with small processes in their place, and ticking."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from local.feed.businesses import HOMES
from local.stack.consumers import Workers
from local.stack.processes import Child, ChildFailed, Children, Command
from local.stack.stack import Place, Stack


class SmallStack(Stack):
    """A stack whose workers are ready and do nothing."""

    def __init__(self, folder: Path, children: Children) -> None:
        super().__init__(Place(folder), children, time.sleep)
        self._started = children
        self.connection = (
            "Endpoint=sb://localhost:1;SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true"
        )
        self.workers: list[Child] = []

    def start_worker(self, transform: str) -> Child:
        name = f"worker-{len(self.workers) + 1}"
        self.workers.append(self._started.start(Command(name, "tests.local.child", ["ready"])))
        self.workers[-1].wait_ready("child ready", self.pause)
        return self.workers[-1]


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[SmallStack]:
    with Children(tmp_path) as children:
        yield SmallStack(tmp_path, children)


def test_chance_decides_which_worker_is_killed_and_a_new_one_takes_its_place(stack: SmallStack) -> None:
    positions: set[int] = set()
    for seed in range(10):
        before = len(stack.workers)
        workers = Workers(stack, HOMES.transform, 2, Random(seed))
        workers.kill_one()
        *first, new = stack.workers[before:]
        (killed,) = [at for at, child in enumerate(first) if child.exit_code() == -9]
        assert (first[1 - killed].running, new.running) == (True, True)
        assert workers.logs == [child.output for child in (*first, new)]
        workers.refuse_dead()
        workers.end()
        assert not any(child.running for child in stack.workers)
        positions.add(killed)
        if len(positions) == 2:
            break
    assert positions == {0, 1}


def test_a_worker_that_dies_by_itself_is_reported_by_name(stack: SmallStack) -> None:
    workers = Workers(stack, HOMES.transform, 2, Random(1))
    os.kill(stack.workers[1].pid, 9)
    while stack.workers[1].running:
        stack.pause(0.01)
    with pytest.raises(ChildFailed, match="worker-2 ended with code -9"):
        workers.refuse_dead()
