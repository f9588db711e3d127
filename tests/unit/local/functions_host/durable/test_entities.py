import json

from azure.functions.meta import Datum

from local.functions_host.durable.entities import batch_text, conclude_batch, entity_id_of, names_of, signal
from local.functions_host.durable.instances import EntityBatch, Entry
from local.functions_host.invoker import Outcome
from tests.unit.local.functions_host.doubles import NOON

CALL = {"op": "add", "id": "g", "input": "1", "signal": False, "parent": "one", "parentExecution": "x"}
BATCH = EntityBatch("@counter@k", "5", [Entry(1, None, CALL), Entry(2, None, signal("get", "s", None))])


def test_the_id_of_an_entity_holds_its_name_in_lower_case_and_its_key() -> None:
    assert entity_id_of("Counter", "My@Key") == "@counter@My@Key"
    assert names_of("@counter@My@Key") == ("counter", "My@Key")


def test_a_batch_carries_state_and_operations() -> None:
    assert json.loads(batch_text(BATCH)) == {
        "self": {"name": "counter", "key": "k"},
        "exists": True,
        "state": "5",
        "batch": [
            {"name": "add", "input": "1", "isSignal": False, "id": "g"},
            {"name": "get", "input": None, "isSignal": True, "id": "s"},
        ],
    }


def answer(*, exists: bool, error: bool = False) -> Outcome:
    results = [{"isError": error, "result": "6"}, {"isError": False, "result": "6"}]
    return Outcome(Datum(json.dumps({"entityExists": exists, "entityState": "6", "results": results}), "json"))


def test_a_call_is_answered_with_its_result_or_error_and_a_signal_is_not() -> None:
    for error in ({}, {"exceptionType": "Error"}):
        commit = conclude_batch(BATCH, answer(exists=True, error=bool(error)), NOON)
        assert (commit.state, list(commit.consumed)) == ("6", [1, 2])
        (sent,) = commit.outgoing
        assert (sent.instance_id, sent.execution_id, sent.event["Name"]) == ("one", "x", "g")
        assert json.loads(sent.event["Input"]) == {"result": "6", **error}


def test_an_entity_that_destructs_itself_is_deleted() -> None:
    assert conclude_batch(BATCH, answer(exists=False), NOON).state is None


def test_a_batch_that_fails_as_a_whole_leaves_the_state_and_reports_to_each_caller() -> None:
    for state in ("5", None):
        batch = EntityBatch(BATCH.entity_id, state, BATCH.entries)
        commit = conclude_batch(batch, Outcome(error="ImportError: no"), NOON)
        assert commit.state == state
        assert json.loads(commit.outgoing[0].event["Input"])["result"] == '"ImportError: no"'
