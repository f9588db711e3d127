"""core/letters/redrive.py over HTTP's functions: preview, request, move and outcome, over an embedded store."""

import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from core.store.database import PatientDatabase, Waiting
from handlers.app import app
from handlers.operations.tasks import kind_named
from tests.handlers.running import HOME, LostDatabase, Reply, Running, functions

ORDER = {"move": "retry", "filter": {}, "expected_count": 3, "reason": "the transform was fixed"}
LETTER = {"partition_id": "1", "sequence_number": "1"}
BY_FILTER: dict[str, object] = {"filter": {}}
CHOSEN: dict[str, object] = {"letters": [LETTER]}
# The limits of each field are in the description of the API: test_description.py sends what it refuses.
REFUSED: dict[str, tuple[dict[str, object], str]] = {
    "a different move": ({"move": "release", **BY_FILTER}, "move"),
    "a count of nothing": ({"expected_count": 0, **BY_FILTER}, "expected_count"),
    "both ways to choose": ({**BY_FILTER, **CHOSEN}, "filter"),
    "no way to choose": ({}, "letters"),
    "no letters": ({"letters": []}, "letters"),
    "too many letters": ({"letters": [LETTER] * 3_001}, "letters"),
    "a letter without a number": ({"letters": [{"partition_id": "1"}]}, "letters[0].sequence_number"),
    "a number of 65 bits": ({"letters": [{**LETTER, "sequence_number": str(2**63)}]}, "letters[0].sequence_number"),
    "an unknown field of the filter": ({"filter": {"colour": "red"}}, "filter.colour"),
}


@pytest.fixture
def redrives(running: Running) -> Running:
    """The app over four events of partition 1, of which three are letters."""
    running.ingest([0, 1, 2, 3], [HOME, b"{", b"[", b"{"])
    return running


def start(to: Running, **changed: object) -> Reply:
    return to.put("redrive", {**ORDER, **changed})


def one_letter(number: str) -> dict[str, object]:
    return {"filter": None, "letters": [{**LETTER, "sequence_number": number}], "expected_count": 1}


def work(task_id: str) -> Any:
    """Let the activity do its work."""
    return functions()["task_slice"]({"task_id": task_id, "part": None})


def outcome(to: Running, task_id: str) -> tuple[str, str]:
    found = to.task(task_id)["outcome"]
    return (found["result"], found["words"])


def is_driven(to: Running, task_id: str) -> bool:
    return to.client.started == [("drive_task", f"task-{task_id}", task_id)]


def test_a_preview_counts_the_letters_by_cause_and_shows_some_and_changes_nothing(redrives: Running) -> None:
    shown = redrives.get("preview_redrive", move="retry").body
    assert (shown["count"], sum(one["letters"] for one in shown["causes"])) == (3, 3)
    assert [(one["sequence_number"], one["error"]) for one in shown["sample"]] == [(n, None) for n in ("1", "2", "3")]
    assert redrives.get("preview_redrive", move="retry", status="held").body == {"count": 0, "causes": [], "sample": []}
    assert redrives.tasks() == []
    assert redrives.get("preview_redrive").status == 400


def test_a_redrive_with_a_rate_is_accepted_and_driven_and_done(redrives: Running) -> None:
    reply = start(redrives, filter={"status": "exhausted"}, per_second=100_000)
    job, task_id = reply.body, reply.body["task_id"]
    assert (reply.status, reply.headers["Location"]) == (201, f"/api/tasks/{task_id}")
    assert (job["status"], job["filter"], job["letters"]) == ("planned", {"status": "exhausted"}, None)
    assert is_driven(redrives, task_id)
    assert work(task_id)["ok"] == {"is_over": True, "pieces": 2, "looked_at": 3, "part": None}
    done = redrives.task(task_id)
    assert (done["status"], done["total"], done["done"], done["moved"], done["unmoved"]) == ("done", 3, 3, 3, 0)
    assert [one["move"] for one in done["history"]] == ["begin"]
    assert redrives.tasks() == [done]
    assert redrives.get("preview_redrive", move="retry", status="waiting").body["count"] == 3


