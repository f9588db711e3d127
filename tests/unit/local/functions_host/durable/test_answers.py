import json
from dataclasses import replace
from pathlib import Path

import pytest
from azure.functions.meta import Datum

from local.functions_host.durable.answers import FAILURE_MARK, Answer, Unreadable, read_answer, request_text
from local.functions_host.durable.history import Event
from local.functions_host.durable.instances import Parent
from local.functions_host.worker import Outcome
from tests.unit.local.functions_host.durable.doubles import instance

EPISODES = json.loads((Path(__file__).parents[4] / "fixtures" / "durable_shapes.json").read_text())[
    "orchestrator_episodes"
]
STATE = {"isDone": True, "schemaVersion": 2, "actions": [[]], "output": {"a": 1}}


def answered(**changes: object) -> Answer:
    return read_answer(Outcome(Datum(json.dumps({**STATE, **changes}), "json")))


@pytest.mark.parametrize("number", range(len(EPISODES)))
def test_a_request_has_the_shape_of_the_extension_s(number: int) -> None:
    golden = EPISODES[number]["request"]
    history: list[Event] = golden["history"]
    played = sum(each["IsPlayed"] for each in history)
    past = [json.dumps(each) for each in history[:played]]
    asked = replace(instance(), instance_id="demo", input=json.dumps(golden["input"]))
    assert json.loads(request_text(asked, past, history[played:])) == golden


@pytest.mark.parametrize("number", range(len(EPISODES)))
def test_a_golden_answer_is_read_whole(number: int) -> None:
    golden = EPISODES[number]["response"]
    found = read_answer(Outcome(Datum(golden, "json")))
    assert found.actions == golden["actions"][0]
    assert found.is_done == golden["isDone"]
    assert json.loads(found.output or "null") == golden.get("output")


def test_a_child_s_request_names_its_parent() -> None:
    asked = json.loads(request_text(instance(parent=Parent("p", "x", 3)), [], []))
    assert (asked["parentInstanceId"], asked["input"], asked["isReplaying"]) == ("p", None, False)


def test_a_failure_carries_the_state_after_its_mark() -> None:
    text = f"Exception: no{FAILURE_MARK}{json.dumps({**STATE, 'isDone': False, 'error': 'no'})}"
    assert read_answer(Outcome(error=text)) == Answer([], False, '{"a": 1}', "no", None)


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(error="TypeError: the worker failed"),
        Outcome(),
        Outcome(Datum("no json", "json")),
        Outcome(Datum("[]", "json")),
        Outcome(Datum("{}", "json")),
    ],
)
def test_an_answer_that_cannot_be_followed_is_unreadable(outcome: Outcome) -> None:
    with pytest.raises(Unreadable):
        read_answer(outcome)


@pytest.mark.parametrize("changes", [{"schemaVersion": 1}, {"schemaVersion": None}, {"actions": [[], []]}])
def test_another_schema_is_unreadable(changes: dict[str, object]) -> None:
    with pytest.raises(Unreadable, match="only the out-of-process schema V3 is emulated"):
        answered(**changes)


def test_a_custom_status_has_a_largest_size() -> None:
    assert answered(customStatus="x" * 8000).custom_status is not None
    with pytest.raises(Unreadable, match="must not exceed 16 KB"):
        answered(customStatus="x" * 8200)
