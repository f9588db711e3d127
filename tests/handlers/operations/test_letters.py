import time
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from core.store.database import PatientDatabase, Waiting
from handlers.app import app
from handlers.operations.letters import LARGEST_SHOWN
from handlers.operations.tasks import kind_named
from tests.handlers.running import HOME, LostDatabase, Reply, Running, functions

KINDS = ("doorbell", "WINDOW", "smoke", "WINDOW", "WINDOW")


def reading(kind: str) -> bytes:
    return b'{"type":"reading","home_id":"H1","sensor_id":"S1","kind":"%s","state":"active"}' % kind.encode()


@pytest.fixture
def caused(running: Running) -> Running:
    running.ingest(list(range(6)), [*map(reading, KINDS), b"["])
    return running


def test_letters_that_differ_by_value_are_one_cause_whose_letters_are_counted_by_value(caused: Running) -> None:
    cause, other = caused.get("reveal_groups").body["groups"]
    assert (cause["letters"], cause["open"], cause["variants"]) == (5, 5, 3)
    assert cause["template"] == "the body is not an event of a home: Invalid value … - at `$.kind`"
    assert sorted(cause["examples"]) == ["WINDOW", "doorbell", "smoke"]
    assert (other["letters"], other["variants"]) == (1, 1)
    values = caused.get("reveal_groups", fingerprint=cause["fingerprint"]).body["groups"]
    assert (values[0]["examples"], values[0]["letters"]) == (["WINDOW"], 3)
    assert sorted(one["letters"] for one in values) == [1, 1, 3]
    assert {one["fingerprint"].partition(".")[0] for one in values} == {cause["fingerprint"]}
    for params in ({}, {"fingerprint": cause["fingerprint"]}):  # for who may not see texts, and could guess values
        groups = caused.get("group_letters", **params).body["groups"]
        assert {(one["template"], one["examples"], one["sample"]["error"]) for one in groups} == {(None, None, None)}
        assert (groups[0]["letters"], groups[0]["variants"], len(groups)) == (5, 3, 1 if params else 2)
        listed = caused.get("list_letters", **params).body["letters"]
        previewed = caused.get("preview_redrive", move="discard", **params).body
        shown = [*groups, *(one["sample"] for one in groups), *listed, *previewed["causes"], *previewed["sample"]]
        assert [one["fingerprint"] for one in shown if "." in one["fingerprint"]] == []
    for name in ("list_letters", "group_letters", "preview_redrive"):
        asked = {"fingerprint": values[0]["fingerprint"], **({"move": "discard"} if "preview" in name else {})}
        assert caused.get(name, None, **asked).fields == ["fingerprint"]


def test_one_value_can_be_listed_and_discarded_alone(caused: Running) -> None:
    cause = caused.get("reveal_groups").body["groups"][0]["fingerprint"]
    window = caused.get("reveal_groups", fingerprint=cause).body["groups"][0]["fingerprint"]
    listed = caused.get("reveal_letters", fingerprint=window).body["letters"]
    assert caused.get("reveal_preview", move="discard", fingerprint=window).body["count"] == 3
    assert [one["sequence_number"] for one in listed] == ["4", "3", "1"]
    assert listed[0]["error_at"].startswith("transform.py:"), "the line that raised its error"
    assert caused.get("list_letters", cursor="odd").fields == ["cursor"]
    order = {"move": "discard", "filter": {"fingerprint": window}, "expected_count": 3, "reason": "not sold any more"}
    task_id = caused.put("redrive", order).body["task_id"]
    functions()["task_slice"]({"task_id": task_id, "part": None})
    assert caused.task(task_id)["filter"] == {"fingerprint": cause}, "who may read could guess the value"
    left = caused.get("reveal_groups", status="exhausted", fingerprint=cause).body["groups"]
    assert [one["letters"] for one in left] == [1, 1]