def test_letters_are_moved_when_the_answer_comes_and_nothing_is_driven(redrives: Running) -> None:
    reply = start(redrives, move="discard")
    assert (reply.status, reply.body["status"], reply.body["moved"], reply.body["total"]) == (201, "done", 3, 3)
    assert redrives.client.started == []
    assert redrives.get("list_letters", status="discarded").body["letters"][2]["settled_why"] == ORDER["reason"]


def test_ten_thousand_letters_and_more_are_moved_by_one_request(redrives: Running) -> None:
    names = [name for (name,) in redrives.sqlite.sql("SELECT name FROM pragma_table_info('event_hub_dead_letter')")]
    copied = ", ".join("d.sequence_number + n.value" if name == "sequence_number" else f"d.{name}" for name in names)
    redrives.sqlite.sql(
        f"INSERT INTO event_hub_dead_letter SELECT {copied} FROM event_hub_dead_letter AS d,"
        " (WITH RECURSIVE n (value) AS (SELECT 1000 UNION ALL SELECT value + 1 FROM n WHERE value < 12996)"
        "  SELECT value FROM n) AS n WHERE d.sequence_number = 1"
    )
    done = start(redrives, expected_count=12_000).body
    while done["status"] != "done":  # a slow machine: its driver goes on
        work(done["task_id"])
        done = redrives.task(done["task_id"])
    assert (done["moved"], done["unmoved"]) == (12_000, 0)


