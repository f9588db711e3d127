"""The SDK's replay and ours number all orders alike, in every order of their ends.

The real Orchestrator of azure-functions-durable runs random programs over the histories that our turns build. A
different number gives a result to the wrong task, or ends as Non-Deterministic.

Left out, because SDK and extension disagree there: calls with retries in a task_any, and in a task_all with a failure
(azure-functions-durable-python#603). The SDK goes on at once, the extension waits for all.
"""

import json
import random
import uuid
from collections.abc import Generator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import azure.durable_functions as df
import pytest
from azure.functions.meta import Datum
from hypothesis import example, given, settings
from hypothesis import strategies as st

from local.functions_host.durable.answers import read_answer
from local.functions_host.durable.entities import batch_text, conclude_batch
from local.functions_host.durable.episodes import Turn, begin, conclude
from local.functions_host.durable.history import EventType, event, event_raised
from local.functions_host.durable.instances import NewInstance, Outgoing, Status, is_entity
from local.functions_host.durable.store import DurableStore
from local.functions_host.invoker import Outcome
from tests.afterwards import after_the_test
from tests.unit.local.functions_host.doubles import NOON
from tests.unit.local.functions_host.durable.doubles import FUNCTIONS

pytestmark = [
    pytest.mark.filterwarnings("ignore:Potential duplicate Task completion"),
    pytest.mark.filterwarnings("ignore:azure.functions"),
]


ATTEMPTS = 3


@dataclass(frozen=True)
class Leaf:
    """One task to wait for; it fails `failures` times first."""

    kind: str
    failures: int = 0


@dataclass(frozen=True)
class Step:
    """One yield: a leaf alone, or all or any of several."""

    kind: str
    leaves: tuple[Leaf, ...]


SAFE = st.builds(Leaf, st.sampled_from(["activity", "child"]), st.integers(0, 1)) | st.builds(
    Leaf, st.sampled_from(["timer", "event", "entity"])
)
RETRIED = st.builds(Leaf, st.sampled_from(["retried", "retried child"]), st.integers(0, ATTEMPTS))
EXHAUSTED = Step("one", (Leaf("retried", ATTEMPTS),))
FINE = st.builds(Leaf, st.sampled_from(["retried", "retried child"]), st.integers(0, ATTEMPTS - 1)) | SAFE.filter(
    lambda leaf: not leaf.failures
)


def several(leaf: st.SearchStrategy[Leaf]) -> st.SearchStrategy[tuple[Leaf, ...]]:
    return st.lists(leaf, min_size=1, max_size=4).map(tuple)


STEPS = (
    st.builds(Step, st.just("one"), st.tuples(SAFE))
    | st.builds(Step, st.just("one"), st.tuples(RETRIED))
    | st.just(EXHAUSTED)
    | st.builds(Step, st.just("all"), several(SAFE) | several(FINE))
    | st.builds(Step, st.just("any"), several(SAFE))
    | st.just(Step("signal", ()))
)


def orchestrator_of(steps: list[Step]) -> Any:
    """Return an orchestrator that does the steps and returns their results."""

    def orchestrate(context: df.DurableOrchestrationContext) -> Generator[Any, Any, Any]:
        found: list[Any] = []
        for number, step in enumerate(steps):
            if step.kind == "signal":
                context.signal_entity(df.EntityId("counter", "one"), "echo", "unheard")
                continue
            tasks = [started(context, leaf, f"{number}.{each}") for each, leaf in enumerate(step.leaves)]
            try:
                if step.kind == "one":
                    found.append((yield tasks[0]))
                elif step.kind == "all":
                    found.append((yield context.task_all(tasks)))
                else:
                    winner = yield context.task_any(tasks)
                    found.append(f"{number}.{tasks.index(winner)}")
            except Exception as error:  # noqa: BLE001 - what the SDK raises
                found.append(str(error).split(" \n")[0])
        return found

    return df.Orchestrator.create(orchestrate)


def started(context: df.DurableOrchestrationContext, leaf: Leaf, label: str) -> Any:
    value, options = {"label": label, "failures": leaf.failures}, df.RetryOptions(1000, ATTEMPTS)
    if leaf.kind == "activity":
        return context.call_activity("work", value)
    if leaf.kind == "retried":
        return context.call_activity_with_retry("work", options, value)
    if leaf.kind == "child":
        return context.call_sub_orchestrator("child", value)
    if leaf.kind == "retried child":
        return context.call_sub_orchestrator_with_retry("child", options, value)
    if leaf.kind == "timer":
        return context.create_timer(context.current_utc_datetime + timedelta(seconds=2))
    if leaf.kind == "entity":
        return context.call_entity(df.EntityId("counter", "one"), "echo", label)
    return context.wait_for_external_event(label)


def expected(step: Step, number: int) -> Any:
    """Return the result of a step where the order of the ends does not decide it."""
    results = [None if leaf.kind == "timer" else f"{number}.{each}" for each, leaf in enumerate(step.leaves)]
    return results[0] if step.kind == "one" else results


def fails(leaf: Leaf) -> bool:
    return leaf.failures >= (ATTEMPTS if leaf.kind.startswith("retried") else 1)


