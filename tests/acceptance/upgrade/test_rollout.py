"""An upgrade and a rollback under load: two releases over one store, apart and together, with kills in between."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from local.recount.recount import recount
from local.stack.app_totals import get, read_books
from local.stack.processes import Child
from tests.acceptance.upgrade.rollout import Rollout, events_of_hub, rehearsal

pytestmark = pytest.mark.soak


def versions(run: Rollout) -> list[int]:
    """Return the numbers of our migrations that the store has."""
    with closing(sqlite3.connect(run.place.store)) as connection:
        return [number for (number,) in connection.execute("SELECT DISTINCT version FROM schema_migration ORDER BY 1")]


def take_over(run: Rollout) -> Child:
    """Migrate while the old app works, start the new app beside it, kill the old one, and return the new one."""
    old = run.start(run.old)
    run.until_progress()
    before = versions(run)
    assert run.migrate(run.new)[-1] == "the store is up to date"
    assert versions(run) > before, "the releases have the same schema"
    run.until_progress()
    assert old.running, old.tail()
    new = run.start(run.new)
    run.until(lambda: run.ingested(run.new) > 2, "the new app ingests beside the old one")
    run.until_progress()
    old.kill()
    return new


def roll_back(run: Rollout, new: Child) -> Child:
    """Kill the new app under load, let the old one work on the new schema and die, and return the new one after it."""
    run.until_progress()
    new.kill()
    old = run.start(run.old)
    run.until_progress()
    old.kill()
    old = run.start(run.old)
    run.until_progress()
    newest = run.start(run.new)
    run.until(lambda: run.ingested(run.new) > 2, "the new app ingests again")
    old.end()
    return newest


def address_of(app: Child) -> str:
    line = next(line for line in app.output.read_text().splitlines() if "functions host ready on " in line)
    return line.rpartition(" ")[2].rstrip("/")


def test_an_upgrade_and_a_rollback_under_load_account_for_each_event_once(tmp_path: Path) -> None:
    with rehearsal(tmp_path) as run:
        run.migrate(run.old)
        feed = run.start_feed()
        newest = roll_back(run, take_over(run))
        feed.end()
        address = address_of(newest)
        run.until(lambda: is_settled(address), "the lag ends and every letter is settled")
        books, audit = read_books(address), json.loads(get(address, "/api/ledger/audit"))
        assert (books.balanced, audit["balanced"], audit["faults"]) == (True, True, [])
    assert recount(run.place.store, run.record) == []
    with closing(sqlite3.connect(run.place.store)) as connection:
        found = connection.execute("SELECT partition_id, sequence_number + 1 FROM event_hub_checkpoint").fetchall()
    assert dict(found) == events_of_hub(run.place)
    assert sum(events_of_hub(run.place).values()) == books.accounted


def is_settled(address: str) -> bool:
    """Return True when all events of the hub are accounted for."""
    books = read_books(address)
    return books.in_hub == books.accounted
