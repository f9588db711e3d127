"""incarnations.py and the command: requests for the next incarnation, and those that are refused."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from core.incarnations.next_incarnation import Incarnations, Opening
from handlers import commands as command
from handlers.app import app
from tests.fakes.builders import EPOCH, events
from tests.fakes.engines import SqliteEngine
from tests.handlers.running import HOME, Reply, Running, SettingsHub

CREATED, ORDER = "2026-01-01T01:00:00Z", {"reason": "recreated", "expected_incarnation": 1}
PROBLEM = "urn:hubledger:problem:"


class Streams(Running):
    """The app over a hub in memory, which was recreated after the stream was read from it."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.ingest([0, 1, 2], [HOME, b"{", HOME])
        store = app().core.ingestion.store
        store.adopt_hub(store.read_incarnation(app().settings.stream), EPOCH - timedelta(days=1))
        self.hub = SettingsHub({"0": [], "1": events(0, 4)})
        self.hub.made_at = EPOCH + timedelta(hours=1)
        app.value = replace(app(), hub=self.hub)  # type: ignore[arg-type]

    def ask(self, **body: Any) -> Reply:
        """Request the next incarnation of the first one."""
        return self.post("open_next_incarnation", {**ORDER, **body})

    def incarnation(self) -> int:
        return int(self.sqlite.sql("SELECT MAX(incarnation) FROM event_stream")[0][0])


@pytest.fixture
def streams(
    sqlite: SqliteEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[Streams]:
    made = Streams(sqlite, caplog, monkeypatch)
    yield made
    made.close()


def test_it_is_opened_once_and_a_repetition_finds_it_open(streams: Streams) -> None:
    opened = streams.ask(expected_hub_created_at=CREATED, dry_run=False)
    assert (opened.status, opened.body["outcome"]) == (200, "opened")
    again = streams.ask(expected_hub_created_at=CREATED, dry_run=False)
    assert (again.status, again.body["type"]) == (412, PROBLEM + "state-differs")
    assert (again.body["incarnation"], again.body["hub_created_at"]) == (2, CREATED)
    assert streams.incarnation() == 2
    (line,) = [line for line in streams.lines if line.get("action") == "next_incarnation"]
    assert (line["why"], line["incarnation"]) == ("recreated", 2)


def test_a_hub_that_fits_is_a_conflict_and_one_that_does_not_answer_is_named(streams: Streams) -> None:
    streams.hub.made_at = EPOCH - timedelta(days=1)
    streams.hub.held["1"].clear()
    streams.hub.last["1"] = 9
    fits = streams.ask()
    assert (fits.status, fits.body["type"]) == (409, PROBLEM + "conflict")
    streams.hub.fails = lambda: True
    away = streams.ask()
    assert (away.status, away.body["fault"]) == (503, "HubUnreachable")


class Overtaken(Incarnations):
    """A store in which a different operator is always a moment earlier."""

    def open_incarnation(self, opening: Opening) -> None:
        for _ in range(2):
            super().open_incarnation(opening)


def test_the_slower_of_two_operators_gets_a_conflict(streams: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handlers.operations.incarnations.Incarnations", Overtaken)
    overtaken = streams.ask(expected_hub_created_at=CREATED, dry_run=False)
    assert (overtaken.status, overtaken.body["type"]) == (409, PROBLEM + "conflict")
    assert streams.incarnation() == 2


def test_the_command_does_the_same(streams: Streams, capsys: pytest.CaptureFixture[str]) -> None:
    def run(**body: Any) -> int:
        return command.main(["next-incarnation", json.dumps({**ORDER, **body})])

    assert run() == 0
    assert json.loads(capsys.readouterr().out) == streams.ask().body
    assert (run(dry_run=False), capsys.readouterr().out) == (1, "")
    assert run(dry_run=False, expected_hub_created_at=CREATED) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "opened"
    assert run(dry_run=False, expected_hub_created_at=CREATED) == 1
    assert "the stream is in incarnation 2" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        run(unknown=True)
