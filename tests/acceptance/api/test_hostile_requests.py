"""schemathesis makes requests from the description, with hostile cursors and newlines in them: none is answered 5xx."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import pytest

from tests.acceptance.api.conftest import fill
from tests.acceptance.api.hostile import BOUND, ENDS, JOB, WRONG, forged, open_replay
from tests.acceptance.api.served import Served
from tests.acceptance.api.test_description import NO_SCHEMATHESIS, kept_open, label_of, of_this_app

REQUESTS, PARTS = 3_000, 2
SPOILS = 4  # requests of each case, because a case is dear and a hostile part is cheap
OF_THE_HUB = ("put_task", "open_next_incarnation")  # they read the hub, and there is none here: 503


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A separate host: some of the requests change its store."""
    made = Served(tmp_path_factory.mktemp("hostile"))
    fill(made)
    open_replay(made.store)
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_hostile_request_is_answered_with_a_fault(attacked: Served, part: int) -> None:
    requests = REQUESTS // PARTS
    assert _sent(attacked, requests, lambda names: names[part::PARTS]) >= requests


def _sent(served: Served, requests: int, chosen: Callable[[list[str]], list[str]]) -> int:
    """Spread hostile requests over the chosen operations; return their number."""
    schemathesis = pytest.importorskip("schemathesis", reason=NO_SCHEMATHESIS)
    description = of_this_app(served.get("openapi.json").json)
    names = chosen([one["operationId"] for methods in description["paths"].values() for one in methods.values()])
    schema = schemathesis.openapi.from_dict(description)
    return sum(_attacked(served, schema, name, -(-requests // len(names))) for name in names)


def _attacked(served: Served, schema: Any, name: str, requests: int) -> int:
    """Send hostile requests to one operation; return their number."""
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings, strategies

    operation = schema.find_operation_by_label(label_of(name))
    modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
    takes = bool(operation.body) or bool(list(operation.iter_parameters()))
    cases = strategies.one_of([operation.as_strategy(generation_mode=mode) for mode in modes[: 1 + takes]])
    session, sent = kept_open(), 0

    def send(case: Any, hostiles: Any) -> None:
        nonlocal sent
        path, query, body = dict(case.path_parameters or {}), dict(case.query or {}), case.body
        for hostile in hostiles:
            case.path_parameters, case.query, case.body = dict(path), dict(query), body
            _spoil(case, hostile)
            answer = case.call(base_url=f"{served.base_url}/api", session=session)
            sent += 1
            is_known = name in OF_THE_HUB and answer.status_code == 503 and answer.json()["fault"] == "HubUnreachable"
            assert answer.status_code < 500 or is_known, (case, answer.text)

    how = settings(derandomize=True, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    while sent < requests:  # an operation without any value has fewer examples than requests
        before = sent
        settings(how, max_examples=-(-(requests - sent) // SPOILS))(given(cases, _hostiles())(send))()
        assert sent > before
    session.close()
    return sent


@cache
def _hostiles() -> Any:
    """Return a strategy of the parts that spoil a case, each in a request of its own.

    A part is the end of a value, a key of a cursor, or neither.
    """
    from hypothesis import strategies

    json = strategies.recursive(
        strategies.none()
        | strategies.booleans()
        | strategies.integers()
        | strategies.floats(allow_nan=False)
        | strategies.text(max_size=20),
        lambda inner: strategies.lists(inner, max_size=4) | strategies.dictionaries(strategies.text(max_size=4), inner),
        max_leaves=6,
    )
    known = strategies.sampled_from([key for keys in WRONG.values() for key in keys])
    ends = strategies.sampled_from(["", "", *ENDS])
    one = strategies.fixed_dictionaries({"end": ends, "key": json | known, "as_text": strategies.booleans()})
    return strategies.lists(one, min_size=SPOILS, max_size=SPOILS, unique_by=repr)


def _spoil(case: Any, hostile: Mapping[str, Any]) -> None:
    """Put the hostile parts into a request."""
    for name, value in (case.path_parameters or {}).items():
        case.path_parameters[name] = f"{value}{hostile['end']}"
    if not case.path_parameters:
        case.query = {name: _longer(value, hostile["end"]) for name, value in case.query.items()}
        if isinstance(case.body, dict):
            case.body = {name: _longer(value, hostile["end"]) for name, value in case.body.items()}
    if case.path == "/tasks/{task_id}/diff":
        case.path_parameters["task_id"] = JOB
    path = case.path.lstrip("/").replace("{task_id}", JOB)
    if case.method == "GET" and path in BOUND:
        key = hostile["key"]
        if hostile["as_text"]:
            case.query = {**(case.query or {}), "cursor": str(key)[:900]}
        else:
            case.query = {"cursor": forged(BOUND[path], key)}


def _longer(value: Any, end: str) -> Any:
    """Return a text with a hostile end; what is no text stays as it is."""
    return f"{value}{end}" if isinstance(value, str) else value
