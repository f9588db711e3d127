"""The description of the API is held to the code, and the code to the description."""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest

from tests.acceptance.api.conftest import fill
from tests.acceptance.api.routes import CATCH_ALL, served_by_the_app
from tests.acceptance.api.served import Served
from tests.unit.handlers.test_function_app import index

NO_SCHEMATHESIS = "schemathesis is not installed: python -m pip install -r requirements-dev.txt"
ANSWERED = ["2xx", "404", "409", "412", "422"]  # what a request may be answered that is valid by itself
EXAMPLES = 30  # of each kind, for each operation


@pytest.fixture(scope="module")
def description(served: Served) -> Any:
    return served.get("openapi.json").json


def described(description: Any) -> dict[tuple[str, str], Any]:
    return {
        (path.lstrip("/"), method.upper()): operation
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    }


def test_every_route_of_the_app_is_described_and_no_other(description: Any) -> None:
    assert set(described(description)) == set(served_by_the_app())


def test_an_operation_is_named_as_its_function_and_asks_for_its_key(description: Any) -> None:
    keys: dict[str, Any] = {"ANONYMOUS": [], "FUNCTION": [{"key": []}], "ADMIN": [{"masterKey": []}]}
    for place, (name, level) in served_by_the_app().items():
        operation = described(description)[place]
        assert (operation["operationId"], operation["security"]) == (name, keys[level]), place


def test_reading_and_changing_have_levels_of_their_own() -> None:
    levels: dict[str, set[str]] = {method: set() for method in ("GET", "POST")}
    for (_, method), (_, level) in served_by_the_app().items():
        levels[method].add(level)
    assert levels == {"GET": {"ANONYMOUS", "FUNCTION"}, "POST": {"ADMIN"}}


def test_the_catch_all_comes_last_by_name_for_the_host_tries_routes_in_that_order() -> None:
    assert max(index()) == CATCH_ALL


def test_no_two_routes_of_a_method_overlap() -> None:
    """The host would try them by their functions' names, not by how narrow they are: azure-functions-host #9876."""
    places = [(route.split("/"), method) for route, method in served_by_the_app()]
    for at, (one, method) in enumerate(places):
        for other, also in places[at + 1 :]:
            same = method == also and len(one) == len(other)
            pairs = zip(one, other, strict=True) if same else []
            overlap = same and all(a == b or "{" in a + b for a, b in pairs)
            assert not overlap or is_kept_apart(one, other), (one, other)


def is_kept_apart(one: list[str], other: list[str]) -> bool:
    """Some part is fixed in both, and differs."""
    return any(a != b and "{" not in a + b for a, b in zip(one, other, strict=True))


def test_each_parameter_of_a_route_is_described(description: Any) -> None:
    for (route, _), operation in described(description).items():
        in_path = {one["name"] for one in operation["parameters"] if one["in"] == "path"}
        assert in_path == set(re.findall(r"\{(\w+)\}", route))


def test_every_reference_leads_somewhere(description: Any) -> None:
    names = set(re.findall(r"#/components/schemas/([\w.-]+)", str(description)))
    assert names <= set(description["components"]["schemas"])
    assert "ProblemAnswer" in names


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A host for tests that change its store."""
    made = Served(tmp_path_factory.mktemp("conformance"))
    fill(made)
    yield made
    made.close()


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("name", sorted(name for name, _ in served_by_the_app().values()))
def test_an_operation_answers_as_its_description_says(own: Served, name: str, mode: str) -> None:
    """schemathesis makes requests from the description, good ones and bad ones, and looks at the answers."""
    schemathesis = pytest.importorskip("schemathesis", reason=NO_SCHEMATHESIS)
    from hypothesis import HealthCheck, assume, given, settings

    config = schemathesis.Config.from_dict({"checks": {"positive_data_acceptance": {"expected-statuses": ANSWERED}}})
    schema = schemathesis.openapi.from_dict(of_this_app(own.get("openapi.json").json), config=config)
    operation = schema.find_operation_by_label(label_of(name))
    how = schemathesis.GenerationMode(mode)
    if operation is None or (how.is_negative and takes_nothing(operation)):
        pytest.skip(f"{name} takes nothing that could be wrong")
    if name == "open_next_incarnation" and mode == "positive":
        pytest.skip(f"{name} reads the hub, and there is none here: tests/acceptance/gaps/test_incarnations.py has one")

    @settings(max_examples=EXAMPLES, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=how))
    def check(case: Any) -> None:
        assume(can_be_judged(case))
        case.call_and_validate(base_url=f"{own.base_url}/api")

    check()


def of_this_app(description: Any) -> Any:
    """Remove the keys, because the local host needs none, and name the app's only job, which no schema knows."""
    for operation in described(description).values():
        del operation["security"]
    del description["components"]["securitySchemes"]
    (job,) = (one for one in described(description)["aggregations", "GET"]["parameters"] if one["name"] == "job")
    names, only = json.dumps(job["schema"]["pattern"]), json.dumps("^home_activity$")
    return json.loads(json.dumps(description).replace(names, only))


def label_of(name: str) -> str:
    """Return the name that schemathesis gives an operation."""
    return next(f"{method} /{route}" for (route, method), (own, _) in served_by_the_app().items() if own == name)


NAMED = ("partitions", "from", "to", "first", "last")  # places in partitions, which no schema knows


def can_be_judged(case: Any) -> bool:
    """Return False for a case whose answer no schema knows.

    A cursor has to come from a page, a recount is of one partition, the host leaves out parameters without a text and
    takes no address of 8 kB, a number of 19 digits may have more than 64 bits, a count is written without a fraction,
    and there is no hub to be asked here, nor a partition under any name.
    """
    # The client writes lists and objects as these parameters.
    sent = parse_qsl(urlencode(case.query, doseq=True), keep_blank_values=True)
    number = str(case.path_parameters.get("sequence_number", ""))
    count = case.body.get("expected_count") if isinstance(case.body, dict) else None
    refused = [
        number.isdecimal() and int(number) >= 2**63,
        "cursor" in case.query,
        len(urlencode(case.query)) > 7_000,
        len([name for name, text in sent if text]) < max(len(sent), len(case.query)),
        isinstance(count, float),
        isinstance(case.body, dict) and any(case.body.get(name) is not None for name in NAMED),
    ]
    return not any(refused)


def takes_nothing(operation: Any) -> bool:
    return not operation.body and not list(operation.iter_parameters())
