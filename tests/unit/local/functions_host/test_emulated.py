import pytest

from local.functions_host.emulated import refuse_what_is_not_emulated
from local.functions_host.errors import NotEmulated
from local.functions_host.function import describe_function

HUB = '{"name": "events", "type": "eventHubTrigger", "direction": "IN", "cardinality": "MANY", "dataType": "BINARY"}'
HTTP = '{"name": "req", "type": "httpTrigger", "direction": "IN"}'
CLIENT = '{"name": "client", "type": "durableClient", "direction": "IN"}'
RETURN = '{"name": "$return", "type": "http", "direction": "OUT"}'


@pytest.mark.parametrize(
    "bindings",
    [
        [HUB],
        [HTTP, RETURN],
        ['{"name": "t", "type": "timerTrigger", "direction": "IN"}'],
        ['{"name": "context", "type": "orchestrationTrigger", "direction": "IN"}'],
        ['{"name": "n", "type": "activityTrigger", "direction": "IN"}'],
        ['{"name": "context", "type": "entityTrigger", "direction": "IN"}'],
        [HUB, CLIENT],
    ],
)
def test_event_hubs_http_timers_and_durable_are_emulated(bindings: list[str]) -> None:
    refuse_what_is_not_emulated(describe_function("f", bindings, None))


@pytest.mark.parametrize(
    ("bindings", "what"),
    [
        (['{"name": "m", "type": "queueTrigger", "direction": "IN"}'], "queueTrigger"),
        ([HUB, CLIENT.replace("}", ', "taskHub": "Other"}')], "taskHub Other"),
        ([HUB, CLIENT.replace("}", ', "connectionName": "Other"}')], "connectionName Other"),
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
