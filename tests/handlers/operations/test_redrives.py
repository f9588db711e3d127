"""handlers/operations/redrives.py, with the activities and the timer of handlers/tasks.py, over an embedded store."""

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from core.errors import StoreUnavailable
from core.store.database import Database, PatientDatabase, Waiting
from core.store.script import Named, Outcome, Script
from handlers.app import app
from handlers.operations.tasks import kind_named
from tests.fakes.engines import SqliteEngine
from tests.handlers.running import CONTEXT, HOME, Reply, Running, functions

ORDER = {"move": "retry", "filter": {}, "expected_count": 3, "reason": "the transform was fixed"}
LETTER = {"partition_id": "1", "sequence_number": "1"}


def chosen(*letters: object) -> dict[str, object]:
    """Return an order that chooses letters instead of a filter."""
    return {**{name: value for name, value in ORDER.items() if name != "filter"}, "letters": letters}


REFUSED: dict[str, tuple[object, str]] = {
    "no move": ({**ORDER, "move": None}, "move"),
    "a different move": ({**ORDER, "move": "release"}, "move"),
    "no count": ({**ORDER, "expected_count": None}, "expected_count"),
    "a count of nothing": ({**ORDER, "expected_count": 0}, "expected_count"),
    "a count below zero": ({**ORDER, "expected_count": -1}, "expected_count"),
    "a count that is a text": ({**ORDER, "expected_count": "1"}, "expected_count"),
    "a count of 100 bits": ({**ORDER, "expected_count": 10**30}, "expected_count"),
    "both ways to choose": ({**ORDER, "letters": [LETTER]}, "filter"),
    "no way to choose": ({name: ORDER[name] for name in ORDER if name != "filter"}, "letters"),
    "a rate of nothing": ({**ORDER, "per_second": 0}, "per_second"),
    "no letters": (chosen(), "letters"),
    "too many letters": (chosen(*[LETTER] * 3_001), "letters"),
    "a letter without a number": (chosen({"partition_id": "1"}), "letters[0].sequence_number"),
    "a number that is a number": (chosen({**LETTER, "sequence_number": 1}), "letters[0].sequence_number"),
    "a number of 65 bits": (chosen({**LETTER, "sequence_number": str(2**63)}), "letters[0].sequence_number"),
    "no reason": ({**ORDER, "reason": None}, "reason"),
    "an empty reason": ({**ORDER, "reason": ""}, "reason"),
    "a reason that is too short": ({**ORDER, "reason": "x"}, "reason"),
    "a reason that is too long": ({**ORDER, "reason": "x" * 401}, "reason"),
    "an unknown field": ({**ORDER, "dry_run": True}, "dry_run"),
    "an unknown field of the filter": ({**ORDER, "filter": {"colour": "red"}}, "filter.colour"),
    "an unknown status": ({**ORDER, "filter": {"status": "open"}}, "filter.status"),
    "a hostile partition": ({**ORDER, "filter": {"partition_id": "../.."}}, "filter.partition_id"),
}


class Redrives(Running):
    """The app over four events of partition 1, of which three are letters."""

    def begin(self) -> None:
        """Ingest the events."""
        self.ingest([0, 1, 2, 3], [HOME, b"{", b"[", b"{"])

    def start(self, **changed: object) -> Reply:
        """Request a redrive."""
        return self.put("redrive", {**ORDER, **changed})

    def plan(self, **changed: object) -> Reply:
        """Request a redrive with a rate: it is not worked on before its driver comes."""
        return self.start(per_second=100_000, **changed)

    def show(self, redrive_id: str) -> Reply:
        """Show a job."""
        return self.get("show_task", {"task_id": redrive_id})

    def move(self, redrive_id: str, verb: str) -> Reply:
        """Pause, resume or cancel a job."""
        return self.post(f"{verb}_task", {"reason": "because I say so"}, {"task_id": redrive_id})

    def work(self, redrive_id: str) -> Any:
        """Let the activity do its work."""
        return functions()["task_slice"]({"task_id": redrive_id, "part": None})


