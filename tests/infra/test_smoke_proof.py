"""The proof that an event became a row: where others send too, and where something is wrong."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from infra.hooks.errors import HookRefused
from infra.hooks.smoke.app import Answer, App, Check, fault_of
from infra.hooks.smoke.proof import prove_event
from tests.fakes.leaping import Leaping

EXPLAINED = {"outcome": "written", "sentence": "Commit 1 wrote 1 row of it.", "range": {"first": "5", "last": "5"}}


FOUND = Answer(200, "application/json", json.dumps(EXPLAINED).encode())


@dataclass(frozen=True)
class Told(App):
    """An app that gives one status after the other, and then the last one again."""

    base_url: str = "http://app"
    statuses: list[Mapping[str, Any]] = field(default_factory=list)
    explained: Answer = FOUND

    def get(self, path: str) -> Answer:
        if path != "/api/status":
            return self.explained
        body = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return Answer(200, "application/json", json.dumps(body).encode())


def status(second: int, *, read: int, end: int, **books: Any) -> dict[str, Any]:
    """Return a status of one second, of a hub that was read at another."""
    checkpoint = books.pop("checkpoint", end)
    partition = {
        "hub_end": str(end),
        "checkpoint": str(checkpoint),
        "written": 0,
        "stops": [],
        "balanced": True,
        **books,
    }
    stopped = {**partition, "partition_id": "0", "stops": [{"reason": "outage"}]}
    return {
        "at": f"2026-01-01T00:00:{second:02}Z",
        "hub_read_at": f"2026-01-01T00:00:{read:02}Z",
        "hub_fault": None,
        "partitions": [stopped, {**partition, "partition_id": "1"}],
    }


def prove(app: App) -> tuple[str, list[str]]:
    """Prove an event, and return the sentence with the partitions to which it was sent."""
    sent: list[str] = []
    return prove_event(app, sent.append, Leaping(1.0)), sent


def test_the_event_goes_to_a_partition_that_is_not_stopped_and_its_range_is_named() -> None:
    before, after = status(1, read=1, end=4), status(3, read=3, end=5, written=1)
    said, sent = prove(Told(statuses=[before, status(2, read=1, end=4), after]))
    assert sent == ["1"]
    assert said == "event 1/5: Commit 1 wrote 1 row of it. Its range is 5 to 5."


def test_an_end_that_was_read_before_the_sending_is_not_taken_for_the_event() -> None:
    """Others send too: number 5 is theirs, and ours is 6."""
    theirs = status(2, read=1, end=5, written=1)
    ours = status(4, read=3, end=6, written=2)
    said, _ = prove(Told(statuses=[status(1, read=0, end=4), theirs, theirs, ours]))
    assert said == "the range 1/5 to 1/6 is accounted for; events of it that became rows: 2"


def test_a_range_without_a_row_is_refused() -> None:
    with pytest.raises(HookRefused, match="partition 1 has no new row for its 2 events up to 6"):
        prove(Told(statuses=[status(1, read=1, end=4), status(2, read=2, end=6)]))


@pytest.mark.parametrize(
    ("books", "reason"),
    [({"checkpoint": 4}, "partition 1 is committed up to 4"), ({"balanced": False}, "partition 1 do not balance")],
)
def test_a_range_that_is_not_committed_or_not_balanced_is_waited_for_until_the_deadline(
    books: dict[str, Any], reason: str
) -> None:
    with pytest.raises(HookRefused, match=rf"waited 300 s for the ledger range of event 1/5: .*{reason}"):
        prove(Told(statuses=[status(1, read=1, end=4), status(2, read=2, end=5, written=1, **books)]))


def test_a_number_that_the_app_cannot_explain_is_refused() -> None:
    lost = Answer(404, "application/problem+json", b"{}")
    with pytest.raises(HookRefused, match="event 1/5 was sent and became no row: the app answers 404"):
        prove(Told(statuses=[status(1, read=1, end=4), status(2, read=2, end=5)], explained=lost))


def test_a_row_without_a_range_in_the_ledger_is_refused() -> None:
    loose = Answer(200, "application/json", json.dumps({**EXPLAINED, "range": None}).encode())
    with pytest.raises(HookRefused, match="event 1/5 was sent and became no row"):
        prove(Told(statuses=[status(1, read=1, end=4), status(2, read=2, end=5, written=1)], explained=loose))


@pytest.mark.parametrize("asks", [401, 403])
def test_an_app_that_asks_for_a_person_proves_the_event_by_its_counts(asks: int) -> None:
    closed, after = Answer(asks, "application/json", b"{}"), status(2, read=2, end=5, written=1)
    said, _ = prove(Told(statuses=[status(1, read=1, end=4), after], explained=closed))
    assert said == "the range 1/5 to 1/5 is accounted for; events of it that became rows: 1"


def test_a_hub_that_the_app_does_not_reach_is_named() -> None:
    blind = {**status(1, read=1, end=4), "hub_fault": "no answer", "hub_read_at": None}
    with pytest.raises(HookRefused, match="waited 300 s for a partition: the app does not reach the hub: no answer"):
        prove(Told(statuses=[blind]))


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (Answer(200, "application/json", b'{"minutes": [], "more": 1}'), None),
        (Answer(200, "application/json", b"{}"), "GET /api/route: the answer has no minutes"),
        (Answer(503, "application/json", b"{}"), "GET /api/route: 503 application/json, not 200 application/json: {}"),
        (Answer(200, "text/html", b"<p>"), "GET /api/route: 200 text/html, not 200 application/json: <p>"),
    ],
)
def test_an_answer_that_differs_from_its_check_is_named(answer: Answer, fault: str | None) -> None:
    assert fault_of(Told(explained=answer), Check("route", holds=("minutes",))) == fault
