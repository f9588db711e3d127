"""local/demo/proof.py"""

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from local.demo.chaos import BlowKind, counted
from local.demo.proof import Finished, Proof, prove, report
from local.feed.record import ONCE, Copies
from local.stack.app_totals import Books
from tests.local.feed.builders import story
from tests.local.stores import Files, write_record

BOOKS = Books(in_hub=300, accounted=300, written=200, filtered=60, dead_lettered=40, balanced=True)


def finished(
    books: Books = BOOKS,
    published: Copies = Copies(300, 300),  # noqa: B008
    struck: Mapping[BlowKind, int] = MappingProxyType({}),
    workers: int = 0,
    logs: Sequence[Path] = (),
) -> Finished:
    return Finished(published, books, 2.0, Counter(struck), workers, list(logs))


def note_gaps(store: Path, *gaps: tuple[int, int, str]) -> None:
    """Add gaps of partition 0 to the store."""
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        for first, last, status in gaps:
            values = (first, last, "2026-01-01T00:00:00Z", status, 1)
            connection.execute("INSERT INTO sequence_gap VALUES (1, '0', ?, ?, ?, ?, ?)", values)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """A store and a record of 300 events that agree."""
    return Files.agreeing(tmp_path_factory.mktemp("made"), story(events=300), settled=True)


@pytest.fixture
def files(made: Files, tmp_path: Path) -> tuple[Path, Path]:
    """A copy of the store, and the record."""
    return made.copied_to(tmp_path).store, made.record


def test_the_figures_come_in_their_order(files: tuple[Path, Path]) -> None:
    proof = prove(finished(), *files)
    assert proof.differences == []
    assert list(proof.figures.items()) == [
        ("published", 300),
        ("accounted", 300),
        ("written", 200),
        ("filtered", 60),
        ("dead_lettered", 40),
        ("letters", {"resolved": 6, "exhausted": 29, "waiting": 0}),
        ("gaps", {"healed": 0, "absent": 0}),
        ("redelivered_dropped", 0),
        ("ledger_balanced", True),
        ("seconds", 2.0),
        ("events_per_second", 150),
    ]


def test_kills_and_then_workers_are_the_last_figures_when_there_were_some(files: tuple[Path, Path]) -> None:
    assert list(prove(finished(struck={"kill": 3}), *files).figures.items())[-1] == ("kills", 3)
    figures = prove(finished(struck={"kill": 2}, workers=3), *files).figures
    assert list(figures.items())[-2:] == [("kills", 2), ("workers", 3)]


def test_gaps_are_counted_in_events_by_their_status(files: tuple[Path, Path]) -> None:
    note_gaps(files[0], (0, 9, "healed"), (10, 11, "absent"), (20, 24, "healed"))
    proof = prove(finished(), *files)
    assert proof.figures["gaps"] == {"healed": 15, "absent": 2}
    assert proof.differences == []


ACTIONS = ["worker_died"] * 3 + [
    "host_recycled",
    "batch_unbound",
    "reader_stopped",
    "listener_failed",
    "events_dropped",
]