def test_a_body_that_was_not_stored_is_read_from_the_hub_and_cut_at_the_limit(running: Running) -> None:
    """test_other_hub.py has a different event under the number."""
    running.restart(KEEP_BODIES="false")
    running.ingest([0], [b"{"])
    found = {}
    for name, bodies in {"whole": [b"{"], "long": [b"x" * (LARGEST_SHOWN + 1)], "gone": [b"{", b"{"]}.items():
        running.give_hub(*bodies).expire_before("1", len(bodies) - 1)
        place = {"partition_id": "1", "sequence_number": "0"}
        found[name] = running.get("reveal_letter", place, body="text").body["body"]
    assert found["whole"] == {"form": "text", "bytes": 1, "truncated": False, "shown": "{", "fault": None}
    long = found["long"]
    assert (long["bytes"], long["truncated"], len(long["shown"])) == (LARGEST_SHOWN + 1, True, LARGEST_SHOWN)
    assert (found["gone"]["shown"], found["gone"]["bytes"]) == (None, 0)
    assert found["gone"]["fault"] == "it was not stored, and the hub no longer has it"
    lost = {"partition_id": "1", "kind": "unkept", "before": "1", "events": 1}
    (letter,), status = running.get("list_letters").body["letters"], running.get("status").body
    assert (status["hub_forgets"]["lost"], status["transform_version"]) == ([lost], letter["transform_version"])


ORDER = {"move": "retry", "filter": {}, "expected_count": 3, "reason": "the transform was fixed"}
LETTER = {"partition_id": "1", "sequence_number": "1"}
HELPED = "UPDATE event_hub_dead_letter SET body = ?"


@pytest.fixture
def redrives(running: Running) -> Running:
    running.ingest([0, 1, 2, 3], [HOME, b"{", b"[", b"{"])
    return running


def start(to: Running, **changed: object) -> Reply:
    return to.put("redrive", {**ORDER, **changed})


def one_letter(number: str) -> dict[str, object]:
    return {"filter": None, "letters": [{**LETTER, "sequence_number": number}], "expected_count": 1}


def work(to: Running, job: Any) -> Any:
    functions()["task_slice"]({"task_id": job["task_id"], "part": None})
    return to.task(job["task_id"])


def outcome(to: Running, job: Any) -> tuple[str, str]:
    found = to.task(job["task_id"])["outcome"]
    return (found["result"], found["words"])


def test_a_redrive_with_a_rate_is_accepted_and_driven_and_done(redrives: Running) -> None:
    reply = start(redrives, filter={"status": "exhausted"}, per_second=100_000)
    job = reply.body
    assert (reply.status, reply.headers["Location"]) == (201, f"/api/tasks/{job['task_id']}")
    assert (job["status"], job["filter"], job["letters"]) == ("planned", {"status": "exhausted"}, None)
    assert redrives.has_begun_to_drive(job["task_id"])
    done = work(redrives, job)
    assert (done["status"], done["total"], done["done"], done["moved"], done["unmoved"]) == ("done", 3, 3, 3, 0)
    assert [one["move"] for one in done["history"]] == ["begin"]
    assert redrives.tasks() == [done]
    assert redrives.get("preview_redrive", move="retry", status="waiting").body["count"] == 3
    began = time.monotonic()
    kind_named(app(), "redrive").rest(timedelta(milliseconds=30))
    assert time.monotonic() - began >= 0.03, "a pause before the next piece"


def test_letters_are_moved_when_the_answer_comes_and_nothing_is_driven(redrives: Running) -> None:
    reply = start(redrives, move="discard")
    assert (reply.status, reply.body["status"], reply.body["moved"], reply.body["total"]) == (201, "done", 3, 3)
    assert redrives.client.started == []
    assert redrives.get("list_letters", status="discarded").body["letters"][2]["settled_why"] == ORDER["reason"]


