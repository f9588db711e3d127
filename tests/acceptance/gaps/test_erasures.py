"""One home is erased amid traffic, and nothing brings it back: no killed host, no redelivery, no replay of everything.
Over HTTP, in the host."""

import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from examples.home_security.transform import SensorReading
from tests.acceptance.gaps.apps import App, working
from tests.fakes.kept import KeptRow

GONE, STAYS = "home-to-forget", "home-that-stays"
KEY = {"ERASURE_KEY": "a key of thirty-two octets or more"}
KILLS = 3


@pytest.fixture
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    with working(tmp_path_factory.mktemp("app")) as app:
        app.start(**KEY)
        yield app


def ended(app: App, task: str) -> Any:
    """Return a task when it has ended."""
    app.until(lambda: app.request(f"api/tasks/{task}")["status"] not in ("planned", "running"))
    return app.request(f"api/tasks/{task}")


def bodies(home: str) -> list[bytes]:
    """Return events of a home: rows of three tables, and letters."""
    return [f"{what} {home}".encode() for what in ("home", "reading", "double", "poison", "reading", "bug")]


def of_home(app: App, home: str) -> list[KeptRow]:
    return [one for one in app.engine.rows(SensorReading) if one.row.home_id == home]  # type: ignore[attr-defined]


def test_a_home_is_forgotten_whatever_happens(app: App) -> None:
    registered = [body + (b" 1" if body.startswith(b"home") else b"") for body in bodies(GONE)]
    for id in app.published:
        for _ in range(20):
            app.send(id, registered + [b"reading " + STAYS.encode()] * 4)
    app.until_all_accounted()
    before = Counter(one.partition_id for one in of_home(app, STAYS))
    assert len(of_home(app, GONE)) == 2 * 20 * 3
    stop = threading.Event()

    def traffic() -> None:
        while not stop.is_set():
            for id in app.published:
                app.send(id, [b"reading " + STAYS.encode()] * 5)
            time.sleep(0.1)

    sender = threading.Thread(target=traffic)
    sender.start()
    try:
        task = app.open_task("erasure", subjects=[GONE], dry_run=False, reason="a request came")
        for _ in range(KILLS):
            app.start_host(**KEY)  # kills the one before
        found = ended(app, task)
    finally:
        stop.set()
        sender.join()
    assert (found["status"], found["fault"], found["rows"], found["letters"]) == ("done", None, 2 * 20 * 4 + 1, 80)
    app.until_all_accounted()
    redeliver_everything(app)
    replay = ended(app, app.open_task("replay", dry_run=False, reason="everything again"))
    assert (replay["status"], replay["fault"]) == ("done", None)
    audit = ended(app, app.open_task("audit", rows=True))
    assert (audit["status"], audit["balanced"], audit["faults"]) == ("done", True, [])
    assert of_home(app, GONE) == []
    stays = Counter(one.partition_id for one in of_home(app, STAYS))
    assert stays == {id: count - 20 * len(registered) for id, count in app.published.items()}
    assert all(stays[id] > before[id] for id in before)
    app.end()
    assert [name for name, octets in octets_of(app).items() if GONE.encode() in octets] == []
    assert STAYS.encode() in octets_of(app)["store.db"]


def redeliver_everything(app: App) -> None:
    """Take the host's checkpoints away, and wait until it has delivered all events again."""
    app.end_host()
    with closing(sqlite3.connect(f"{app.folder}/host.db")) as host:
        host.execute("DELETE FROM host_checkpoint")
        host.commit()
    app.start(**KEY)
    app.until(lambda: app.host_checkpoints() == app.published)


def octets_of(app: App) -> dict[str, bytes]:
    """Return the files of the store, after VACUUM and a checkpoint."""
    with closing(sqlite3.connect(app.engine.path)) as store:
        store.execute("VACUUM")
        assert store.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0, "a reader keeps the log"
    return {one.name: one.read_bytes() for one in app.engine.path.parent.glob("store.db*")}
