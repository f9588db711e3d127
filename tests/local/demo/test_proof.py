import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.demo import aggregation
from local.demo.aggregation import NoAggregate, NotAggregated, Range, rows_per_event
from local.demo.proof import Finished, Proof, prove, report
from local.feed.businesses import HOMES, domain_of_sample
from local.feed.event_file import FileEvent
from local.feed.record import ONCE, Copies
from local.feed.sample import Sample
from local.stack.app_totals import Books
from tests.local.conftest import Host
from tests.local.feed.builders import story
from tests.local.stores import Files, shop, write_record
from tests.rooms.found import outcomes_of, room_named

BOOKS = Books(in_hub=300, accounted=300, written=200, filtered=60, dead_lettered=40, balanced=True)
STRUCK = Counter(kill=2, skip=2, cut=2, lock=1)


def finished(**given: Any) -> Finished:
    plain = {"published": Copies(300, 300), "books": BOOKS, "seconds": 2.0, "struck": Counter(), "workers": 0}
    return Finished(**{**plain, "logs": [], **given})


def note_gaps(files: Files, *gaps: tuple[int, int, str]) -> None:
    for first, last, status in gaps:
        files.change(f"INSERT INTO sequence_gap VALUES (1, '0', {first}, {last}, '2026-01-01', '{status}', 1)")


def log_of(folder: Path, *actions: str, end: str = "") -> Path:
    path = folder / f"host-{len(actions)}.log"
    path.write_text("".join(json.dumps({"action": one, "redelivered": 5}) + "\n" for one in actions) + end)
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files.agreeing(tmp_path_factory.mktemp("made"), story(events=300), settled=True)


@pytest.fixture
def files(made: Files, tmp_path: Path) -> Files:
    return made.copied_to(tmp_path)


def proved(files: Files, run: Finished) -> Proof:
    return prove(run, files.store, files.record)


def test_the_figures_come_in_their_order_and_count_gaps_in_events(files: Files, tmp_path: Path) -> None:
    note_gaps(files, (0, 9, "healed"), (10, 11, "absent"), (20, 24, "healed"))
    rest = ("host_recycled", "batch_unbound", "reader_stopped", "listener_failed", "events_dropped")
    logs = [log_of(tmp_path, "ingest", *["worker_died"] * 3, *rest), log_of(tmp_path, "ingest", end='{"action": "ing')]
    proof = proved(files, finished(struck=Counter(kill=3), workers=3, logs=[*logs, tmp_path / "missing.log"]))
    assert proof.differences == []
    assert list(proof.figures.items()) == [
        ("published", 300),
        ("accounted", 300),
        ("written", 200),
        ("filtered", 60),
        ("dead_lettered", 40),
        ("letters", {"resolved": 6, "exhausted": 29, "waiting": 0}),
        ("gaps", {"healed": 15, "absent": 2}),
        ("redelivered_dropped", 10),
        ("ledger_balanced", True),
        ("seconds", 2.0),
        ("events_per_second", 150),
        ("kills", 3),
        ("like_azure", {"worker_deaths": 3, "host_exits": 1}),
        ("undeliverable", {"unbound": 1, "stopped": 2, "dropped": 1}),
        ("workers", 3),
    ]


def test_chaos_reports_its_blows_and_proves_nothing_without_a_lost_batch(files: Files, tmp_path: Path) -> None:
    log = log_of(tmp_path, *["batch_skipped"] * 5, end='{"action": "batch_s')
    proof = proved(files, finished(struck=STRUCK, logs=[log]))
    assert proof.differences == ["chaos: no gap was healed"]
    chaos = {"skipped_batches": 5, "cuts": 2, "locks": 1}
    assert list(proof.figures.items())[-2:] == [("kills", 2), ("chaos", chaos)]
    note_gaps(files, (0, 0, "healed"))
    assert proved(files, finished(struck=STRUCK, logs=[log])).differences == []
    assert proved(files, finished(struck=STRUCK)).differences == ["chaos: the host lost no batch"]


def test_each_disagreement_is_a_difference(files: Files, tmp_path: Path) -> None:
    missing = proved(files, finished(books=replace(BOOKS, accounted=299)))
    assert missing.differences == ["status: 299 events accounted for, 300 published"]
    unbalanced = proved(files, finished(books=replace(BOOKS, balanced=False)))
    assert unbalanced.differences == ["status: the app reports that its ledger is not balanced"]
    assert unbalanced.figures["ledger_balanced"] is False
    files.change("UPDATE event_hub_dead_letter SET status = 'waiting' WHERE error_class = 'poison'")
    assert "letters: 29 are still waiting" in proved(files, finished()).differences
    assert proved(files, finished(published=Copies(290, 310))).figures["published"] == 300, "the hub knows"
    assert proved(files, finished(published=Copies(290, 295))).figures["published"] == 295
    write_record(tmp_path / "other.db", [(minute, ONCE) for minute in story(events=300, seed=2)])
    assert prove(finished(), files.store, tmp_path / "other.db").differences


def test_the_exit_code_tells_whether_the_proof_holds(capsys: pytest.CaptureFixture[str]) -> None:
    figures: dict[str, object] = {
        "published": 1_000,
        "written": 990,
        "dead_lettered": 10,
        "filtered": 0,
        "seconds": 2.5,
    }
    assert report(Proof(figures, [])) == 0
    assert capsys.readouterr() == (
        "Proved: each of 1,000 events is accounted for exactly once (990 written, 10 dead-lettered), in 2.5 s; the rows"
        f" equal a recount.\n{json.dumps(figures)}\n",
        "",
    )
    assert report(Proof(figures, ["aggregation: 2 runs are committed"])) == 1
    said = "NOT proved: 1 difference between the events that were published and the store.\n"
    assert capsys.readouterr() == (said + json.dumps(figures) + "\n", "difference: aggregation: 2 runs are committed\n")


RUN: dict[str, Any] = {"number": 1, "attempt": 1, "status": "submitted", "failure": None}


def test_a_failed_run_ends_the_aggregation_with_its_reason_and_its_last_words(host: Host, tmp_path: Path) -> None:
    (tmp_path / "spark" / "agg-r-1").mkdir(parents=True)
    (tmp_path / "spark" / "agg-r-1" / "err").write_text("no space left\n")
    host.answers = [(202, {"did": ["failed"], "run": {**RUN, "status": "failed", "failure": "5 attempts"}})]
    with pytest.raises(NotAggregated, match=r"1, failed: 5 attempts; the newest job's last lines:\n.*no space"):
        aggregation.aggregate_all(host.address, "home_activity", tmp_path, lambda _: None)


def test_the_rows_of_a_line_are_counted_with_the_states_of_the_lines_before_it() -> None:
    path = Path("examples/home_security/events.jsonl")
    lines = tuple(FileEvent(number, body) for number, body in enumerate(path.read_bytes().splitlines(), 1))
    rows = 1 + sum(len(one.rows) for one in outcomes_of(room_named(HOMES.transform)))
    assert rows_per_event(domain_of_sample(HOMES.transform, Sample(path, lines))) == pytest.approx(rows / len(lines))
    assert rows_per_event(HOMES) == 0.83
    with pytest.raises(NoAggregate, match="shop declares no aggregate"):
        aggregation.aggregate_of_demo(shop())


CHOSEN = Range("3", 0, 99, 80)
COUNTS = {"events": 100, "rows_retracted": 91}