def test_a_redrive_that_is_not_done_in_its_time_goes_on(redrives: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.letters.redrive.RedriveKind.at_once", timedelta())
    job = start(redrives).body
    assert (job["status"], job["moved"]) == ("running", 3)  # the part is not closed yet
    assert redrives.has_begun_to_drive(job["task_id"])
    second = start(redrives)
    assert (second.status, second.body["type"]) == (409, "urn:hubledger:problem:task-overlap")
    assert second.body["task_id"] == job["task_id"]
    assert work(redrives, job)["status"] == "done"


def test_a_fault_while_the_request_is_answered_is_the_task_s_own(redrives: Running) -> None:
    redrives.sqlite.sql("ALTER TABLE dead_letter_attempt RENAME TO taken_away")
    reply = start(redrives)
    assert (reply.status, reply.body["status"], reply.body["moved"]) == (201, "running", 0)
    assert "dead_letter_attempt" in reply.body["fault"]
    assert redrives.has_begun_to_drive(reply.body["task_id"])
    redrives.sqlite.sql("ALTER TABLE taken_away RENAME TO dead_letter_attempt")
    assert work(redrives, reply.body)["moved"] == 3


def test_a_database_lost_in_the_middle_holds_no_answer_up(redrives: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.letters.redrive.RedriveKind.at_once", timedelta(milliseconds=10))
    own, slept, lost = app(), [0.0], LostDatabase(redrives.sqlite.database(), since="move_task")
    waiting = Waiting(lambda: sum(slept, time.monotonic()), slept.append)
    patient = PatientDatabase(lost, timedelta(minutes=2), waiting)
    app.value = replace(own, core=replace(own.core, patient=patient), brief=lost)
    job = start(redrives).body
    assert (job["status"], job["moved"], sum(slept) < 1) == ("planned", 0, True)
    assert redrives.has_begun_to_drive(job["task_id"])
    app.value = own
    assert work(redrives, job)["moved"] == 3


def test_a_retry_says_what_became_of_its_letters_at_their_next_try_whatever_happens_later(
    redrives: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = start(redrives).body
    waiting = redrives.task(earlier["task_id"])["outcome"]
    assert (waiting["result"], waiting["not_tried"]) == ("not_tried", 3)
    redrives.keep()
    found = redrives.task(earlier["task_id"])["outcome"]
    assert found == {
        "letters": 3, "resolved": 0, "failed_again": 3, "same_cause": 3, "not_tried": 0, "discarded": 0,
        "result": "did_not_help", "words": "0 resolved, 3 failed again for the same cause",
    }  # fmt: skip
    with monkeypatch.context() as patched:
        patched.setattr("core.letters.redrive.MOST_COUNTED_OF_MANY", 2)
        assert redrives.tasks()[0]["outcome"]["letters"] == 2
    redrives.sqlite.sql(f"{HELPED} WHERE sequence_number = 1", HOME)
    both = [start(redrives).body for _ in range(2)]  # a letter that is moved twice before its try counts for both
    redrives.keep()
    for later in both:
        assert outcome(redrives, later) == ("helped_in_part", "1 resolved, 2 failed again for the same cause")
    assert redrives.task(earlier["task_id"])["outcome"] == found


def test_a_letter_that_fails_for_another_cause_says_so_and_so_does_a_retry_that_helped(redrives: Running) -> None:
    job = start(redrives, **one_letter("1")).body
    redrives.sqlite.sql(f"{HELPED} WHERE sequence_number = 1", b'{"type":"reading"}')
    redrives.keep()
    assert outcome(redrives, job)[1] == "0 resolved, 1 failed again for other causes"
    job = start(redrives).body
    redrives.sqlite.sql(HELPED, HOME)
    redrives.keep()
    assert outcome(redrives, job) == ("helped", "3 resolved, 0 failed again")


def test_a_letter_discarded_before_its_try_or_purged_has_neither_failed_nor_been_resolved(redrives: Running) -> None:
    job = start(redrives).body
    assert start(redrives, move="discard", **one_letter("2")).body["outcome"] is None
    redrives.keep()
    redrives.sqlite.sql("DELETE FROM dead_letter_attempt WHERE sequence_number = 3")
    assert outcome(redrives, job)[1] == "0 resolved, 1 failed again for the same cause, 1 discarded"
    redrives.sqlite.sql("DELETE FROM dead_letter_attempt")
    assert outcome(redrives, job) == ("unknown", "0 resolved, 0 failed again")


def test_a_selection_shows_its_letters_and_a_filter_hides_its_partition_key(redrives: Running) -> None:
    letters = [{**LETTER, "sequence_number": number} for number in ("3", "1")]
    chosen = start(redrives, filter=None, letters=letters, expected_count=2).body
    assert (chosen["letters"], chosen["filter"]) == (letters[::-1], None)
    redrives.sqlite.sql("UPDATE event_hub_dead_letter SET partition_key = 'home-7' WHERE sequence_number = 1")
    keyed = start(redrives, filter={"partition_key": "home-7"}, expected_count=1).body
    assert keyed["filter"] == {"partition_key": "hidden"}


def previewed(to: Running, **asked: str) -> tuple[int, dict[str, str]]:
    """Return the count of a preview, and its filter for an order."""
    found = to.get("preview_redrive", None, **asked).body
    chosen = {name: value for name, value in asked.items() if name != "move"}
    return found["count"], {**chosen, "failed_before": found["failed_before"]}


@pytest.mark.parametrize("move", ["retry", "discard"])
def test_an_order_takes_the_letters_of_its_preview_while_others_fail_and_are_moved(
    redrives: Running, move: str
) -> None:
    count, chosen = previewed(redrives, move=move)
    redrives.ingest([4, 5], [b"{", b"["])
    gone = start(redrives, move="discard", **one_letter("2")).body
    assert (count, gone["total"], gone["came_later"]) == (3, 1, 0)
    asked, task_id = {**ORDER, "move": move, "filter": chosen, "expected_count": count}, str(uuid4())
    reply = redrives.put("redrive", asked, task_id)
    told = [reply.body[name] for name in ("status", "total", "done", "moved", "unmoved", "came_later")]
    assert (reply.status, told) == (201, ["done", 3, 3, 2, 1, 2])
    again = redrives.put("redrive", asked, task_id)
    assert (again.status, again.body["moved"]) == (200, 2)
    discarded = {"2", "1", "3"} if move == "discard" else {"2"}
    listed = redrives.get("list_letters", status="discarded").body["letters"]
    assert {one["sequence_number"] for one in listed} == discarded
    both = [{**LETTER, "sequence_number": number} for number in ("2", "4")]
    chosen = start(redrives, filter=None, letters=both, expected_count=2).body
    assert (chosen["total"], chosen["moved"], chosen["unmoved"]) == (2, 1, 1), "of a selection too"
    none = start(redrives, filter=None, letters=both[:1], expected_count=1)
    assert (none.status, none.body["count"]) == (409, 0)


@pytest.mark.parametrize(("moved", "told"), [((), (2, 0, 1)), (("2",), (1, 1, 0))])
def test_a_discard_takes_no_letter_that_came_to_fit_its_preview(
    redrives: Running, moved: tuple[str, ...], told: tuple[int, ...]
) -> None:
    of_third = "UPDATE event_hub_dead_letter SET status = '{}' WHERE sequence_number = 3"
    redrives.sqlite.sql(of_third.format("waiting"))
    count, chosen = previewed(redrives, move="discard", status="exhausted")
    order = {"move": "discard", "filter": chosen, "expected_count": count}
    redrives.sqlite.sql(of_third.format("exhausted"))
    refused = start(redrives, **order)
    assert (count, refused.status, refused.body["count"]) == (2, 409, 3), "nothing tells which letter is new"
    start(redrives, **one_letter("3"))
    redrives.keep()
    for number in moved:
        start(redrives, move="discard", **one_letter(number))
    done = start(redrives, **order).body
    assert tuple(done[name] for name in ("moved", "unmoved", "came_later")) == told
    assert [one["sequence_number"] for one in redrives.get("list_letters", status="exhausted").body["letters"]] == ["3"]


def test_a_retry_leaves_what_came_to_fit_its_preview(redrives: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    redrives.sqlite.sql("UPDATE event_hub_dead_letter SET status = 'held' WHERE sequence_number = 3")
    count, chosen = previewed(redrives, move="retry", status="exhausted")
    redrives.sqlite.sql("UPDATE event_hub_dead_letter SET status = 'exhausted'")
    order = {"filter": chosen, "expected_count": count}
    with monkeypatch.context() as patched:
        patched.setattr("core.letters.redrive.RedriveKind.at_once", timedelta())
        job = start(redrives, **order).body
        other = start(redrives, filter=previewed(redrives, move="retry", status="exhausted")[1], expected_count=3)
    assert (other.status, other.body["task_id"]) == (409, job["task_id"]), "of a later preview of the same filter"
    redrives.move("pause", job["task_id"])
    assert work(redrives, job)["status"] == "paused"
    redrives.move("resume", job["task_id"])
    done = work(redrives, job)
    told = [done[name] for name in ("status", "total", "done", "moved", "unmoved", "came_later")]
    assert told == ["done", 2, 2, 2, 0, 1]
    assert redrives.get("preview_redrive", move="retry", status="exhausted").body["count"] == 1


def test_a_higher_count_and_letters_of_a_closed_stream_are_refused_and_nothing_is_driven(redrives: Running) -> None:
    refused = start(redrives, expected_count=2)
    assert (refused.status, refused.body["type"]) == (409, "urn:hubledger:problem:count-differs")
    assert (refused.body["count"], redrives.client.started) == (3, [])
    assert redrives.get("preview_redrive", move="retry").body["count"] == 3  # remembers the stream for some seconds
    redrives.sqlite.sql("UPDATE event_stream SET closed_at = '2026-01-01T00:00:00.000000Z'")
    columns = "event_hub, consumer_group, anchored_at, incarnation"
    redrives.sqlite.sql(
        f"INSERT INTO event_stream ({columns}) SELECT event_hub, consumer_group, anchored_at, 2 FROM event_stream"
    )
    refused = start(redrives)
    assert (refused.status, refused.body["type"]) == (409, "urn:hubledger:problem:conflict")
    assert "send the request again" in refused.body["detail"]
    again = start(redrives)
    assert (again.status, again.body["count"]) == (409, 0), "it looks at the next incarnation, which has no letter"


def test_a_number_whose_letter_was_lost_is_missing(running: Running) -> None:
    running.ingest([0], [b"{"])
    for table in ("event_hub_dead_letter", "dead_letter_attempt"):
        running.sqlite.sql(f"DELETE FROM {table}")
    found = running.get("explain_number", LETTER | {"sequence_number": "0"}).body
    assert found["outcome"] == "missing"
    assert found["sentence"] == "The ledger has it in commit 1, but neither a row nor a letter shows its outcome."


def test_the_body_of_an_erased_letter_is_not_shown_although_the_hub_still_has_its_event(running: Running) -> None:
    running.restart(KEEP_BODIES="false")
    running.ingest([0], [b"{"])
    running.give_hub(b"{")
    place = {"partition_id": "1", "sequence_number": "0"}
    assert running.get("reveal_letter", place, body="text").body["body"]["shown"] == "{"
    running.sqlite.sql("UPDATE event_hub_dead_letter SET erased_by = 'the-task'")
    for form in ("text", "json", "hex"):
        refused = running.get("reveal_letter", place, body=form)
        assert (refused.status, refused.body["type"].rpartition(":")[2]) == (410, "erased")
        assert refused.body["task_id"] == "the-task"
    shown = running.get("reveal_letter", place)
    assert (shown.status, shown.body["letter"]["erased_by"], shown.body["body"]) == (200, "the-task", None)


def test_a_body_that_only_the_hub_has_is_not_shown_when_it_names_an_erased_subject(running: Running) -> None:
    """Its letter has nothing that an erasure could find."""
    running.restart(KEEP_BODIES="false", ERASURE_KEY="a key of thirty-two octets or more")
    running.ingest([0, 1], bodies := [b'{"of": "home-7"', b'{"of": "home-70"'])
    running.give_hub(*bodies)
    places = [{"partition_id": "1", "sequence_number": number} for number in "01"]
    assert [running.get("reveal_letter", place, body="text").status for place in places] == [200, 200]
    erasure = running.open("erasure", subjects=["home-7"], reason="request 4711", dry_run=False)
    running.drive(erasure["task_id"])
    assert running.task(erasure["task_id"])["status"] == "done"
    shown = [running.get("reveal_letter", place, body="text") for place in places]
    assert [one.status for one in shown] == [410, 200]
    assert running.get("reveal_letter", places[0]).body["letter"]["erased_by"] is None
