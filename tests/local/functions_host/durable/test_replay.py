"""Turns of an orchestration: our replay numbers all orders as the SDK does, in every order of their ends.

The real Orchestrator of azure-functions-durable runs random programs over the histories that our turns build. A
different number gives a result to the wrong task, or ends as Non-Deterministic. A task_all with a failure ends at once
for the SDK, and with its last task for the extension.
"""

import json
import random
from collections.abc import Generator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import azure.durable_functions as df
import pytest
from azure.functions.meta import Datum
from hypothesis import given, settings
from hypothesis import strategies as st

from local.functions_host.durable import instances
from local.functions_host.durable.episodes import Turn, begin, conclude, read_answer
from local.functions_host.durable.instances import EventType, NewInstance, Outgoing, Status, event
from local.functions_host.durable.store import DurableStore
from local.functions_host.invoker import InvocationResult
from tests.afterwards import after_the_test
from tests.local.functions_host.doubles import NOON
from tests.local.functions_host.durable.doubles import FUNCTIONS

pytestmark = [
    pytest.mark.filterwarnings("ignore:Potential duplicate Task completion"),
    pytest.mark.filterwarnings("ignore:azure.functions"),
]


@dataclass(frozen=True)
class Leaf:
    """One task to wait for: an activity, which may fail, a timer or an event."""

    kind: str
    fails: bool = False


@dataclass(frozen=True)
class Step:
    """One yield: a leaf alone, or all or any of several."""

    kind: str
    leaves: tuple[Leaf, ...]


LEAVES = st.builds(Leaf, st.just("activity"), st.booleans()) | st.builds(Leaf, st.sampled_from(["timer", "event"]))
SEVERAL = st.lists(LEAVES, min_size=1, max_size=4).map(tuple)
STEPS = st.builds(Step, st.just("one"), st.tuples(LEAVES)) | st.builds(Step, st.sampled_from(["all", "any"]), SEVERAL)


def orchestrator_of(steps: list[Step]) -> Any:
    def started(context: df.DurableOrchestrationContext, leaf: Leaf, label: str) -> Any:
        if leaf.kind == "activity":
            return context.call_activity("work", {"label": label, "fails": leaf.fails})
        if leaf.kind == "timer":
            return context.create_timer(context.current_utc_datetime + timedelta(seconds=2))
        return context.wait_for_external_event(label)

    def orchestrate(context: df.DurableOrchestrationContext) -> Generator[Any, Any, Any]:
        found: list[Any] = []
        for number, step in enumerate(steps):
            tasks = [started(context, leaf, f"{number}.{each}") for each, leaf in enumerate(step.leaves)]
            try:
                if step.kind == "any":
                    winner = yield context.task_any(tasks)
                    found.append(f"{number}.{tasks.index(winner)}")
                else:
                    found.append((yield tasks[0] if step.kind == "one" else context.task_all(tasks)))
            except Exception as error:  # noqa: BLE001 - what the SDK raises
                found.append(str(error).split(" \n")[0])
        return found

    return df.Orchestrator.create(orchestrate)


class World:
    """Our turns over the store, with a random choice of the next event."""

    def __init__(self, orchestrator: Any, events: list[str], chance: random.Random) -> None:
        self.store = DurableStore(None)
        after_the_test(self.store.close)
        self.now = NOON
        self.chance, self.orchestrator, self.events = chance, orchestrator, events

    def run(self) -> Any:
        self.store.create(NewInstance("main", "execution", "caller"), NOON)
        for _ in range(2000):
            if (found := self.store.find("main")) and found.status.is_final:
                return found
            self.step()
        raise AssertionError("the orchestration does not end")

    def step(self) -> None:
        ready, due = list(self.store.ready(self.now, 100)), list(self.store.activities_after(0, 100))
        choices = [*(["turn"] * bool(ready)), *(["activity"] * bool(due)), *(["event"] * bool(self.events))]
        if not choices:
            due_at = self.store.next_due_at(self.now)
            assert due_at is not None, "nothing more happens"
            self.now = due_at
            return
        choice = self.chance.choice(choices)
        if choice == "turn":
            self.turn(self.chance.choice(ready))
        elif choice == "event":
            name = self.events.pop(self.chance.randrange(len(self.events)))
            self.store.send(Outgoing("main", None, instances.event_raised(name, json.dumps(name)), self.now))
        else:
            self.activity(self.chance.choice(due))
        self.now += timedelta(milliseconds=1)

    def activity(self, due: Any) -> None:
        value, ids = json.loads(due.order.input), {"TaskScheduledId": due.order.task_id}
        if value["fails"]:
            end = event(EventType.TASK_FAILED, **ids, Reason=value["label"], Details="")
        else:
            end = event(EventType.TASK_COMPLETED, **ids, Result=json.dumps(value["label"]))
        result = Outgoing(due.order.instance_id, due.order.execution_id, end, self.now)
        assert self.store.complete_activity(due.number, result)

    def turn(self, instance_id: str) -> None:
        episode = self.store.read_episode(instance_id, self.now)
        if episode.instance is None or episode.instance.status.is_final:
            self.store.discard(episode.entries)
            return
        begun = begin(episode.instance, episode, self.now)
        assert isinstance(begun, Turn)
        answer = read_answer(InvocationResult(Datum(self.orchestrator(begun.request), "json")))
        assert self.store.commit_episode(conclude(begun, answer, FUNCTIONS, lambda: "never"))


@pytest.mark.slow
@given(steps=st.lists(STEPS, max_size=6), seed=st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_every_result_gets_to_the_task_that_waits_for_it(steps: list[Step], seed: int) -> None:
    labels = [[f"{number}.{each}" for each in range(len(step.leaves))] for number, step in enumerate(steps)]
    told = [list(zip(step.leaves, names, strict=True)) for step, names in zip(steps, labels, strict=True)]
    events = [name for leaves in told for leaf, name in leaves if leaf.kind == "event"]
    found = World(orchestrator_of(steps), events, random.Random(seed)).run()
    assert found.status is Status.COMPLETED, found.output
    output = json.loads(found.output or "null")
    for step, leaves, got in zip(steps, told, output, strict=True):
        results = [None if leaf.kind == "timer" else name for leaf, name in leaves]
        if step.kind == "any":
            assert got in [name for _, name in leaves]
        elif any(leaf.fails for leaf in step.leaves):
            assert any(name in got for leaf, name in leaves if leaf.fails), got
        else:
            assert got == (results[0] if step.kind == "one" else results)


STATE = {"isDone": True, "schemaVersion": 2, "actions": [[]], "output": {"a": 1}}
