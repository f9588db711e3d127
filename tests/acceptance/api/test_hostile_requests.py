"""Thousands of hostile requests: newlines in paths, forged cursors, and what schemathesis makes of the description."""

import base64
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from uuid import UUID

import msgspec
import pytest

from core.api.operation import cursor_of, query_of
from core.model.events import PartitionId, SequenceNumber, Span
from core.replay.pieces import PartitionRange
from core.replay.store import Replays
from examples.home_security.shapes import HomesQuery
from handlers.operations.aggregations import AggregationsQuery
from handlers.operations.letters import LettersQuery
from handlers.operations.tasks import TasksQuery
from tests.acceptance.api.routes import JOB, VALUES, filled, served_by_the_app
from tests.acceptance.api.served import HUB, Served, segment
from tests.acceptance.api.test_bad_input import BEFORE_READING, asked, is_problem, names
from tests.acceptance.api.test_description import NO_SCHEMATHESIS, kept_open, label_of, of_this_app
from tests.fakes.builders import partition
from tests.fakes.replaying import opened, replay_asked

pytestmark = [pytest.mark.slow, pytest.mark.soak]

AT = "2026-01-01T00:00:00Z"
ENDS = ("\n", "\r\n", "\x00", "\u2028", " ", "\x85", "\x0b")
NUMBERS: tuple[Any, ...] = (2**63, 2**64, 10**30, -1, -(2**63) - 1, 1.5, 1e300, "1", None, True, [1], {"a": 1})
MOMENTS: tuple[Any, ...] = (
    *("2026-01-01T00:00:00", "2026-01-01", "now", "", 1767225600, 1e9, None, False, [AT]),
    *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-13-01T00:00:00Z", AT + "\n"),
)
TEXTS: tuple[Any, ...] = ("0\n", "\x00", "é", "x" * 500, "'; DROP TABLE home; --", 7, None, True, ["0"], {})
IDS: tuple[Any, ...] = ("x", JOB + "\n", JOB[:-1], 7, None, True, [JOB])
SHAPES: tuple[Any, ...] = ([], {}, None, 1, "x", [[AT]], [[]], [None] * 3, [AT, "0", 1, 2], [JOB, AT, 1], [1, 2])

# The query that a cursor of each list is bound to, and keys that are wrong in one field each.
BOUND: Mapping[str, object] = {
    "dead-letters": query_of(LettersQuery()),
    "revealed/dead-letters": query_of(LettersQuery()),
    "homes": query_of(HomesQuery()),
    "aggregations": query_of(AggregationsQuery()),
    "tasks": ("tasks", query_of(TasksQuery())),
    f"tasks/{JOB}/diff": JOB,
}
OF_LETTERS: tuple[Any, ...] = (
    *([at, "0", 1] for at in MOMENTS),
    *([AT, id, 1] for id in TEXTS),
    *([AT, "0", number] for number in NUMBERS),
)
WRONG: Mapping[str, tuple[Any, ...]] = {
    "dead-letters": OF_LETTERS,
    "revealed/dead-letters": OF_LETTERS,
    "homes": tuple([id] for id in TEXTS),
    "aggregations": tuple([number] for number in NUMBERS),
    "tasks": (*([at, JOB] for at in MOMENTS), *([AT, id] for id in IDS)),
    f"tasks/{JOB}/diff": (*([id, 1] for id in TEXTS), *(["0", number] for number in NUMBERS)),
}


def forged(bound: object, key: object) -> str:
    """Return a cursor that belongs to a query, with any JSON as its key."""
    own = cursor_of(bound, ())
    mark = msgspec.json.decode(base64.urlsafe_b64decode(own + "=" * (-len(own) % 4)))[0]
    return base64.urlsafe_b64encode(msgspec.json.encode([mark, key])).decode().rstrip("=")


def open_replay(store: Replays) -> None:
    """Open a dry run, so that there is a list of its diffs."""
    ranges = (PartitionRange(PartitionId("0"), Span(SequenceNumber(0), SequenceNumber(9))),)
    opened(store, replay_asked(UUID(JOB), ranges), partition("0", hub=HUB).stream)


REQUESTS, PARTS = 3_000, 2
SPOILS = 4  # requests of each case, because a case is dear and a hostile part is cheap
OF_THE_HUB = ("put_task", "open_next_incarnation")  # they read the hub, and there is none here: 503


@pytest.fixture(scope="module")
def attacked(own: Served) -> Served:
    open_replay(own.store)
    return own


def test_a_newline_in_any_value_of_a_path_is_refused(attacked: Served) -> None:
    for template, method in served_by_the_app():
        for name in re.findall(r"\{(\w+)\}", template):
            for text in (text for end in ENDS for text in (VALUES[name] + end, end + VALUES[name], end)):
                path = filled(template.replace(f"{{{name}}}", segment(text)))
                is_problem(asked(attacked, method, path), 400, 404, *BEFORE_READING.get(template, ()), case=path)


@pytest.mark.parametrize("path", BOUND)
def test_a_forged_cursor_of_any_type_is_refused(attacked: Served, path: str) -> None:
    for key in (*WRONG[path], *SHAPES):
        names(attacked.get(path, cursor=forged(BOUND[path], key)), "cursor", (path, key))


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
