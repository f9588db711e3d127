"""The description of the API is held to the code, and the code to the description."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from core.api.route import LEVELS, OPEN, linked
from examples.home_security.routes import LINK
from handlers.api import ROUTES
from tests.acceptance.api.routes import CATCH_ALL, paths, served_by_the_app
from tests.acceptance.api.served import Served
from tests.handlers.test_function_app import index

LINKED = linked(LINK)

NO_SCHEMATHESIS = "schemathesis is not installed: python -m pip install -r requirements-dev.txt"
ANSWERED = ["2xx", "404", "409", "412", "422"]  # what a request may be answered that is valid by itself
CROSS_SITE = {"Cross-Origin-Resource-Policy", "X-Content-Type-Options"}
EXAMPLES = 15  # of each kind, for each operation


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


def test_an_operation_is_named_as_its_function_and_asks_for_its_key_and_role(description: Any) -> None:
    for route in ROUTES:
        operation, level = described(description)[route.template, route.method], route.level
        needed = [] if level is OPEN else [{level.name: [level.role] if level.role else []}]
        assert (operation["operationId"], operation["security"]) == (route.name, needed), route
        assert ("403" in operation["responses"]) == (bool(level.role) or level == LINKED), route


def test_the_description_names_the_header_of_each_level_and_no_master_key(description: Any) -> None:
    schemes = description["components"]["securitySchemes"]
    assert {name: one["name"].lower() for name, one in schemes.items()} == {
        **{level.name: "x-functions-key" for level in LEVELS if level not in (OPEN, LINKED)},
        LINKED.name: "x-home-link",
    }
    assert "master" not in str(description).lower()


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


def test_every_operation_describes_the_refusals_and_faults_of_all(description: Any) -> None:
    problems = {"400", "405", "500", "503"}
    for place, operation in described(description).items():
        responses = operation["responses"]
        for status in problems:
            assert responses[status]["content"]["application/problem+json"], (place, status)
        assert ("401" in responses) == any(LINKED.name not in one for one in operation["security"]), place
        assert "Allow" in responses["405"]["headers"], place
        assert ("304" in responses) == ("ETag" in responses.get("200", {"headers": {}})["headers"]), place


def test_an_address_with_a_slash_at_its_end_answers_as_it_is_described(served: Served, description: Any) -> None:
    of = described(description)
    assert {place for place, one in of.items() if "308" in one["responses"]} == {at for at in of if at[1] == "GET"}
    for path in paths("GET"):
        answer = served.get(f"{path}/")
        assert (answer.status, answer.body) == (308, b""), path
        assert answer.headers["location"] == f"../{path.rpartition('/')[2]}", path
    assert served.post("replays/", {}).status != 308


def test_every_answer_has_the_headers_that_are_described_as_required(served: Served, description: Any) -> None:
    headers = description["components"]["headers"]
    required = {name for name, of in headers.items() if of["required"]}
    assert required == {"Cache-Control", "Strict-Transport-Security", *CROSS_SITE}
    for place, operation in described(description).items():
        for status, response in operation["responses"].items():
            assert status == "401" or required <= set(response["headers"]), (place, status)
    tag = served.get("ops").headers["etag"]
    unchanged, redirected = served.get("ops", headers={"If-None-Match": tag}), served.get("status/")
    answers = (unchanged, redirected, served.get("nothing"), served.request("DELETE", "/api/status"))
    assert [one.status for one in answers] == [304, 308, 404, 405]
    for answer in answers:
        assert {name.lower() for name in required} <= set(answer.headers), answer


@pytest.fixture(scope="module")
def schema(own: Served) -> Any:
    """The description, as schemathesis reads it."""
    schemathesis = pytest.importorskip("schemathesis", reason=NO_SCHEMATHESIS)
    config = schemathesis.Config.from_dict({"checks": {"positive_data_acceptance": {"expected-statuses": ANSWERED}}})
    return schemathesis.openapi.from_dict(of_this_app(own.get("openapi.json").json), config=config)


@pytest.fixture(scope="module")
def session(schema: Any) -> Iterator[Any]:
    """A connection that stays open between requests."""
    with kept_open() as made:
        yield made


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("name", sorted(name for name, _ in served_by_the_app().values()))
def test_an_operation_answers_as_its_description_says(
    own: Served, schema: Any, session: Any, name: str, mode: str
) -> None:
    """schemathesis makes requests from the description, good ones and bad ones, and looks at the answers."""
    from hypothesis import HealthCheck, assume, given, settings
    from schemathesis import GenerationMode

    operation = schema.find_operation_by_label(label_of(name))
    how = GenerationMode(mode)
    if operation is None or (how.is_negative and takes_nothing(operation)):
        pytest.skip(f"{name} takes nothing that could be wrong")
    if name == "open_next_incarnation" and mode == "positive":
        pytest.skip(f"{name} reads the hub, and there is none here: tests/acceptance/gaps/test_incarnations.py has one")

    if name == "show_own_activity" and mode == "positive":
        pytest.skip(f"{name} needs a link for the very home: test_homes.py has one")

    @settings(max_examples=EXAMPLES, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=how))
    def check(case: Any) -> None:
        assume(can_be_judged(case))
        case.call_and_validate(base_url=f"{own.base_url}/api", session=session)

    check()


def kept_open() -> Any:
    """Return a client whose connection stays open between requests, and which reads no setting of this machine."""
    from requests import Session

    made = Session()
    made.trust_env = False
    return made


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
COUNTS = ("expected_count", "per_second", "most_rows")


def can_be_judged(case: Any) -> bool:
    """Return False for a case whose answer no schema knows.

    A cursor has to come from a page, a recount is of one partition, the host leaves out parameters without a text and
    takes no address of 8 kB, a number of 19 digits may have more than 64 bits, a count is written without a fraction,
    and there is no hub to be asked here, nor a partition under any name.
    """
    sent = query_of(case)
    number = str(case.path_parameters.get("sequence_number", ""))
    sent_body = case.body if isinstance(case.body, dict) else {}
    ages = sent_body.get("older_than_days")
    refused = [
        number.isdecimal() and int(number) >= 2**63,
        "cursor" in case.query,
        len(urlencode(sent)) > 7_000,
        len([name for name, text in sent if text]) < max(len(sent), len(case.query)),
        any(
            isinstance(each, float)
            for each in (*map(sent_body.get, COUNTS), *(ages.values() if isinstance(ages, dict) else ()))
        ),
        any(sent_body.get(name) is not None for name in NAMED),
    ]
    return not any(refused)


def query_of(case: Any) -> list[tuple[str, str]]:
    """Return the parameters as the client sends them: of an object within a list it sends the names only."""
    from requests import Request

    address = Request("GET", "http://localhost/", params=case.as_transport_kwargs()["params"]).prepare().url or ""
    return parse_qsl(urlsplit(address).query, keep_blank_values=True)


def takes_nothing(operation: Any) -> bool:
    return not operation.body and not list(operation.iter_parameters())
