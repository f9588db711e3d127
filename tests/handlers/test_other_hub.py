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
from tests.handlers.running import HOME, MOTION, Running, SettingsHub, handed_over

BODIES = [HOME, MOTION, MOTION.replace(b"home-1", b"home-2"), MOTION]  # of home-2 nothing is known: the letter waits
UNREACHABLE, DIFFERENT = "HubUnreachable", "StreamIncarnationChanged"
LETTER = {"partition_id": "1", "sequence_number": "2"}


class Swapped(Running):
    """The app over four events of which one is a letter without its body; `right` is the hub that has them."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.restart(KEEP_BODIES="false", ERASURE_KEY="a secret of at least 32 characters")
        self.ingest([0, 1, 2, 3], BODIES)
        own = app()
        self.right = self.hub(BODIES, EPOCH - timedelta(days=1))
        store = own.core.ingestion.store
        store.adopt_hub(store.read_incarnation(own.settings.stream), self.right.made_at)
        self.give(self.right)

    def hub(self, bodies: list[bytes], made_at: Any) -> SettingsHub:
        made = SettingsHub({"1": [handed_over(number, body) for number, body in enumerate(bodies)]})
        made.made_at = made_at
        return made

    def give(self, hub: SettingsHub) -> None:
        """Let the app have a hub."""
        core, reading = app().core, verified_hub(hub, app().core.patient)
        retrying = replace(core.retrying, find_event=reading.find_event)
        app.value = replace(app(), hub=hub, core=replace(core, retrying=retrying))  # type: ignore[arg-type]


def recreated(swapped: Swapped) -> SettingsHub:
    return swapped.hub([], EPOCH)


def refilled(swapped: Swapped) -> SettingsHub:
    """Make a hub that reached the old numbers at once."""
    return swapped.hub([HOME] * 9, EPOCH)


def of_other_numbers(swapped: Swapped) -> SettingsHub:
    """Make a hub of which retention has taken all the old numbers."""
    made = swapped.hub([HOME] * 9, EPOCH)
    made.expire_before("1", 6)
    return made


def emptied(swapped: Swapped) -> SettingsHub:
    return swapped.hub([], swapped.right.made_at)


def unreachable(swapped: Swapped) -> SettingsHub:
    made = swapped.hub(BODIES, swapped.right.made_at)
    made.fails = lambda: True
    return made


HUBS = {
    one.__name__: (one, UNREACHABLE if one is unreachable else DIFFERENT)
    for one in (recreated, refilled, of_other_numbers, emptied, unreachable)
}
given_hubs = pytest.mark.parametrize(("make", "fault"), HUBS.values(), ids=HUBS)
Make = Callable[[Swapped], SettingsHub]


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
    swapped: Swapped, asked: dict[str, Any], make: Make, fault: str
) -> None:
    job = swapped.open("replay", reason="the hub may change", **asked)["task_id"]
    swapped.give(make(swapped))
    assert swapped.drive(job) == {"error": fault}
    held = swapped.task(job)
    assert (held["status"], held["done"], held["counts"]["gone"]) == ("running", 0, 0)
    assert ("incarnation" in held["fault"]) == (fault == DIFFERENT)
    swapped.give(swapped.right)
    swapped.drive(job)
    done = swapped.task(job)
    assert (done["status"], done["fault"], done["done"], done["counts"]["gone"]) == ("done", None, 4, 0)


@given_hubs
def test_a_letter_without_its_body_waits_uncounted(swapped: Swapped, make: Make, fault: str) -> None:
    def retry() -> tuple[Any, ...]:
        swapped.sqlite.sql("UPDATE event_hub_dead_letter SET due_at = '2020-01-01T00:00:00.000000Z'")
        swapped.keep()
        (found,) = swapped.sqlite.sql("SELECT status, attempts FROM event_hub_dead_letter")
        return found

    swapped.give(make(swapped))
    assert retry() == ("waiting", 1)
    swapped.give(swapped.right)
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
    swapped: Swapped, ask: Callable[[Swapped], Any], make: Make, fault: str
) -> None:
    swapped.give(make(swapped))
    refused = ask(swapped)
    expected = (503, UNREACHABLE, "unavailable") if fault == UNREACHABLE else (409, DIFFERENT, "conflict")
    assert (refused.status, refused.body["fault"], refused.body["type"].rpartition(":")[2]) == expected
    assert swapped.tasks() == []
    swapped.give(swapped.right)
    assert ask(swapped).status in (200, 201)


@given_hubs
def test_the_burn_down_counts_no_letter_as_gone(swapped: Swapped, make: Make, fault: str) -> None:
    swapped.give(make(swapped))
    shown = swapped.get("status").body
    assert (shown["letters"]["open"], shown["hub_forgets"]["events_lost"]) == (1, 0)
