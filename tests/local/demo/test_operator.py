"""local/demo/operator.py: an operator over HTTP, against a server that notes the requests."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from local.demo.operator import NotOpened, discarding, open_next_incarnation
from tests.fakes.rooms import migrate_examples
from tests.local.conftest import Host
from tests.patience import allowed

STOPPED = {"incarnation": 1, "partitions": [{"stops": [{"reason": "incarnation"}]}]}
DRY = {"incarnation": 2, "hub_created_at": "2026-01-01T00:00:00Z", "evidence": "it is younger"}


def test_the_next_incarnation_is_opened_after_a_dry_run_once_the_stop_is_reported(host: Host) -> None:
    host.status = [{"incarnation": 1, "partitions": [{"stops": []}]}, STOPPED]
    host.answers = [(200, DRY), (200, DRY)]
    open_next_incarnation(host, lambda _: None)
    (dry_path, dry), (path, opening) = host.posts
    assert dry_path == path == "/api/streams/next-incarnation"
    assert (dry["expected_incarnation"], "dry_run" in dry) == (1, False)
    assert (opening["dry_run"], opening["expected_hub_created_at"]) == (False, DRY["hub_created_at"])


def test_a_refusal_is_raised_with_its_answer(host: Host) -> None:
    host.status, host.answers = [STOPPED], [(409, {"detail": "the hub fits"})]
    with pytest.raises(NotOpened, match=r"409.*the hub fits"):
        open_next_incarnation(host, lambda _: None)
    assert len(host.posts) == 1


def test_letters_that_no_retry_can_resolve_are_discarded_and_no_others(host: Host, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    migrate_examples(store)
    letters = [  # number, class, status, attempts, fingerprint
        (1, "poison", "exhausted", 1, "a"),
        (2, "reference", "waiting", 1, "b"),
        (3, "refused", "waiting", 1, "c"),
        (4, "refused", "held", 0, "held"),
        (5, "refused", "waiting", 0, "held"),
        (6, "poison", "discarded", 1, "a"),
        (7, "crash", "exhausted", 1, "d"),
        (8, "unknown", "exhausted", 0, "held"),
    ]
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.executemany(
            "INSERT INTO event_hub_dead_letter (stream_id, partition_id, sequence_number, offset_token, enqueued_at,"
            " properties, body, error_class, error_type, error, fingerprint, cause, transform_version, status,"
            " attempts, failed_at) VALUES (1, '0', ?, '0', '', '{}', x'', ?, '', '', ?, '', '', ?, ?, '')",
            [(number, kind, fingerprint, status, attempts) for number, kind, status, attempts, fingerprint in letters],
        )
    with discarding(host, store, every=0.01):
        assert host.posted.wait(allowed(30))
    path, order = host.posts[0]
    assert path.startswith("/api/tasks/")
    assert order["kind"] == "redrive"
    assert [letter["sequence_number"] for letter in order["letters"]] == ["1", "3", "7", "8"]
    assert order["expected_count"] == 4