class World:
    """Our turns over the store, with a random choice of the next event."""

    def __init__(self, steps: list[Step], chance: random.Random) -> None:
        self.store = DurableStore(None)
        after_the_test(self.store.close)
        self.now = NOON
        self.chance = chance
        self.handlers = {"caller": orchestrator_of(steps), "child": df.Orchestrator.create(self.child)}
        self.entity = df.Entity.create(echo)
        self.tries: dict[str, int] = {}
        self.events = [
            f"{number}.{each}"
            for number, step in enumerate(steps)
            for each, leaf in enumerate(step.leaves)
            if leaf.kind == "event"
        ]

    def child(self, context: df.DurableOrchestrationContext) -> Generator[Any, Any, Any]:
        value = context.get_input()
        if not context.is_replaying:
            self.tries[value["label"]] = self.tries.get(value["label"], 0) + 1
        if self.tries[value["label"]] <= value["failures"]:
            raise ValueError(value["label"])
        yield from ()
        return value["label"]

    def run(self) -> Any:
        self.store.create(NewInstance("main", "execution", "caller"), NOON)
        for _ in range(2000):
            if (found := self.store.find("main")) and found.status.is_final:
                return found
            self.step()
        raise AssertionError("the orchestration does not end")

    def step(self) -> None:
        ready = list(self.store.ready(self.now, 100))
        due = list(self.store.activities_after(0, 100))
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
            self.store.send(Outgoing("main", None, event_raised(name, json.dumps(name)), self.now))
        else:
            self.activity(self.chance.choice(due))
        self.now += timedelta(milliseconds=1)

    def activity(self, due: Any) -> None:
        value = json.loads(due.order.input)
        ids = {"TaskScheduledId": due.order.task_id}
        if self.fails(value):
            end = event(EventType.TASK_FAILED, **ids, Reason=value["label"], Details="")
        else:
            end = event(EventType.TASK_COMPLETED, **ids, Result=json.dumps(value["label"]))
        result = Outgoing(due.order.instance_id, due.order.execution_id, end, self.now)
        assert self.store.complete_activity(due.number, result)

    def fails(self, value: dict[str, Any]) -> bool:
        """Count a try; return True when it fails."""
        self.tries[value["label"]] = self.tries.get(value["label"], 0) + 1
        return self.tries[value["label"]] <= value["failures"]

    def turn(self, instance_id: str) -> None:
        if is_entity(instance_id):
            batch = self.store.read_entity(instance_id, self.now, 100)
            answer = Outcome(Datum(self.entity(batch_text(batch)), "json"))
            self.store.commit_entity(conclude_batch(batch, answer, self.now))
            return
        episode = self.store.read_episode(instance_id, self.now)
        if episode.instance is None or episode.instance.status.is_final:
            self.store.discard(episode.entries)
            return
        begun = begin(episode.instance, episode, self.now)
        assert isinstance(begun, Turn)
        answer = self.answer(episode.instance.name, begun.request)
        assert self.store.commit_episode(conclude(begun, read_answer(answer), FUNCTIONS, lambda: uuid.uuid4().hex))

    def answer(self, name: str, request: str) -> Outcome:
        try:
            return Outcome(Datum(self.handlers[name](request), "json"))
        except Exception as error:  # noqa: BLE001 - what the SDK raises is the outcome
            return Outcome(error=f"Exception: {error}")


def echo(context: df.DurableEntityContext) -> None:
    context.set_result(context.get_input())


@pytest.mark.slow
@example(steps=[EXHAUSTED, Step("one", (Leaf("activity"),))], seed=0)
@given(steps=st.lists(STEPS, max_size=6), seed=st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_every_result_gets_to_the_task_that_waits_for_it(steps: list[Step], seed: int) -> None:
    world = World(steps, random.Random(seed))
    found = world.run()
    assert found.status is Status.COMPLETED, found.output
    output = json.loads(found.output or "null")
    waited = [(number, step) for number, step in enumerate(steps) if step.kind != "signal"]
    assert len(output) == len(waited)
    for (number, step), got in zip(waited, output, strict=True):
        if step.kind == "any":
            assert got.startswith(f"{number}.")
        elif any(fails(leaf) for leaf in step.leaves):
            failing = [f"{number}.{each}" for each, leaf in enumerate(step.leaves) if fails(leaf)]
            assert any(label in got for label in failing), got
        else:
            assert got == expected(step, number)


def cancelling(wait: timedelta) -> Any:
    """Return an orchestrator that cancels a timer when an event comes first, and returns."""

    def orchestrate(context: df.DurableOrchestrationContext) -> Generator[Any, Any, Any]:
        timer = context.create_timer(context.current_utc_datetime + wait)
        yield context.task_any([timer, context.wait_for_external_event("0.0")])
        timer.cancel()

    return df.Orchestrator.create(orchestrate)


def test_a_cancelled_timer_of_more_than_six_days_holds_its_orchestration_for_a_piece_of_three() -> None:
    ends = []
    for days in (6, 7, 20):
        world = World([], random.Random(0))
        world.handlers["caller"], world.events = cancelling(timedelta(days=days)), ["0.0"]
        assert world.run().status is Status.COMPLETED
        ends.append((world.now - NOON).days)
    assert ends == [0, 3, 3]
