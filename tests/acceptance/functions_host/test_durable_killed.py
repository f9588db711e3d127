"""A host that is killed at any moment of its orchestrations completes them after the next start, with nothing twice."""

import json
import os
import random
import signal
import sqlite3
import urllib.request
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.functions_host.command_line import StartedHost
from tests.acceptance.functions_host.durable_sample import WEBHOOK
from tests.patience import allowed

pytestmark = pytest.mark.slow

SEED, KILLS = 1, 4
ROUNDS = 3
ACTIVITIES = ROUNDS * 20
FIRSTS = {name: number * ACTIVITIES for number, name in enumerate(("one", "two", "three"))}
AT_ONCE = 10 * (os.cpu_count() or 1)


def fetched(host: StartedHost, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(f"{host.base_url}{path}", data, timeout=allowed(10)) as answer:
        return json.load(answer)


def squared(host: StartedHost) -> list[int]:
    return [int(each) for each in host.seen("slow_square")]


def until_squared(host: StartedHost, count: int) -> None:
    host.until(lambda: len(set(squared(host))) >= count)


def test_fan_outs_with_timers_complete_over_kills(durable_app: Path, tmp_path: Path) -> None:
    print(f"seed {SEED}")
    chance, state = random.Random(SEED), tmp_path / "state.db"
    host = StartedHost(durable_app, "--state", str(state))
    for name, first in FIRSTS.items():
        fetched(host, f"/api/start/fan_out_and_sleep?id={name}", {"rounds": ROUNDS, "first": first})
    for moment in sorted(chance.sample(range(1, len(FIRSTS) * ACTIVITIES), KILLS)):
        until_squared(host, moment)
        assert host.stop(signal.SIGKILL)[0] == -signal.SIGKILL
        host = StartedHost(durable_app, "--state", str(state))
    for name, first in FIRSTS.items():
        host.until(lambda: fetched(host, f"{WEBHOOK}/instances/{name}")["runtimeStatus"] == "Completed")  # noqa: B023
        output = fetched(host, f"{WEBHOOK}/instances/{name}")["output"]
        assert output == sum(n * n for n in range(first, first + ACTIVITIES))
    again = len(squared(host)) - len(FIRSTS) * ACTIVITIES
    assert host.stop(signal.SIGTERM) == (0, "")
    assert 0 <= again <= KILLS * AT_ONCE, "only what ran at a kill runs again"
    with closing(sqlite3.connect(state)) as database:
        for name in FIRSTS:
            check_history(database, name)
        for table in ("durable_inbox", "durable_activity"):
            assert database.execute(f"SELECT COUNT(*) FROM {table}").fetchone() == (0,)


def check_history(database: sqlite3.Connection, instance_id: str) -> None:
    """Each order occurs once, in unbroken numbers, and each end once."""
    query = "SELECT event FROM durable_history WHERE instance_id = ? ORDER BY position"
    events = [json.loads(text) for (text,) in database.execute(query, (instance_id,))]
    kinds = Counter(each["EventType"] for each in events)
    assert [each["EventId"] for each in events if each["EventId"] >= 0] == list(range(ACTIVITIES + ROUNDS))
    ended = [each["TaskScheduledId"] for each in events if each["EventType"] == 5]
    assert len(ended) == len(set(ended)) == kinds[4] == ACTIVITIES
    assert (kinds[0], kinds[1], kinds[10], kinds[11]) == (1, 1, ROUNDS, ROUNDS)
    assert kinds[12] == kinds[13]
