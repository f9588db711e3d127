"""A home of the demo is erased while events arrive, and nothing brings it back."""

import json
import os
import shlex
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

import polars as pl
import pytest

from examples.home_security.transform import SensorReading
from local.programs import APP
from tests.acceptance.started import DEADLINE, OFTEN, App
from tests.patience import allowed, until
from tests.spark.here import environment, lacking, spark_submit

GONE, STAYS = "home-to-forget", "home-that-stays"
AT = "2026-03-14T07:02:11+01:00"
SETTINGS = {**OFTEN, "TRANSFORM": "examples.home_security", "ERASURE_KEY": "a key of thirty-two octets or more"}
WITH_JAVA = pytest.mark.skipif(lacking() is not None, reason=str(lacking()))
SPARK = 600.0  # seconds of an idle machine, where Spark takes ten for a run


def engine() -> Mapping[str, str]:
    """Return the settings of an app with a local engine and a lake."""
    aggregating = {"AGGREGATION_SCHEDULE": "*/2 * * * * *", "AGGREGATION_GRACE_SECONDS": "5", "LAKE_ROWS": "true"}
    return {**environment(), "SPARK_ENGINE": "local", "SPARK_SUBMIT": spark_submit(), **aggregating}


def registered(home: str) -> bytes:
    return json.dumps({"kind": "registration", "home_id": home, "time_zone": "Asia/Tokyo", "armed": True}).encode()


def events_of(home: str, sensor: str = "hall") -> list[bytes]:
    """Return a motion and gas, which alarm, and two events that become letters."""
    by = {"home_id": home, "sensor_id": sensor, "observed_at": AT}
    gas: dict[str, object] = {"kind": "carbon_monoxide", "ppm": 170}
    bodies: tuple[dict[str, object], ...] = ({"kind": "motion", "state": "active"}, gas, {"kind": "motion"}, {})
    return [json.dumps({**body, **by}).encode() for body in bodies]


@contextmanager
def traffic(app: App) -> Iterator[None]:
    """Send motions of the home that stays, meanwhile."""
    stop = threading.Event()

    def send() -> None:
        while not stop.is_set():
            for id in app.published:
                app.send(id, events_of(STAYS)[:1] * 5)
            time.sleep(0.1)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        stop.set()
        sender.join()


def opened_again(app: App, kind: str, **body: object) -> str:
    """Open a task. A process that remembers the closed stream refuses the first request, and says to send it again."""
    try:
        return app.open_task(kind, **body)
    except urllib.error.HTTPError as refused:
        assert b"send the request again" in refused.read()
    return app.open_task(kind, **body)


def of_home(app: App, home: str) -> Counter[int]:
    """Count the readings of a home by stream."""
    rows = app.engine.rows(SensorReading)
    return Counter(one.stream_id for one in rows if one.row.home_id == home)  # type: ignore[attr-defined]


def answers(app: App, task: str) -> Iterator[tuple[str, bytes]]:
    """Give the answers of the API: of every address without a place in it, and of tasks, letters and numbers."""
    paths = [path for path, found in app.request("api/openapi.json")["paths"].items() if "get" in found]
    asked = [path.removeprefix("/") for path in paths if "{" not in path]
    asked += [f"api/tasks/{task}", f"api/homes?beginning={GONE[:7]}", f"api/revealed/ledger?key={GONE}"]
    kinds = ("ledger", "dead-letters", "revealed/ledger", "revealed/dead-letters")
    asked += [f"api/{kind}/{id}/{number}" for kind in kinds for id in app.published for number in range(12)]
    for path in asked:
        try:
            with urllib.request.urlopen(f"{app.address}/{path}", timeout=allowed(DEADLINE)) as answer:
                yield path, answer.read()
        except urllib.error.HTTPError as refused:
            yield path, refused.read()


def assert_nowhere(app: App) -> None:
    """Search the files of the store, of the host and of its log, and the tables of the lake."""
    with closing(sqlite3.connect(app.engine.path)) as store:
        store.execute("VACUUM")
        assert store.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0, "a reader keeps the log"
    octets = {one.name: one.read_bytes() for one in app.folder.glob("*") if one.is_file()}
    assert [name for name, each in octets.items() if GONE.encode() in each] == []
    assert STAYS.encode() in octets["store.db"]
    for log in app.folder.glob("lake/*/*/_delta_log"):
        table = pl.read_delta(str(log.parent))
        assert GONE not in str(table.select(pl.col(pl.String)).to_dict(as_series=False)), log


