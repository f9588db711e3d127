import signal
from pathlib import Path

import pytest

from local.feed.businesses import HOMES
from local.recount.recount import recount
from tests.acceptance.started import DEADLINE, HUB, OFTEN, App, start, working
from tests.fakes.engines import SqliteEngine
from tests.patience import ended, until

pytestmark = pytest.mark.slow

PARTITIONS = 4
RETRIES = 8  # of the trigger: handlers/ingest.py
HOST = ("--like-azure", "--longest-pause", "0.1")
SETTINGS = {**OFTEN, "TRANSFORM": HOMES.transform, "STORE_PATIENCE_SECONDS": "0"}
TABLES = ("event_hub_checkpoint", "batch_ledger")  # without the first no read succeeds, without the second no commit
FEED = ("--homes", "100", "--events", "1000000", "--rate", "400", "--registered")  # a signal ends it


def committed(engine: SqliteEngine) -> dict[str, int]:
    return dict(engine.sql("SELECT partition_id, sequence_number + 1 FROM event_hub_checkpoint"))


def run_ahead(app: App, table: str) -> dict[str, range]:
    """Let each statement on a table fail at once, as all do without a server, until the host has passed a batch of each
    partition. Return the numbers that it passed."""
    app.engine.sql("BEGIN IMMEDIATE")
    before = committed(app.engine)
    app.engine.sql(f"ALTER TABLE {table} RENAME TO away")
    app.engine.sql("COMMIT")

    def passed() -> dict[str, range]:
        return {id: range(before[id], count) for id, count in app.host_checkpoints().items()}

    def of_each() -> dict[str, range]:
        found = passed()  # the host may have written no checkpoint yet
        return found if len(found) == PARTITIONS and all(found.values()) else {}

    ahead = until(of_each, DEADLINE, passed)
    app.engine.sql(f"ALTER TABLE away RENAME TO {table}")
    until(lambda: all(committed(app.engine)[id] > each.stop for id, each in ahead.items()), DEADLINE)
    print(f"{table}: the trigger ran {sum(map(len, ahead.values())):,} events ahead: {ahead}")
    return ahead


def assert_order_of_keys(engine: SqliteEngine) -> None:
    newest: dict[str, tuple[int, int]] = {}
    rows = engine.sql("SELECT home_id, commit_number, sequence_number FROM sensor_reading ORDER BY sequence_number")
    for home_id, *place in rows:
        assert newest.get(home_id, (0, -1)) < tuple(place), home_id
        newest[home_id] = tuple(place)


def test_an_outage_that_outlives_the_retries_neither_loses_nor_doubles_nor_letters_an_event(tmp_path: Path) -> None:
    record = tmp_path / "record.db"
    with working(tmp_path, PARTITIONS) as app:
        app.start_host(*HOST, **SETTINGS)
        feed = start("local.feed", "--connection", app.emulator.connection_string, "--record", str(record), *FEED)
        until(lambda: len(committed(app.engine)) == PARTITIONS, DEADLINE)
        try:
            ahead = [run_ahead(app, table) for table in TABLES]
        finally:
            feed.send_signal(signal.SIGTERM)
        assert (ended(feed, DEADLINE)[1], feed.returncode) == ("", 0)
        app.published = {id: last + 1 for id, last in app.emulator.end_of(HUB).items()}
        app.until_all_accounted()
        app.until(lambda: "open" not in {gap.status for gap in app.engine.gaps()})  # a check closes the last ones
        app.until(lambda: [one["stops"] for one in app.request("api/status")["partitions"]] == [[]] * PARTITIONS)
        app.end()
        assert max(line["retry_count"] for line in app.lines("function_failed")) == RETRIES
        assert recount(app.engine.path, record, HOMES) == []
        assert {letter.error_class for letter in app.engine.letters()} <= {"poison"}
        gaps = [gap for gap in app.engine.gaps() if gap.status == "healed"]
        healed = {(gap.partition_id, number) for gap in gaps for number in range(gap.first, gap.last + 1)}
        assert {(id, number) for each in ahead for id, numbers in each.items() for number in numbers} <= healed
        assert_order_of_keys(app.engine)
        assert app.lines("worker_died") == []
