"""Every reader of the hub in the app, while the hub is a different one, an emptied one, or out of reach."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from core.app import verified_hub
from handlers.app import app
from tests.fakes.builders import EPOCH
from tests.fakes.engines import SqliteEngine
from tests.handlers.running import HOME, MOTION, Running, SettingsHub

BODIES = [HOME, MOTION, MOTION.replace(b"home-1", b"home-2"), MOTION]  # of home-2 nothing is known: the letter waits
UNREACHABLE, DIFFERENT = "HubUnreachable", "StreamIncarnationChanged"
LETTER = {"partition_id": "1", "sequence_number": "2"}


class Swapped(Running):
    """The app over four events of which one is a letter without its body; `right` is the hub that has them."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.restart(KEEP_BODIES="false", ERASURE_KEY="a secret of at least 32 characters")
        self.ingest([0, 1, 2, 3], BODIES)
        self.right = self.give(*BODIES, made_at=EPOCH - timedelta(days=1))
        store = app().core.ingestion.store
        store.adopt_hub(store.read_incarnation(app().settings.stream), self.right.made_at)

    def give(self, *bodies: bytes, made_at: Any = EPOCH) -> SettingsHub:
        """Give the app a hub with these events."""
        hub = self.give_hub(*bodies)
        hub.made_at = made_at
        self.back(hub)
        return hub

    def back(self, hub: SettingsHub) -> None:
        core = app().core
        retrying = replace(core.retrying, find_event=verified_hub(hub, core.patient).find_event)
        app.value = replace(app(), hub=hub, core=replace(core, retrying=retrying))  # type: ignore[arg-type]


def break_off(swapped: Swapped) -> None:
    swapped.give(*BODIES, made_at=swapped.right.made_at).fails = lambda: True


HUBS: dict[str, tuple[Callable[[Swapped], object], str]] = {
    "recreated": (lambda to: to.give(), DIFFERENT),
    "refilled": (lambda to: to.give(*[HOME] * 9), DIFFERENT),  # it reached the old numbers at once
    "of other numbers": (lambda to: to.give(*[HOME] * 9).expire_before("1", 6), DIFFERENT),  # retention took the old
    "emptied": (lambda to: to.give(made_at=to.right.made_at), DIFFERENT),
    "unreachable": (break_off, UNREACHABLE),
}
given_hubs = pytest.mark.parametrize(("swap", "fault"), HUBS.values(), ids=HUBS)
Swap = Callable[[Swapped], object]


@pytest.fixture
def swapped(
    sqlite: SqliteEngine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Swapped]:
    made = Swapped(sqlite, caplog, monkeypatch)
    yield made
    made.close()


@given_hubs
@pytest.mark.parametrize(
    "asked",
    [{"dry_run": False}, {"dry_run": True}, {"dry_run": False, "keys": ["sensor-1"]}],
    ids=["replay", "dry run", "replay by key"],
)
def test_a_replay_holds_with_the_fault_and_goes_on_when_its_hub_is_back(
    swapped: Swapped, asked: dict[str, Any], swap: Swap, fault: str
) -> None:
    job = swapped.open("replay", reason="the hub may change", **asked)["task_id"]
    swap(swapped)
    assert swapped.drive(job) == {"error": fault}
    held = swapped.task(job)
    assert (held["status"], held["done"], held["counts"]["gone"]) == ("running", 0, 0)
    assert ("incarnation" in held["fault"]) == (fault == DIFFERENT)
    swapped.back(swapped.right)
    swapped.drive(job)
    done = swapped.task(job)
    assert (done["status"], done["fault"], done["done"], done["counts"]["gone"]) == ("done", None, 4, 0)


@given_hubs
def test_a_letter_without_its_body_waits_uncounted(swapped: Swapped, swap: Swap, fault: str) -> None:
    def retry() -> tuple[Any, ...]:
        swapped.sqlite.sql("UPDATE event_hub_dead_letter SET due_at = '2020-01-01T00:00:00.000000Z'")
        swapped.keep()
        (found,) = swapped.sqlite.sql("SELECT status, attempts FROM event_hub_dead_letter")
        return found

    swap(swapped)
    assert retry() == ("waiting", 1)
    shown = swapped.get("status").body
    assert (shown["letters"]["open"], shown["hub_forgets"]["events_lost"]) == (1, 0), "none counts as gone"
    swapped.back(swapped.right)
    assert retry() == ("waiting", 2)
    swapped.right.expire_before("1", 3)
    assert retry() == ("exhausted", 2)


REQUESTS: dict[str, Callable[[Swapped], Any]] = {
    "a replay from a time": lambda to: to.put(
        "replay", {"reason": "by time", "from": {"enqueued_at": "2026-01-01T00:00:00Z"}}
    ),
    "a replay from an offset": lambda to: to.put(
        "replay", {"reason": "by offset", "partitions": ["1"], "from": {"offset": "128"}}
    ),
    "a body that was not stored": lambda to: to.get("reveal_letter", LETTER, body="text"),
    "an erasure": lambda to: to.put("erasure", {"reason": "asked for", "subjects": ["x"], "dry_run": False}),
}


@given_hubs
@pytest.mark.parametrize("ask", REQUESTS.values(), ids=REQUESTS)
def test_a_request_that_needs_the_hub_is_refused(
    swapped: Swapped, ask: Callable[[Swapped], Any], swap: Swap, fault: str
) -> None:
    swap(swapped)
    refused = ask(swapped)
    expected = (503, UNREACHABLE, "unavailable") if fault == UNREACHABLE else (409, DIFFERENT, "conflict")
    assert (refused.status, refused.body["fault"], refused.body["type"].rpartition(":")[2]) == expected
    assert swapped.tasks() == []
    swapped.back(swapped.right)
    assert ask(swapped).status in (200, 201)
