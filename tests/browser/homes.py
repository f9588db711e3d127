"""A home with a week of readings, and the windows that a job would compute from them."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from core.aggregation.runs import planned_run
from examples.home_security.activity import end_of_window
from examples.home_security.aggregates.home_activity import HomeActivity
from tests.fakes.aggregation_engines import HOME_ACTIVITY, ROW_LOST, SqliteAggregation, committed, finish, stage
from tests.fakes.engines import SqliteEngine

HOME, EMPTY = "H100003", "H100007"
END = datetime(2026, 3, 14, 17, 40, tzinfo=UTC)  # of the week: long over, as in a run of the feed
RUSH = (6, 7, 8, 12, 17, 18, 19, 20, 21)  # hours in which people are about


def week(home_id: str = HOME) -> Iterator[bytes]:
    """Seven days: people come and go, carbon monoxide is measured all the time and is high on one evening."""
    at, number = END - timedelta(days=7), 0
    while at < END:
        at, number = at + timedelta(minutes=20), number + 1
        busy = at.hour in RUSH
        yield switch(home_id, "motion", busy or number % 7 == 0, at)
        if busy:
            yield switch(home_id, "door", number % 2 == 0, at + timedelta(minutes=3))
        if number % 4 == 0:
            yield switch(home_id, "window", number % 24 == 0, at + timedelta(minutes=5))
        alarm = at.day == 13 and at.hour == 19
        yield monoxide(home_id, 84 + number % 9 if alarm else 2 + number % 5 + 6 * busy, at + timedelta(minutes=7))


def switch(home_id: str, kind: str, active: bool, at: datetime) -> bytes:
    state = "active" if active else "idle"
    return _body(home_id, kind, f"{kind}-1", at, state=state)


def monoxide(home_id: str, ppm: int, at: datetime) -> bytes:
    return _body(home_id, "carbon_monoxide", "co-1", at, ppm=ppm)


def registration(home_id: str, time_zone: str = "Europe/Paris", armed: bool = False) -> bytes:
    return json.dumps({"kind": "registration", "home_id": home_id, "time_zone": time_zone, "armed": armed}).encode()


def _body(home_id: str, kind: str, sensor_id: str, at: datetime, **value: object) -> bytes:
    named = {"kind": kind, "home_id": home_id, "sensor_id": sensor_id, "observed_at": at.isoformat()}
    return json.dumps({**named, **value}).encode()


def aggregate(path: Path, now: datetime) -> None:
    """Make one run over all commits since the last run: summed here by hand, and committed by the store."""
    sqlite = SqliteEngine(path)
    database = SqliteAggregation(sqlite)
    store = database.open()
    run = planned_run(HOME_ACTIVITY, store.read_standing(HOME_ACTIVITY), "local", now - timedelta(seconds=48))
    assert run is not None
    assert store.open_run(run)
    stage(database, run.run_id, run.run_id, list(_windows(sqlite)), whole=True)
    finish(database, run.run_id, run.run_id, now, json.dumps(quality_of(sqlite)))
    staged = store.read_staged(run.run_id)
    assert staged is not None
    assert committed(store, run, staged, now)
    store.close()


def quality_of(sqlite: SqliteEngine) -> dict[str, Any]:
    """The quality of a run over all rows, after one of partition 3 was deleted by hand."""
    ((rows, found),) = sqlite.sql("SELECT COUNT(*), SUM(partition_id = '3') FROM sensor_reading")
    fault = (
        f"the ledger counts {rows:,} rows, and the tables have {rows - 1:,}: partition 3 has {found - 1} of its {found}"
    )
    places = [{"partition": "1/3", "ledger": found, "found": found - 1}]
    read = {"rows_read": rows - 1, "rows_removed": 0, "rows_elsewhere": 0, "partitions": places}
    return {**ROW_LOST, **read, "fault": fault, "rows_ledger": rows}


def _windows(sqlite: SqliteEngine) -> Iterator[HomeActivity]:
    """Every window of every home, from the rows themselves."""
    kept: dict[tuple[str, str, datetime], list[tuple[str | None, int | None, datetime]]] = {}
    for home_id, kind, state, ppm, text in sqlite.sql(
        "SELECT home_id, kind, state, ppm, observed_at FROM sensor_reading"
    ):
        at = datetime.fromisoformat(text)
        start = end_of_window(at) - timedelta(minutes=15)
        kept.setdefault((home_id, kind, start), []).append((state, ppm, at))
    for (home_id, kind, start), readings in kept.items():
        active = sum(state == "active" for state, _, _ in readings)
        ppm = [100 * value for _, value, _ in readings if value is not None]
        times = [at for _, _, at in readings]
        total, least, most = (sum(ppm), min(ppm), max(ppm)) if ppm else (None, None, None)
        first, last = min(times), max(times)
        yield HomeActivity(home_id, start, kind, len(readings), active, total, least, most, first, last)
