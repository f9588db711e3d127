"""handlers/ingest.py, gaps.py and watch.py, as the worker calls them."""

from datetime import timedelta
from types import SimpleNamespace
from uuid import UUID

import pytest

from core.errors import HubUnreachable, SettingsRefused, StoreUnavailable
from handlers.app import app
from tests.unit.handlers.running import HOME, MOTION, SETTINGS, Running, functions


def test_a_batch_is_committed_and_one_line_is_logged(running: Running) -> None:
    running.ingest([0, 1, 2], [HOME, MOTION, b"{"])
    (line,) = running.lines
    assert (line["msg"], line["action"], line["levelname"]) == ("batch ingested", "ingest", "INFO")
    assert (line["partition"], line["first"], line["last"]) == ("telemetry/cg/1", 0, 2)
    assert (line["commits"], line["written"], line["filtered"], line["dead_lettered"]) == (1, 2, 0, 1)
    assert (line["redelivered"], line["gaps"], line["invocation_id"]) == (0, [], "i-1")
    assert (line["healed"], line["absent"]) == (0, 0)
    assert [(kept.first, kept.last) for kept in running.sqlite.ledger()] == [(0, 2)]


def test_a_gap_holds_the_batch_while_the_hub_does_not_answer(running: Running) -> None:
    running.ingest([0], [HOME])
    for _ in range(2):
        with pytest.raises(HubUnreachable):
            running.ingest([0, 4], [HOME, MOTION])
    assert [(kept.first, kept.last) for kept in running.sqlite.ledger()] == [(0, 0)]
    gaps = running.sqlite.gaps()
    assert [(kept.first, kept.last, kept.status, kept.attempts) for kept in gaps] == [(1, 3, "open", 2)]


def test_the_look_for_gaps_fails_while_the_hub_does_not_answer(running: Running) -> None:
    with pytest.raises(HubUnreachable, match="telemetry"):
        functions()["heal_gaps"](None, SimpleNamespace(invocation_id="t-1"))


def test_an_empty_receive_is_ignored_and_needs_no_settings(running: Running) -> None:
    running.without(*SETTINGS, "STORE_CONNECTION")
    functions()["ingest"]([], None)
    assert running.lines == []


def test_a_watch_without_an_answer_of_the_hub_logs_its_fault_and_fails(running: Running) -> None:
    with pytest.raises(HubUnreachable):
        functions()["watch"](None)
    (line,) = running.lines
    assert (line["action"], line["levelname"]) == ("watch_failed", "ERROR")
    assert line["error"].startswith("HubUnreachable: the hub did not answer: telemetry, ")


def test_a_fault_of_the_database_escapes_so_that_the_host_retries(running: Running) -> None:
    running.sqlite.sql("DROP TABLE batch_ledger")
    with pytest.raises(StoreUnavailable):
        running.ingest([0], [HOME])
    assert running.lines == []


def test_faults_of_the_settings_escape_at_each_call_until_they_are_corrected(running: Running) -> None:
    running.without("EVENTHUB_NAME")
    for _ in range(2):
        with pytest.raises(SettingsRefused, match=r"^settings refused: EVENTHUB_NAME must be set$"):
            running.ingest([0], [HOME])
    running.restart(**SETTINGS)
    running.ingest([0], [HOME])
    assert len(running.sqlite.ledger()) == 1


@pytest.mark.parametrize(("keep", "body"), [("true", b"{}"), ("false", b"")])
def test_letters_are_stored_as_the_settings_say(running: Running, keep: str, body: bytes) -> None:
    running.restart(KEEP_BODIES=keep, DEAD_LETTER_BASE_SECONDS="3600")
    running.ingest([0, 1], [b"{}", MOTION.replace(b"home-1", b"nobody")])
    poison, reference = running.sqlite.letters()
    assert (poison.status, poison.body, poison.body_kept) == ("exhausted", body, keep == "true")
    assert reference.due_at is not None
    assert timedelta(0) < reference.due_at - reference.failed_at <= timedelta(hours=1)
    policies = (app().means.letters, app().silence.means.letters, app().keeper.letters, app().replaying.letters)
    assert [policy.keep_bodies for policy in policies] == [keep == "true"] * 4


MARK = (
    f"INSERT OR REPLACE INTO batch_attempt VALUES (1, '1', 90, 99, 0, 1, '{UUID(int=1)}', '2026-01-01T00:00:00', 'x')"
)


def test_the_first_batch_of_a_process_and_a_retry_leave_a_mark_which_their_commit_deletes(running: Running) -> None:
    left = []
    for numbers, retries in ((range(500), 0), ([500], 0), ([501], 2), ([502], 0)):
        running.ingest([*numbers], [b"{}"] * len(numbers), retries=retries)
        left.append(bool(running.sqlite.sql("SELECT 1 FROM batch_attempt")))
        running.sqlite.sql(MARK)
    assert left == [False, True, False, True]
    assert app().means.journal is app().silence.means.journal
