import pytest

from local.functions_host.durable.functions import DurableFunctions, FunctionKind, UnknownFunction
from local.functions_host.function import describe_function
from tests.local.functions_host.durable.doubles import FUNCTIONS


def test_a_function_is_found_by_kind_and_name_in_any_case() -> None:
    assert FUNCTIONS.get(FunctionKind.ACTIVITY, "WORK").name == "work"
    with pytest.raises(UnknownFunction):
        FUNCTIONS.get(FunctionKind.ORCHESTRATOR, "work")


def test_the_name_of_the_trigger_goes_before_that_of_the_function() -> None:
    binding = '{"name": "n", "type": "activityTrigger", "direction": "IN", "activity": "other"}'
    functions = DurableFunctions([describe_function("work", [binding], None)])
    assert functions.get(FunctionKind.ACTIVITY, "other").name == "work"
    with pytest.raises(UnknownFunction):
        functions.get(FunctionKind.ACTIVITY, "work")


def test_an_unknown_function_is_refused_in_the_words_of_the_extension() -> None:
    with pytest.raises(UnknownFunction) as unknown:
        FUNCTIONS.get(FunctionKind.ACTIVITY, "nobody")
    assert str(unknown.value) == (
        "The function 'nobody' doesn't exist, is disabled, or is not an activity function. "
        "Additional info: The following are the known activity functions: 'work', 'other'."
    )
    with pytest.raises(UnknownFunction, match="No orchestrator functions are currently registered!"):
        DurableFunctions([]).get(FunctionKind.ORCHESTRATOR, "nobody")
