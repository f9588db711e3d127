import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from core.app import verified_hub
from core.incarnations.next_incarnation import Incarnations, Opening
from handlers import commands as command
from handlers.app import app
from tests.fakes.builders import EPOCH
from tests.fakes.engines import SqliteEngine
from tests.handlers.running import HOME, MOTION, Reply, Running, SettingsHub

BODIES = [HOME, MOTION, MOTION.replace(b"home-1", b"home-2"), MOTION]  # of home-2 nothing is known: the letter waits
UNREACHABLE, DIFFERENT = "HubUnreachable", "StreamIncarnationChanged"
LETTER = {"partition_id": "1", "sequence_number": "2"}


class Swapped(Running):
    """The app over four events of which one is a letter without its body. `right` is the hub that has them."""

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
def test_a_replay_holds_with_the_fault(swapped: Swapped, asked: dict[str, Any], swap: Swap, fault: str) -> None:
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


CREATED, ORDER = "2026-01-01T01:00:00Z", {"reason": "recreated", "expected_incarnation": 1}
OPENING = {"expected_hub_created_at": CREATED, "dry_run": False}
PROBLEM = "urn:hubledger:problem:"


@pytest.fixture
def recreated(swapped: Swapped) -> Swapped:
    swapped.give(*BODIES, made_at=EPOCH + timedelta(hours=1))
    return swapped


def open_next(to: Running, **body: Any) -> Reply:
    return to.post("open_next_incarnation", {**ORDER, **body})


def incarnation(of: Running) -> int:
    return int(of.sqlite.sql("SELECT MAX(incarnation) FROM event_stream")[0][0])


def test_the_next_incarnation_is_opened_once_and_a_repetition_finds_it_open(recreated: Swapped) -> None:
    opened = open_next(recreated, **OPENING)
    assert (opened.status, opened.body["outcome"]) == (200, "opened")
    again = open_next(recreated, **OPENING)
    assert (again.status, again.body["type"]) == (412, PROBLEM + "state-differs")
    assert (again.body["incarnation"], again.body["hub_created_at"]) == (2, CREATED)
    assert incarnation(recreated) == 2
    (line,) = [line for line in recreated.lines if line.get("action") == "next_incarnation"]
    assert ("why" in line, line["incarnation"]) == (False, 2)


def test_a_hub_that_fits_gets_no_next_incarnation_and_one_that_does_not_answer_is_named(swapped: Swapped) -> None:
    fits = open_next(swapped)
    assert (fits.status, fits.body["type"]) == (409, PROBLEM + "conflict")
    break_off(swapped)
    away = open_next(swapped)
    assert (away.status, away.body["fault"]) == (503, "HubUnreachable")


class Overtaken(Incarnations):
    """A store in which a different operator is always a moment earlier."""

    def open_incarnation(self, opening: Opening) -> None:
        for _ in range(2):
            super().open_incarnation(opening)


def test_the_slower_of_two_operators_gets_a_conflict(recreated: Swapped, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handlers.operations.incarnations.Incarnations", Overtaken)
    overtaken = open_next(recreated, **OPENING)
    assert (overtaken.status, overtaken.body["type"]) == (409, PROBLEM + "conflict")
    assert incarnation(recreated) == 2


def test_the_command_opens_the_next_incarnation_too(recreated: Swapped, capsys: pytest.CaptureFixture[str]) -> None:
    def run(**body: Any) -> tuple[int, str]:
        code = command.main(["next-incarnation", json.dumps({**ORDER, **body})])
        found = capsys.readouterr()
        return code, found.out or found.err

    code, out = run()
    assert (code, json.loads(out)) == (0, open_next(recreated).body)
    assert run(dry_run=False)[0] == 1
    code, out = run(**OPENING)
    assert (code, json.loads(out)["outcome"]) == (0, "opened")
    code, said = run(**OPENING)
    assert (code, "the stream is in incarnation 2" in said) == (1, True)
    with pytest.raises(SystemExit, match="2"):
        run(unknown=True)
