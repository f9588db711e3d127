"""local/chaos.py: the plan of the blows, and how they are struck."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from local.chaos import KILLS, LOCKED, SKIPPED, Blow, Chaos, blow_plan
from local.kills import kill_plan
from local.processes import Children
from local.stack import Place, Stack

EVENTS = 10_000


class Struck:
    """A host and an emulator that only note what is done to them."""

    def __init__(self) -> None:
        self.done: list[object] = []

    def kill_one(self) -> None:
        self.done.append("killed")

    def skip(self, batches: int) -> None:
        self.done.append(batches)

    def cut_connections(self) -> None:
        self.done.append("cut")


def chaos(folder: Path, struck: Any, pause: Callable[[float], None] = lambda _: None) -> Chaos:
    return Chaos(Stack(Place(folder), cast(Children, None), pause), struck, struck)


def test_every_kind_of_blow_is_struck_while_events_are_still_to_come() -> None:
    for seed in range(50):
        plan = blow_plan(EVENTS, KILLS, seed, chaos=True)
        assert plan == sorted(plan)
        kinds = [blow.kind for blow in plan]
        assert {kind: kinds.count(kind) for kind in set(kinds)} == {"kill": KILLS, "skip": 2, "cut": 2, "lock": 1}
        assert all(blow.accounted < EVENTS for blow in plan if blow.kind != "kill")


def test_the_seed_decides_the_moments() -> None:
    plans = {tuple(blow_plan(EVENTS, KILLS, seed, chaos=True)) for seed in (1, 1, 2, 3)}
    assert len(plans) == 3


def test_without_chaos_there_are_the_kills_alone() -> None:
    assert blow_plan(EVENTS, 3, 1, chaos=False) == [Blow(*kill, "kill") for kill in kill_plan(EVENTS, 3, 1)]


def test_the_host_loses_its_first_batches_and_some_more_at_each_kill_and_skip(tmp_path: Path) -> None:
    struck = Struck()
    strikes = chaos(tmp_path, struck).strikes
    assert struck.done == [1]
    strikes["kill"]()
    strikes["skip"]()
    strikes["cut"]()
    assert struck.done == [1, "killed", 1, SKIPPED, "cut"]


def test_while_the_store_is_locked_nobody_can_write_and_afterwards_everybody_can(tmp_path: Path) -> None:
    path = Place(tmp_path).store
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE one (number INTEGER)")
    waited: list[float] = []

    def write() -> None:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
            connection.execute("INSERT INTO one VALUES (1)")

    def pause(seconds: float) -> None:
        waited.append(seconds)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            write()

    chaos(tmp_path, Struck(), pause).strikes["lock"]()
    assert waited == [LOCKED]
    write()