def is_summed(app: App) -> bool:
    """Return True when the aggregate and the lake have every reading."""
    ((summed, readings),) = app.engine.sql(
        "SELECT (SELECT SUM(readings) FROM home_activity), (SELECT COUNT(*) FROM sensor_reading)"
    )
    lake = [log.parent for log in app.folder.glob("lake/*/*/_delta_log") if log.parent.name == "sensor_reading"]
    return bool(lake) and summed == readings == pl.read_delta(str(lake[0])).height


def rebuilt(app: App, settings: Mapping[str, str]) -> str:
    """Compare the aggregate with a rebuild, and return the output of the job."""
    words = [sys.executable, "-m", "handlers.commands", "rebuild-arguments", "--job", "home_activity"]
    own = {**os.environ, **app.settings(**settings)}
    given = subprocess.check_output(words, cwd=APP, env=own, text=True, timeout=allowed(DEADLINE))
    words = [settings["SPARK_SUBMIT"], "jobs/rebuild_aggregate.py", "home_activity", *shlex.split(given)]
    done = subprocess.run(words, cwd=APP, env=own, text=True, capture_output=True, timeout=allowed(SPARK), check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("with_engine", [False, pytest.param(True, marks=(pytest.mark.soak, WITH_JAVA))])
def test_a_home_is_forgotten_whatever_happens(app: App, with_engine: bool) -> None:
    """Three kills of the host, a redelivery, the next incarnation, a full replay and a rebuild bring nothing back."""
    settings = {**SETTINGS, **(engine() if with_engine else {})}
    app.start(**settings)
    for home in (GONE, STAYS):
        app.send("0", [registered(home)])
    app.until_all_accounted()
    for id in app.published:
        for _ in range(20):
            app.send(id, events_of(GONE) + events_of(STAYS)[:2])
    app.until_all_accounted()
    assert of_home(app, GONE) == {1: 2 * 20 * 2}
    if with_engine:
        until(lambda: app.engine.sql("SELECT COUNT(*) FROM home_activity WHERE home_id = ?", GONE) != [(0,)], SPARK)
    with traffic(app):
        task = app.open_task("erasure", subjects=[GONE], dry_run=False, reason="a request came")
        for _ in range(3):
            app.start_host(**settings)  # kills the one before
        found = app.ended(task)
    assert (found["status"], found["fault"], found["rows"], found["letters"]) == ("done", None, 2 * 20 * 4 + 1, 80)
    app.until_all_accounted()
    app.end_host()
    with closing(sqlite3.connect(f"{app.folder}/host.db")) as host, host:
        host.execute("DELETE FROM host_checkpoint")
    app.start(**settings)  # everything is delivered again
    app.until(lambda: app.host_checkpoints() == app.published)
    order = {"reason": "the same hub again", "expected_incarnation": 1, "force": True}
    said = app.request("api/streams/next-incarnation", order)
    order |= {"dry_run": False, "expected_hub_created_at": said["hub_created_at"]}
    assert app.request("api/streams/next-incarnation", order)["outcome"] == "opened"
    app.until_all_accounted()
    replay = app.ended(opened_again(app, "replay", dry_run=False, reason="everything again"))
    assert (replay["status"], replay["fault"]) == ("done", None)
    audit = app.ended(app.open_task("audit", rows=True))
    assert (audit["status"], audit["balanced"], audit["faults"]) == ("done", True, [])
    assert of_home(app, GONE) == {}
    stays = sum(app.published.values()) - 2 - 2 * 20 * 4
    assert of_home(app, STAYS) == {1: stays, 2: stays}
    said_of_it = {path: octets for path, octets in answers(app, task) if GONE.encode() in octets}
    assert said_of_it == {}
    if with_engine:
        until(lambda: is_summed(app), SPARK)
        assert GONE not in rebuilt(app, settings)
    app.end()
    assert_nowhere(app)