def keep() -> None:
    """Retry the letters that are due, as the keeper does."""
    for chunk in functions()["claim_letters"](None):
        functions()["retry_letters"](chunk, CONTEXT)


@pytest.fixture
def redrives(
    sqlite: SqliteEngine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Redrives]:
    made = Redrives(sqlite, caplog, monkeypatch)
    made.begin()
    yield made
    made.close()


def test_a_preview_counts_the_letters_by_cause_and_shows_some_and_changes_nothing(redrives: Redrives) -> None:
    shown = redrives.get("preview_redrive", move="retry").body
    assert shown["count"] == 3
    assert sum(one["letters"] for one in shown["causes"]) == 3
    assert {one["error_class"] for one in shown["causes"]} == {"poison"}
    assert [one["sequence_number"] for one in shown["sample"]] == ["1", "2", "3"]
    assert {one["error"] for one in shown["sample"]} == {None}
    assert redrives.get("preview_redrive", move="retry", status="held").body == {"count": 0, "causes": [], "sample": []}
    assert redrives.get("list_tasks").body["tasks"] == []
    assert redrives.get("preview_redrive").status == 400


def test_a_redrive_is_accepted_and_driven_and_done(redrives: Redrives) -> None:
    reply = redrives.plan(filter={"status": "exhausted"})
    job = reply.body
    assert (reply.status, reply.headers["Location"]) == (201, f"/api/tasks/{job['task_id']}")
    assert (job["status"], job["move"], job["filter"], job["letters"]) == (
        "planned", "retry", {"status": "exhausted"}, None
    )  # fmt: skip
    assert redrives.client.started == [["drive_task", f"task-{job['task_id']}", job["task_id"]]]
    assert redrives.work(job["task_id"])["ok"] == {"is_over": True, "pieces": 2, "looked_at": 3, "part": None}
    done = redrives.show(job["task_id"]).body
    assert (done["status"], done["total"], done["done"], done["moved"], done["unmoved"]) == ("done", 3, 3, 3, 0)
    assert [one["move"] for one in done["history"]] == ["begin"]
    assert redrives.get("list_tasks").body["tasks"] == [done]
    assert redrives.get("preview_redrive", move="retry", status="waiting").body["count"] == 3


def test_letters_are_moved_when_the_answer_comes_and_nothing_is_driven(redrives: Redrives) -> None:
    reply = redrives.start(move="discard")
    done = reply.body
    assert (reply.status, done["status"], done["moved"], done["total"]) == (201, "done", 3, 3)
    assert redrives.client.started == []
    assert redrives.get("list_letters", status="discarded").body["letters"][2]["settled_why"] == ORDER["reason"]


def test_ten_thousand_letters_and_more_are_moved_by_one_request(redrives: Redrives) -> None:
    names = [name for (name,) in redrives.sqlite.sql("SELECT name FROM pragma_table_info('event_hub_dead_letter')")]
    copied = ", ".join("d.sequence_number + n.value" if name == "sequence_number" else f"d.{name}" for name in names)
    redrives.sqlite.sql(
        f"INSERT INTO event_hub_dead_letter SELECT {copied} FROM event_hub_dead_letter AS d,"
        " (WITH RECURSIVE n (value) AS (SELECT 1000 UNION ALL SELECT value + 1 FROM n WHERE value < 12996)"
        "  SELECT value FROM n) AS n WHERE d.sequence_number = 1"
    )
    done = redrives.start(expected_count=12_000).body
    while done["status"] != "done":  # a slow machine: its driver goes on
        redrives.work(done["task_id"])
        done = redrives.show(done["task_id"]).body
    assert (done["moved"], done["unmoved"]) == (12_000, 0)


