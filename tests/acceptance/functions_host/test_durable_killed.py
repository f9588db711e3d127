"""A host that is killed at any moment of an orchestration completes it after the next start, with nothing twice."""

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

pytestmark = pytest.mark.slow

ROUNDS, KILLS = 5, 4
ACTIVITIES = ROUNDS * 20
AT_ONCE = 10 * (os.cpu_count() or 1)


def asked(host: StartedHost, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(f"{host.base_url}{path}", data, timeout=10) as answer:
        return json.load(answer)


def status(host: StartedHost) -> Any:
    return asked(host, f"{WEBHOOK}/instances/one")


def squared(host: StartedHost) -> list[int]:
    return [int(each) for each in host.seen("slow_square")]


def until_squared(host: StartedHost, count: int) -> None:
    host.until(lambda: len(set(squared(host))) >= count)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_fan_out_with_timers_completes_over_kills(durable_app: Path, tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    chance, state = random.Random(seed), tmp_path / "state.db"
    host = StartedHost(durable_app, "--state", str(state))
    asked(host, "/api/start/fan_out_and_sleep?id=one", {"rounds": ROUNDS})
    for moment in sorted(chance.sample(range(1, ACTIVITIES), KILLS)):
        until_squared(host, moment)
        assert host.stop(signal.SIGKILL)[0] == -signal.SIGKILL
        host = StartedHost(durable_app, "--state", str(state))
    host.until(lambda: status(host)["runtimeStatus"] == "Completed")
    assert status(host)["output"] == sum(n * n for n in range(ACTIVITIES))
    again = len(squared(host)) - ACTIVITIES
    assert host.stop(signal.SIGTERM)[0] == 0
    assert 0 <= again <= KILLS * AT_ONCE, "only what ran at a kill runs again"
    check_history(state)


def check_history(state: Path) -> None:
    """Each order once, in unbroken numbers; each end once; and nothing left to do."""
    with closing(sqlite3.connect(state)) as database:
        texts = database.execute("SELECT event FROM durable_history ORDER BY position").fetchall()
        left = [database.execute(f"SELECT COUNT(*) FROM durable_{name}").fetchone() for name in ("inbox", "activity")]
    events = [json.loads(text) for (text,) in texts]
    kinds = Counter(each["EventType"] for each in events)
    assert [each["EventId"] for each in events if each["EventId"] >= 0] == list(range(ACTIVITIES + ROUNDS))
    ended = [each["TaskScheduledId"] for each in events if each["EventType"] == 5]
    assert len(ended) == len(set(ended)) == kinds[4] == ACTIVITIES
    assert (kinds[0], kinds[1], kinds[10], kinds[11]) == (1, 1, ROUNDS, ROUNDS)
    assert kinds[12] == kinds[13]
    assert left == [(0,), (0,)]
