import os

from local.functions_host.json_sections import JsonSection
from local.functions_host.settings import DurableOptions, parse_durable_options


def read(**content: object) -> tuple[DurableOptions, list[str]]:
    faults: list[str] = []
    return parse_durable_options(JsonSection(content, "host.json", faults)), faults


def test_the_defaults_are_those_of_the_extension() -> None:
    options, faults = read()
    assert faults == []
    assert options.hub_name == "TestHubName"
    assert options.activities == options.orchestrators == 10 * (os.cpu_count() or 1)


def test_limits_and_the_name_of_the_hub_are_honoured() -> None:
    options, faults = read(hubName="Mine", maxConcurrentActivityFunctions=1, MaxConcurrentOrchestratorFunctions="2")
    assert (options, faults) == (DurableOptions("Mine", 1, 2), [])


def test_a_value_without_meaning_here_is_ignored() -> None:
    assert read(tracing={"traceInputsAndOutputs": True}, storageProvider={"partitionCount": 4})[1] == []


def test_a_value_that_is_not_emulated_is_a_fault() -> None:
    wrong: list[tuple[dict[str, object], str]] = [
        ({"storageProvider": {"type": "Netherite"}}, "storageProvider: type: 'Netherite' is not emulated"),
        ({"extendedSessionsEnabled": True}, "extendedSessionsEnabled: True is not emulated, only false"),
        ({"overridableExistingInstanceStates": "AnyState"}, "only nonrunningstates"),
        ({"defaultVersion": "1"}, "defaultversion: is not emulated"),
        ({"hubName": "%HUB%"}, "hubName: must be 3 to 45 letters"),
        ({"maxConcurrentActivityFunctions": 0}, "must be a whole number of at least 1"),
    ]
    for content, fault in wrong:
        (found,) = read(**content)[1]
        assert fault in found