def test_the_deaths_of_a_host_like_azure_s_and_the_failures_of_its_trigger_are_figures(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    log = tmp_path / "host-1.log"
    log.write_text("".join(json.dumps({"action": one}) + "\n" for one in ACTIONS))
    figures = prove(finished(logs=[log]), *files).figures
    assert list(figures.items())[-2:] == [
        ("like_azure", {"worker_deaths": 3, "host_exits": 1}),
        ("undeliverable", {"unbound": 1, "stopped": 2, "dropped": 1}),
    ]


STRUCK: Mapping[BlowKind, int] = {"kill": 2, "skip": 2, "cut": 2, "lock": 1}


def test_chaos_reports_its_blows_and_is_no_proof_without_a_healed_gap(files: tuple[Path, Path], tmp_path: Path) -> None:
    log = tmp_path / "host-1.log"
    log.write_text("".join(json.dumps({"action": "batch_skipped"}) + "\n" for _ in range(5)) + '{"action": "batch_s')
    proof = prove(finished(struck=STRUCK, logs=[log]), *files)
    assert proof.differences == ["chaos: no gap was healed"]
    assert list(proof.figures.items())[-2:] == [
        ("kills", 2),
        ("chaos", {"skipped_batches": 5, "cuts": 2, "locks": 1}),
    ]
    note_gaps(files[0], (0, 0, "healed"))
    assert prove(finished(struck=STRUCK, logs=[log]), *files).differences == []


def test_chaos_in_which_the_host_lost_nothing_is_no_proof(files: tuple[Path, Path]) -> None:
    note_gaps(files[0], (0, 0, "healed"))
    assert prove(finished(struck=STRUCK), *files).differences == ["chaos: the host lost no batch"]


def test_an_event_that_the_app_did_not_account_for_is_a_difference(files: tuple[Path, Path]) -> None:
    proof = prove(finished(replace(BOOKS, accounted=299)), *files)
    assert proof.differences == ["status: 299 events accounted for, 300 published"]


def test_a_letter_that_still_waits_is_a_difference(tmp_path: Path) -> None:
    unsettled = Files.agreeing(tmp_path, story(events=300))
    proof = prove(finished(), unsettled.store, unsettled.record)
    assert proof.differences == ["letters: 6 are still waiting"]
    assert proof.figures["letters"] == {"resolved": 0, "exhausted": 29, "waiting": 6}


def test_books_that_are_not_balanced_are_a_difference(files: tuple[Path, Path]) -> None:
    proof = prove(finished(replace(BOOKS, balanced=False)), *files)
    assert proof.differences and proof.figures["ledger_balanced"] is False


def test_a_recount_that_disagrees_is_a_difference(files: tuple[Path, Path], tmp_path: Path) -> None:
    write_record(tmp_path / "other.db", [(minute, ONCE) for minute in story(events=300, seed=2)])
    assert prove(finished(), files[0], tmp_path / "other.db").differences


def test_where_answers_were_lost_the_hub_knows_the_number_of_events(files: tuple[Path, Path]) -> None:
    assert prove(finished(published=Copies(290, 310)), *files).figures["published"] == 300
    assert prove(finished(published=Copies(290, 295)), *files).figures["published"] == 295


def test_redelivered_events_are_summed_over_the_logs_of_all_hosts(tmp_path: Path) -> None:
    logs = [tmp_path / "host-1.log", tmp_path / "host-2.log", tmp_path / "host-3.log"]
    line = {"action": "ingest", "redelivered": 5}
    other = {"action": "status", "redelivered": 7}
    logs[0].write_text(f"{json.dumps(line)}\n{json.dumps(other)}\n{json.dumps(line)[:-4]}")
    logs[1].write_text(f"{json.dumps(line)}\n")
    assert counted(logs)["redelivered"] == 10


def test_the_exit_code_tells_whether_the_proof_holds(capsys: pytest.CaptureFixture[str]) -> None:
    figures: dict[str, object] = {
        "published": 1_000,
        "written": 990,
        "dead_lettered": 10,
        "filtered": 0,
        "seconds": 2.5,
    }
    assert report(Proof(figures, [])) == 0
    proved = (
        "Proved: each of 1,000 events is accounted for exactly once (990 written, 10 dead-lettered), in 2.5 s; the rows"
        " equal a recount.\n"
    )
    assert capsys.readouterr() == (proved + json.dumps(figures) + "\n", "")
    assert report(Proof(figures, ["aggregation: 2 runs are committed"])) == 1
    said = "NOT proved: 1 difference between the events that were published and the store.\n"
    assert capsys.readouterr() == (said + json.dumps(figures) + "\n", "difference: aggregation: 2 runs are committed\n")