def test_a_redrive_that_is_not_done_in_its_time_goes_on_and_keeps_a_second_one_out(
    redrives: Redrives, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.letters.redrive.RedriveKind.at_once", timedelta())
    reply = redrives.start()
    job = reply.body
    assert (reply.status, job["status"], job["moved"]) == (201, "running", 3)  # the part is not closed yet
    assert redrives.client.started == [["drive_task", f"task-{job['task_id']}", job["task_id"]]]
    second = redrives.start()
    assert (second.status, second.body["type"]) == (409, "urn:hubledger:problem:task-overlap")
    assert second.body["task_id"] == job["task_id"]
    redrives.work(job["task_id"])
    assert redrives.show(job["task_id"]).body["status"] == "done"


def test_a_fault_while_the_request_is_answered_is_the_task_s_own(redrives: Redrives) -> None:
    redrives.sqlite.sql("ALTER TABLE dead_letter_attempt RENAME TO taken_away")
    reply = redrives.start()
    job = reply.body
    assert (reply.status, job["status"], job["moved"]) == (201, "running", 0)
    assert "dead_letter_attempt" in job["fault"]
    assert redrives.client.started == [["drive_task", f"task-{job['task_id']}", job["task_id"]]]
    redrives.sqlite.sql("ALTER TABLE taken_away RENAME TO dead_letter_attempt")
    app.value = replace(app())
    redrives.work(job["task_id"])
    assert redrives.show(job["task_id"]).body["moved"] == 3


def test_a_retry_says_what_became_of_its_letters_at_their_next_try(redrives: Redrives) -> None:
    task_id = redrives.start().body["task_id"]
    waiting = redrives.show(task_id).body["outcome"]
    assert (waiting["result"], waiting["not_tried"]) == ("not_tried", 3)
    keep()
    outcome = redrives.show(task_id).body["outcome"]
    assert outcome == {
        "letters": 3, "resolved": 0, "failed_again": 3, "same_cause": 3, "not_tried": 0, "discarded": 0,
        "result": "did_not_help", "words": "0 resolved, 3 failed again for the same cause",
    }  # fmt: skip
    assert redrives.get("list_tasks").body["tasks"][0]["outcome"] == outcome


def test_what_happens_later_changes_the_outcome_of_no_earlier_retry(redrives: Redrives) -> None:
    earlier = redrives.start().body["task_id"]
    keep()
    was = redrives.show(earlier).body["outcome"]
    redrives.sqlite.sql("UPDATE event_hub_dead_letter SET body = ? WHERE sequence_number = 1", HOME)
    later = redrives.start().body["task_id"]
    keep()
    outcome = redrives.show(later).body["outcome"]
    assert (outcome["result"], outcome["words"]) == (
        "helped_in_part", "1 resolved, 2 failed again for the same cause"
    )  # fmt: skip
    assert redrives.show(earlier).body["outcome"] == was


def test_a_letter_that_is_moved_twice_before_its_try_counts_for_both_retries(redrives: Redrives) -> None:
    first, second = redrives.start().body["task_id"], redrives.start().body["task_id"]
    redrives.sqlite.sql("UPDATE event_hub_dead_letter SET body = ?", HOME)
    keep()
    assert [redrives.show(one).body["outcome"]["words"] for one in (first, second)] == [
        "3 resolved, 0 failed again"
    ] * 2


def test_a_letter_that_fails_for_another_cause_says_so(redrives: Redrives) -> None:
    task_id = redrives.start(
        letters=[{"partition_id": "1", "sequence_number": "1"}], filter=None, expected_count=1
    ).body["task_id"]
    redrives.sqlite.sql("UPDATE event_hub_dead_letter SET body = ? WHERE sequence_number = 1", b'{"type":"reading"}')
    keep()
    outcome = redrives.show(task_id).body["outcome"]
    assert outcome["words"] == "0 resolved, 1 failed again for other causes"


def test_a_letter_that_is_discarded_before_its_try_or_purged_has_neither_failed_nor_been_resolved(
    redrives: Redrives,
) -> None:
    task_id = redrives.start().body["task_id"]
    one = {"filter": None, "letters": [{"partition_id": "1", "sequence_number": "2"}], "expected_count": 1}
    assert redrives.start(move="discard", **one).body["outcome"] is None
    keep()
    redrives.sqlite.sql("DELETE FROM dead_letter_attempt WHERE sequence_number = 3")
    outcome = redrives.show(task_id).body["outcome"]
    assert outcome["words"] == "0 resolved, 1 failed again for the same cause, 1 discarded"
    redrives.sqlite.sql("DELETE FROM dead_letter_attempt")
    outcome = redrives.show(task_id).body["outcome"]
    assert (outcome["words"], outcome["result"]) == ("0 resolved, 0 failed again", "unknown")


def test_an_outcome_looks_at_a_limited_number_of_letters(redrives: Redrives, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = redrives.start().body["task_id"]
    monkeypatch.setattr("core.letters.redrive.MOST_COUNTED_OF_MANY", 2)
    assert redrives.get("list_tasks").body["tasks"][0]["outcome"]["letters"] == 2
    assert redrives.show(task_id).body["outcome"]["letters"] == 3


def test_a_selection_shows_its_letters(redrives: Redrives) -> None:
    letters = [{"partition_id": "1", "sequence_number": number} for number in ("3", "1")]
    asked = {"move": "retry", "letters": letters, "expected_count": 2, "reason": "only these"}
    reply = redrives.put("redrive", asked)
    assert reply.body["letters"] == letters[::-1]
    assert reply.body["filter"] is None


def test_a_partition_key_is_hidden_in_the_filter(redrives: Redrives) -> None:
    keyed = "UPDATE event_hub_dead_letter SET partition_key = 'home-7' WHERE sequence_number = 1"
    redrives.sqlite.sql(keyed)
    job = redrives.start(filter={"partition_key": "home-7"}, expected_count=1).body
    assert job["filter"] == {"partition_key": "hidden"}


def test_a_different_count_is_refused_with_the_count(redrives: Redrives) -> None:
    refused = redrives.start(expected_count=4)
    assert (refused.status, refused.body["type"]) == (409, "urn:hubledger:problem:count-differs")
    assert refused.body["count"] == 3
    assert redrives.client.started == []


def test_letters_of_a_closed_stream_are_not_moved_and_the_request_may_come_again(redrives: Redrives) -> None:
    assert redrives.get("preview_redrive", move="retry").body["count"] == 3  # remembers the stream for some seconds
    redrives.sqlite.sql("UPDATE event_stream SET closed_at = '2026-01-01T00:00:00.000000Z'")
    refused = redrives.start()
    assert (refused.status, refused.body["type"]) == (409, "urn:hubledger:problem:conflict")
    assert "send the request again" in refused.body["detail"]


def test_a_request_that_is_not_valid_names_the_field(redrives: Redrives) -> None:
    for case, (body, field) in REFUSED.items():
        refused = redrives.put("redrive", body)
        assert (refused.status, refused.fields) == (400, [field]), case
    assert redrives.client.started == []


class LostInTheMiddle:
    """A database that answers no more when the work on a task begins."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_lost = False

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        return self._reached().ask(statement, **values)

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        self._is_lost = self._is_lost or script.steps[0].statement == "move_task"
        return self._reached().run(script, rehearse)

    def close(self) -> None:
        self._database.close()

    def _reached(self) -> Database:
        if self._is_lost:
            raise StoreUnavailable("the database does not answer")
        return self._database


def test_a_database_that_is_lost_in_the_middle_holds_no_answer_up(
    redrives: Redrives, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.letters.redrive.RedriveKind.at_once", timedelta(milliseconds=10))
    own, slept, lost = app(), [0.0], LostInTheMiddle(redrives.sqlite.database())
    waiting = Waiting(lambda: sum(slept, time.monotonic()), slept.append)
    patient = PatientDatabase(lost, timedelta(minutes=2), waiting)
    app.value = replace(own, core=replace(own.core, patient=patient), brief=lost)
    reply = redrives.start()
    job = reply.body
    assert (reply.status, job["status"], job["moved"]) == (201, "planned", 0)
    assert sum(slept) < 1
    assert redrives.client.started == [["drive_task", f"task-{job['task_id']}", job["task_id"]]]
    app.value = own
    redrives.work(job["task_id"])
    assert redrives.show(job["task_id"]).body["moved"] == 3


def test_a_pause_before_the_next_piece_sleeps_and_does_not_ask_the_database_again_and_again(running: Running) -> None:
    began = time.monotonic()
    kind_named(app(), "redrive").rest(timedelta(milliseconds=30))
    assert time.monotonic() - began >= 0.03
