import pytest

from local.functions_host.errors import NotEmulated
from local.functions_host.function import describe_function, refuse_what_is_not_emulated

HUB = '{"name": "events", "type": "eventHubTrigger", "direction": "IN", "cardinality": "MANY", "dataType": "BINARY"}'
HTTP = '{"name": "req", "type": "httpTrigger", "direction": "IN"}'
CLIENT = '{"name": "client", "type": "durableClient", "direction": "IN"}'
RETURN = '{"name": "$return", "type": "http", "direction": "OUT"}'


def test_event_hubs_http_timers_and_durable_are_emulated() -> None:
    triggers = ("timerTrigger", "orchestrationTrigger", "activityTrigger")
    alone = [[f'{{"name": "context", "type": "{kind}", "direction": "IN"}}'] for kind in triggers]
    for bindings in (*alone, [HUB], [HTTP, RETURN], [HUB, CLIENT]):
        refuse_what_is_not_emulated(describe_function("f", bindings, None))


def test_every_other_binding_is_refused_by_function_and_name() -> None:
    wrong = (
        (['{"name": "m", "type": "queueTrigger", "direction": "IN"}'], "queueTrigger"),
        ([HUB, CLIENT.replace("}", ', "taskHub": "Other"}')], "taskHub Other"),
        ([HUB, CLIENT.replace("}", ', "connectionName": "Other"}')], "connectionName Other"),
        ([HUB, '{"name": "out", "type": "eventHub", "direction": "OUT"}'], "out of type eventHub"),
        ([HTTP, '{"name": "answer", "type": "http", "direction": "OUT"}'], "answer of type http"),
        ([HUB.replace("MANY", "ONE")], "cardinality ONE"),
        ([HUB.replace(', "dataType": "BINARY"', "")], "dataType None"),
    )
    for bindings, feature in wrong:
        with pytest.raises(NotEmulated, match="function f: ") as refused:
            refuse_what_is_not_emulated(describe_function("f", bindings, None))
        assert refused.value.function_name == "f"
        assert feature in str(refused.value)
