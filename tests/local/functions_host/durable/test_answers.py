import json
from dataclasses import replace
from pathlib import Path

import pytest
from azure.functions.meta import Datum

from local.functions_host.durable.episodes import FAILURE_MARK, Answer, Unreadable, read_answer, request_text
from local.functions_host.durable.instances import Event
from local.functions_host.invoker import InvocationResult
from tests.local.functions_host.durable.doubles import instance

EPISODES = json.loads((Path(__file__).parents[3] / "fixtures" / "durable_shapes.json").read_text())[
    "orchestrator_episodes"
]
STATE = {"isDone": True, "schemaVersion": 2, "actions": [[]], "output": {"a": 1}}


def answered(**changes: object) -> Answer:
    return read_answer(InvocationResult(Datum(json.dumps({**STATE, **changes}), "json")))


def test_a_request_has_the_shape_of_the_extension_and_its_answer_is_read_whole() -> None:
    for episode in EPISODES:
        golden, answer = episode["request"], episode["response"]
        history: list[Event] = golden["history"]
        played = sum(each["IsPlayed"] for each in history)
        past = [json.dumps(each) for each in history[:played]]
        requested = replace(instance(), instance_id="demo", input=json.dumps(golden["input"]))
        assert json.loads(request_text(requested, past, history[played:])) == golden
        found = read_answer(InvocationResult(Datum(answer, "json")))
        assert (found.actions, found.is_done) == (answer["actions"][0], answer["isDone"])
        assert json.loads(found.output or "null") == answer.get("output")


def test_a_failure_carries_the_state_after_its_mark() -> None:
    text = f"Exception: no{FAILURE_MARK}{json.dumps({**STATE, 'isDone': False, 'error': 'no'})}"
    assert read_answer(InvocationResult(error=text)) == Answer([], False, '{"a": 1}', "no", None)


def test_an_outcome_that_is_no_answer_is_unreadable() -> None:
    for value in (None, Datum("no json", "json"), Datum("[]", "json"), Datum("{}", "json")):
        with pytest.raises(Unreadable):
            read_answer(InvocationResult(value))
    with pytest.raises(Unreadable):
        read_answer(InvocationResult(error="TypeError: the worker failed"))


def test_a_different_schema_is_unreadable() -> None:
    wrong: list[dict[str, object]] = [{"schemaVersion": 1}, {"schemaVersion": None}, {"actions": [[], []]}]
    for changes in wrong:
        with pytest.raises(Unreadable, match="only the out-of-process schema V3 is emulated"):
            answered(**changes)


def test_a_custom_status_has_a_size_limit() -> None:
    assert answered(customStatus="x" * 8000).custom_status is not None
    with pytest.raises(Unreadable, match="must not exceed 16 KB"):
        answered(customStatus="x" * 8200)
