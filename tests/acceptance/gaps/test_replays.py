"""Replays over a hub that has lost numbers to retention: over HTTP, in the host."""

from collections.abc import Iterator
from typing import Any

import pytest

from examples.home_security.transform import SensorReading
from local.stack.app_totals import count_gaps, read_books
from tests.acceptance.gaps.apps import HUB, SELDOM, App, working
from tests.fakes.kept import KeptRow

GONE = {"0": 170, "1": 220}  # numbers that left the hub at the beginning of each partition
ABSENT = {"0": set(range(120, 170)), "1": set(range(120, 220))}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """An app whose host lost 100 events of each partition after 120; some left the hub before the next 30 came."""
    with working(tmp_path_factory.mktemp("app")) as app:
        app.start(**SELDOM)
        app.publish(120)
        app.until_all_accounted()
        app.publish_skipped()
        for id, first in GONE.items():
            app.emulator.expire_before(HUB, id, first)
        app.publish(30)
        app.until_all_accounted()
        yield app


def requested(app: App, reason: str, *, dry_run: bool) -> str:
    """Request a replay of all that is committed; return its id."""
    return app.open_task("replay", reason=reason, dry_run=dry_run)


def ended(app: App, job: str) -> Any:
    """Return a replay when it has ended."""
    app.until(lambda: app.request(f"api/tasks/{job}")["status"] not in ("planned", "running"))
    return app.request(f"api/tasks/{job}")


def rows_of_gone(app: App) -> list[KeptRow]:
    return [kept for kept in app.engine.rows(SensorReading) if kept.sequence_number < GONE[kept.partition_id]]


def test_exactly_the_numbers_that_retention_cut_out_of_a_gap_are_absent(app: App) -> None:
    app.until(lambda: read_books(app.address).in_hub == 500)  # the app remembers the ends of the hub for some seconds
    books = read_books(app.address)
    assert (books.in_hub, books.accounted, books.written, books.balanced) == (500, 500, 350, True)
    assert count_gaps(app.engine.path) == {"healed": 50, "absent": 50 + 100}
    app.assert_each_number_once(ABSENT)
    assert {(line["partition"][-1], line["healed"], line["absent"]) for line in app.lines("gap")} == {
        ("0", 50, 50),
        ("1", 0, 100),
    }


def test_a_replay_lists_the_numbers_that_are_gone_and_changes_nothing_of_them(app: App) -> None:
    before, rows = (app.engine.ledger(), app.engine.gaps(), app.accounted()), rows_of_gone(app)
    absent = sum(kept.absent for kept in app.engine.ledger())
    assert (absent, len(rows)) == (50 + 100, 120 + 120)
    for dry_run in (True, False):
        job = ended(app, requested(app, f"dry run: {dry_run}", dry_run=dry_run))
        assert (job["status"], job["fault"]) == ("done", None)
        assert {one["partition_id"]: one["gone"] for one in job["partitions"]} == {
            id: [{"first": "0", "last": str(first - 1)}] for id, first in GONE.items()
        }
        assert {one["partition_id"]: one["counts"]["gone"] for one in job["partitions"]} == GONE
        assert job["counts"]["events"] == job["counts"]["written"] == 250 - 170 + 250 - 220
        assert (app.engine.ledger(), app.engine.gaps(), app.accounted()) == before
        assert rows_of_gone(app) == rows
        app.assert_each_number_once(ABSENT)
        again = [kept for kept in app.engine.rows(SensorReading) if kept.commit_number > last_commit(app, kept)]
        assert len(again) == (0 if dry_run else 110), "only a real replay writes the events of the hub again"


def last_commit(app: App, row: KeptRow) -> int:
    """Return the newest commit of a batch in the partition of a row."""
    return max(kept.commit_number for kept in app.engine.ledger() if kept.partition_id == row.partition_id)
