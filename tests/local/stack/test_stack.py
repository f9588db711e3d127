import os
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from local.feed.businesses import HOMES
from local.stack.app_totals import Books, BooksUnavailable, Watch, count_accounted, count_gaps, read_books
from local.stack.folders import FolderInUse, fresh_folder, kept_folder, running_address
from local.stack.processes import ChildFailed, Children, Command, tail
from local.stack.stack import Place, app_settings
from local.stack.store_totals import StoreBooks
from tests.fakes.engines import SqliteEngine
from tests.local.conftest import Host
from tests.local.feed.builders import story
from tests.local.stores import ingest
from tests.patience import allowed


def test_a_kept_folder_keeps_its_content_for_one_run_at_a_time(tmp_path: Path) -> None:
    with kept_folder(tmp_path / "run") as folder:
        (folder / "store.db").write_text("rows")
        with pytest.raises(FolderInUse, match="end that one first"), kept_folder(tmp_path / "run"):
            pass
    with kept_folder(tmp_path / "run") as folder:
        assert (folder / "store.db").read_text() == "rows"


def test_a_fresh_folder_is_empty_and_removes_what_ended_runs_left_and_no_running_one(tmp_path: Path) -> None:
    with fresh_folder(tmp_path) as ended:
        (ended / "store.db").write_text("rows")
    with fresh_folder(tmp_path) as first, fresh_folder(tmp_path) as second:
        assert not ended.exists()
        assert first.exists() and second.exists()
        assert [*second.glob("*.db")] == []


def test_the_newest_host_of_a_run_or_a_demo_is_found_while_it_lives(tmp_path: Path) -> None:
    for folder in (tmp_path / "run", tmp_path / "demo" / "run-1"):
        folder.mkdir(parents=True)
        for at, port in enumerate((1, 2), start=1):
            output = folder / f"host-{at}.out"
            output.write_text(f"starting\nfunctions host ready on http://localhost:{port}/\n")
            os.utime(output, (at, at))
        asked = tmp_path if folder.parent.name == "demo" else folder
        assert running_address(asked) is None
        with kept_folder(folder):
            assert running_address(asked) == "http://localhost:2"
        assert running_address(asked) is None


def command(what: str) -> Command:
    return Command(what, "tests.local.child", [what])


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_child_is_ready_after_its_line_and_none_outlives_the_block_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="disturbed"), Children(tmp_path) as children:
        first, second, deaf = (children.start(command(what)) for what in ("ready", "ready", "deaf"))
        for child in (first, second, deaf):
            assert child.wait_ready("child ready on ", time.sleep) == "child ready on 42"
        first.kill()
        deaf.end(grace=0.1)
        assert (gone(first.pid), gone(deaf.pid), gone(second.pid)) == (True, True, False)
        assert deaf.exit_code() == -9
        raise OSError("disturbed")
    assert gone(second.pid)


def test_a_child_that_dies_is_reported_with_its_last_lines_and_one_that_ends_well_is_no_failure(tmp_path: Path) -> None:
    with Children(tmp_path) as children:
        children.start(command("done")).wait_done(time.sleep)
        dead = children.start(command("dead"))
        with pytest.raises(ChildFailed, match="dead ended with code 3:\n  no such hub"):
            dead.wait_ready("ready", time.sleep)
        with pytest.raises(ChildFailed, match="no such hub"):
            dead.wait_done(time.sleep)
    (tmp_path / "long").write_text("\n".join(str(number) for number in range(100_000)))
    assert tail(tmp_path / "long").splitlines()[-2:] == ["  99998", "  99999"]
    assert len(tail(tmp_path / "long").splitlines()) == 15
    assert tail(tmp_path / "missing") == ""


TOTALS = {"accounted": 9, "written": 6, "filtered": 2, "dead_lettered": 1, "ledger_balanced": True, "incarnation": 2}
PARTITIONS = [
    {"hub_end": "7", "stops": [{"reason": "outage"}]},
    {"hub_end": "-1", "stops": [{"reason": "outage"}, {"reason": "held"}]},
    {"hub_end": "3", "stops": []},
]
BOOKS = Books(in_hub=3, accounted=3, written=3, filtered=0, dead_lettered=0, balanced=True)


def test_the_books_are_those_of_all_partitions_without_the_hub_when_it_does_not_answer(host: Host) -> None:
    silent = [PARTITIONS[2], {"hub_end": None, "stops": []}]
    host.status = [{**TOTALS, "partitions": PARTITIONS}, {**TOTALS, "partitions": silent}]
    stopped = "  2 partitions stopped: outage  1 partition stopped: held"
    assert read_books(host.address) == Books(12, 9, 6, 2, 1, balanced=True, incarnation=2, stopped=stopped)
    assert read_books(host.address).in_hub is None


def test_an_answer_without_books_is_refused_with_its_reason_in_one_line(host: Host) -> None:
    for status, body, why in (
        (503, b'{"detail": "settings refused: TRANSFORM"}', "answers 503: settings refused: TRANSFORM"),
        (500, b"Traceback\nlong", "answers 500: Traceback$"),
        (200, b"{}", "partitions"),
        (200, b"no JSON", "Expecting value"),
    ):
        host.status = [(status, body)]
        with pytest.raises(BooksUnavailable, match=why):
            read_books(host.address)
    with pytest.raises(BooksUnavailable, match="refused"):
        read_books("http://127.0.0.1:1")


def test_the_latest_answer_stays_when_the_app_falls_silent_and_goes_with_its_address() -> None:
    answers: list[Books | None] = [None, BOOKS]
    finished, requested = threading.Event(), threading.Event()

    def read(address: str) -> Books:
        if address == "http://two":
            requested.set()
        elif not answers:
            finished.set()
        elif (answer := answers.pop(0)) is not None:
            return answer
        raise BooksUnavailable("not yet, or no longer")

    with Watch("http://one", read, every=0.001) as watch:
        assert finished.wait(allowed(10))
        assert watch.books == BOOKS
        watch.move("http://two")
        assert requested.wait(allowed(10))
        assert watch.books is None


NOWHERE = "Endpoint=sb://localhost:1;SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true"


def test_the_counts_and_books_of_a_store_are_its_ledgers_although_the_hub_is_silent(tmp_path: Path) -> None:
    place, minutes = Place(tmp_path), story(events=300)
    with closing(StoreBooks(app_settings(NOWHERE, place, HOMES.transform))) as reader:
        with pytest.raises(BooksUnavailable, match=r"^here: "):
            reader.read("here")
        ingest(place.store, minutes)
        outcomes = [event.expected.outcome for minute in minutes for event in minute.events]
        written, filtered = outcomes.count("written"), outcomes.count("filtered")
        assert reader.read("here") == Books(None, 300, written, filtered, 300 - written - filtered, balanced=True)
    empty = SqliteEngine(tmp_path / "empty.db").path
    assert (count_accounted(place.store), count_accounted(empty), count_gaps(empty)) == (300, 0, {})