def test_a_redrive_that_is_not_done_in_its_time_goes_on_and_keeps_a_second_one_out(
    redrives: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.letters.redrive.RedriveKind.at_once", timedelta())
    job = start(redrives).body
    assert (job["status"], job["moved"]) == ("running", 3)  # the part is not closed yet
    assert is_driven(redrives, job["task_id"])
    second = start(redrives)
    assert (second.status, second.body["type"]) == (409, "urn:hubledger:problem:task-overlap")
    assert second.body["task_id"] == job["task_id"]
    work(job["task_id"])
    assert redrives.task(job["task_id"])["status"] == "done"


def test_a_fault_while_the_request_is_answered_is_the_task_s_own(redrives: Running) -> None:
    redrives.sqlite.sql("ALTER TABLE dead_letter_attempt RENAME TO taken_away")
    reply = start(redrives)
    job = reply.body
    assert (reply.status, job["status"], job["moved"]) == (201, "running", 0)
    assert "dead_letter_attempt" in job["fault"]
    assert is_driven(redrives, job["task_id"])
    redrives.sqlite.sql("ALTER TABLE taken_away RENAME TO dead_letter_attempt")
    app.value = replace(app())
    work(job["task_id"])
    assert redrives.task(job["task_id"])["moved"] == 3


def test_a_retry_says_what_became_of_its_letters_at_their_next_try(redrives: Running) -> None:
    task_id = start(redrives).body["task_id"]
    waiting = redrives.task(task_id)["outcome"]
    assert (waiting["result"], waiting["not_tried"]) == ("not_tried", 3)
    redrives.keep()
    found = redrives.task(task_id)["outcome"]
    assert found == {
        "letters": 3, "resolved": 0, "failed_again": 3, "same_cause": 3, "not_tried": 0, "discarded": 0,
        "result": "did_not_help", "words": "0 resolved, 3 failed again for the same cause",
    }  # fmt: skip
    assert redrives.tasks()[0]["outcome"] == found


def test_what_happens_later_changes_the_outcome_of_no_earlier_retry(redrives: Running) -> None:
    earlier = start(redrives).body["task_id"]
    redrives.keep()
    was = outcome(redrives, earlier)
    redrives.sqlite.sql("UPDATE event_hub_dead_letter SET body = ? WHERE sequence_number = 1", HOME)
    later = start(redrives).body["task_id"]
    redrives.keep()
    assert outcome(redrives, later) == ("helped_in_part", "1 resolved, 2 failed again for the same cause")
    assert outcome(redrives, earlier) == was


def test_a_letter_that_is_moved_twice_before_its_try_counts_for_both_retries(redrives: Running) -> None:
    both = [start(redrives).body["task_id"] for _ in range(2)]
    redrives.sqlite.sql("UPDATE event_hub_dead_letter SET body = ?", HOME)
    redrives.keep()
    assert [outcome(redrives, one)[1] for one in both] == ["3 resolved, 0 failed again"] * 2


def test_a_letter_that_fails_for_another_cause_says_so(redrives: Running) -> None:
    task_id = start(redrives, **one_letter("1")).body["task_id"]
    redrives.sqlite.sql("UPDATE event_hub_dead_letter SET body = ? WHERE sequence_number = 1", b'{"type":"reading"}')
    redrives.keep()
    assert outcome(redrives, task_id)[1] == "0 resolved, 1 failed again for other causes"


def test_a_letter_that_is_discarded_before_its_try_or_purged_has_neither_failed_nor_been_resolved(
    redrives: Running,
) -> None:
    task_id = start(redrives).body["task_id"]
    assert start(redrives, move="discard", **one_letter("2")).body["outcome"] is None
    redrives.keep()
    redrives.sqlite.sql("DELETE FROM dead_letter_attempt WHERE sequence_number = 3")
    assert outcome(redrives, task_id)[1] == "0 resolved, 1 failed again for the same cause, 1 discarded"
    redrives.sqlite.sql("DELETE FROM dead_letter_attempt")
    assert outcome(redrives, task_id) == ("unknown", "0 resolved, 0 failed again")


def test_an_outcome_looks_at_a_limited_number_of_letters(redrives: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = start(redrives).body["task_id"]
    monkeypatch.setattr("core.letters.redrive.MOST_COUNTED_OF_MANY", 2)
    assert redrives.tasks()[0]["outcome"]["letters"] == 2
    assert redrives.task(task_id)["outcome"]["letters"] == 3


def test_a_selection_shows_its_letters_and_a_filter_hides_its_partition_key(redrives: Running) -> None:
    letters = [{**LETTER, "sequence_number": number} for number in ("3", "1")]
    chosen = start(redrives, filter=None, letters=letters, expected_count=2).body
    assert (chosen["letters"], chosen["filter"]) == (letters[::-1], None)
    redrives.sqlite.sql("UPDATE event_hub_dead_letter SET partition_key = 'home-7' WHERE sequence_number = 1")
    keyed = start(redrives, filter={"partition_key": "home-7"}, expected_count=1).body
    assert keyed["filter"] == {"partition_key": "hidden"}


def test_a_different_count_is_refused_with_the_count(redrives: Running) -> None:
    refused = start(redrives, expected_count=4)
    assert (refused.status, refused.body["type"]) == (409, "urn:hubledger:problem:count-differs")
    assert (refused.body["count"], redrives.client.started) == (3, [])


def test_letters_of_a_closed_stream_are_not_moved_and_the_request_may_come_again(redrives: Running) -> None:
    assert redrives.get("preview_redrive", move="retry").body["count"] == 3  # remembers the stream for some seconds
    redrives.sqlite.sql("UPDATE event_stream SET closed_at = '2026-01-01T00:00:00.000000Z'")
    refused = start(redrives)
    assert (refused.status, refused.body["type"]) == (409, "urn:hubledger:problem:conflict")
    assert "send the request again" in refused.body["detail"]


def test_a_request_that_is_not_valid_names_the_field(redrives: Running) -> None:
    needed = {name: value for name, value in ORDER.items() if name != "filter"}
    for case, (given, field) in REFUSED.items():
        refused = redrives.put("redrive", {**needed, **given})
        assert (refused.status, refused.fields) == (400, [field]), case
    assert redrives.client.started == []


def test_a_database_that_is_lost_in_the_middle_holds_no_answer_up(
    redrives: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.letters.redrive.RedriveKind.at_once", timedelta(milliseconds=10))
    own, slept, lost = app(), [0.0], LostDatabase(redrives.sqlite.database(), since="move_task")
    waiting = Waiting(lambda: sum(slept, time.monotonic()), slept.append)
    patient = PatientDatabase(lost, timedelta(minutes=2), waiting)
    app.value = replace(own, core=replace(own.core, patient=patient), brief=lost)
    job = start(redrives).body
    assert (job["status"], job["moved"]) == ("planned", 0)
    assert sum(slept) < 1
    assert is_driven(redrives, job["task_id"])
    app.value = own
    work(job["task_id"])
    assert redrives.task(job["task_id"])["moved"] == 3


def test_a_pause_before_the_next_piece_sleeps_and_does_not_ask_the_database_again_and_again(running: Running) -> None:
    began = time.monotonic()
    kind_named(app(), "redrive").rest(timedelta(milliseconds=30))
    assert time.monotonic() - began >= 0.03
