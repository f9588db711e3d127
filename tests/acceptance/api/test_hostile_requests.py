"""schemathesis makes requests from the description, with hostile cursors and newlines in them: none is answered 5xx."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.acceptance.api.conftest import fill
from tests.acceptance.api.hostile import BOUND, ENDS, JOB, WRONG, forged, replay
from tests.acceptance.api.served import Served
from tests.acceptance.api.test_description import NO_SCHEMATHESIS, label_of, of_this_app

REQUESTS, PARTS, FEW = 10_000, 4, 200
# The operations with cursors.
LISTS = ("list_letters", "reveal_letters", "list_replays", "show_replay_diff", "list_aggregations", "find_homes")
OF_THE_HUB = ("start_replay", "open_next_incarnation")  # they read the hub, and there is none here: 503


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A separate host: some of the requests change its store."""
    made = Served(tmp_path_factory.mktemp("hostile"))
    fill(made)
    made.store.open_replay(replay())
    yield made
    made.close()


def test_no_hostile_request_to_a_list_is_answered_with_a_fault(attacked: Served) -> None:
    assert _sent(attacked, FEW, lambda names: [name for name in names if name in LISTS]) >= FEW


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
    sent = 0

    def send(case: Any, hostile: Any) -> None:
        nonlocal sent
        _spoil(case, hostile)
        answer = case.call(base_url=f"{served.base_url}/api")
        sent += 1
        is_known = name in OF_THE_HUB and answer.status_code == 503 and answer.json()["fault"] == "HubUnreachable"
        assert answer.status_code < 500 or is_known, (case, answer.text)

    how = settings(derandomize=True, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    while sent < requests:  # an operation without any value has fewer examples than requests
        before = sent
        settings(how, max_examples=requests - sent)(given(cases, _hostile())(send))()
        assert sent > before
    return sent


def _hostile() -> Any:
    """Return a strategy of the parts that spoil a request: the end of a path's value, a key of a cursor, or neither."""
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
    return strategies.fixed_dictionaries({"end": ends, "key": json | known, "as_text": strategies.booleans()})


def _spoil(case: Any, hostile: Mapping[str, Any]) -> None:
    """Put the hostile parts into a request."""
    for name, value in (case.path_parameters or {}).items():
        case.path_parameters[name] = f"{value}{hostile['end']}"
    if case.path == "/replays/{job_id}/diff":
        case.path_parameters["job_id"] = JOB
    path = case.path.lstrip("/").replace("{job_id}", JOB)
    if case.method == "GET" and path in BOUND:
        key = hostile["key"]
        if hostile["as_text"]:
            case.query = {**(case.query or {}), "cursor": str(key)[:900]}
        else:
            case.query = {"cursor": forged(BOUND[path], key)}
