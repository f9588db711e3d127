import pytest

from local.functions_host.emulated import refuse_what_is_not_emulated
from local.functions_host.errors import NotEmulated
from local.functions_host.function import describe_function

HUB = '{"name": "events", "type": "eventHubTrigger", "direction": "IN", "cardinality": "MANY", "dataType": "BINARY"}'
HTTP = '{"name": "req", "type": "httpTrigger", "direction": "IN"}'
RETURN = '{"name": "$return", "type": "http", "direction": "OUT"}'


@pytest.mark.parametrize(
    "bindings", [[HUB], [HTTP, RETURN], ['{"name": "t", "type": "timerTrigger", "direction": "IN"}']]
)
def test_event_hubs_http_and_timers_are_emulated(bindings: list[str]) -> None:
    refuse_what_is_not_emulated(describe_function("f", bindings, None))


@pytest.mark.parametrize(
    ("bindings", "what"),
    [
        (['{"name": "context", "type": "orchestrationTrigger", "direction": "IN"}'], "orchestrationTrigger"),
        (['{"name": "n", "type": "activityTrigger", "direction": "IN"}'], "activityTrigger"),
        (['{"name": "m", "type": "queueTrigger", "direction": "IN"}'], "queueTrigger"),
        ([HUB, '{"name": "client", "type": "durableClient", "direction": "IN"}'], "client of type durableClient"),
        ([HUB, '{"name": "out", "type": "eventHub", "direction": "OUT"}'], "out of type eventHub"),
        ([HTTP, '{"name": "answer", "type": "http", "direction": "OUT"}'], "answer of type http"),
        ([HUB.replace("MANY", "ONE")], "cardinality ONE"),
        ([HUB.replace(', "dataType": "BINARY"', "")], "dataType None"),
    ],
)
def test_everything_else_is_refused_by_function_and_binding(bindings: list[str], what: str) -> None:
    with pytest.raises(NotEmulated, match="function f: ") as refused:
        refuse_what_is_not_emulated(describe_function("f", bindings, None))
    assert refused.value.function_name == "f"
    assert what in str(refused.value)
