"""local/demo/chaos.py: the plan of the blows, and their strikes."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from local.demo.chaos import KILLS, LOCKED, LONGEST_DELAY, SKIPPED, Chaos, blow_plan
from local.stack.processes import Children
from local.stack.stack import Place, Stack

EVENTS = 10_000


class Struck:
    """A host and an emulator that only note the blows."""

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


def test_without_chaos_the_kills_alone_are_spread_over_the_run_in_order() -> None:
    for seed in range(50):
        plan = blow_plan(EVENTS, 4, seed, chaos=False)
        assert [blow.kind for blow in plan] == ["kill"] * 4
        assert all(earlier.accounted < later.accounted for earlier, later in pairwise(plan))
        assert all(0 < blow.accounted <= 9_000 for blow in plan[:-1])
        assert all(0 <= blow.delay <= LONGEST_DELAY for blow in plan)
        assert {*plan} < {*blow_plan(EVENTS, 4, seed, chaos=True)}
    assert blow_plan(EVENTS, 0, 1, chaos=False) == []


def test_the_last_of_several_kills_comes_when_all_is_accounted_for_and_letters_are_retried() -> None:
    lasts = [blow_plan(EVENTS, kills, 1, chaos=False)[-1].accounted for kills in (1, 2, 3)]
    assert [last == EVENTS for last in lasts] == [False, True, True]


def test_the_host_loses_its_first_batches_and_some_more_at_each_kill_and_skip(tmp_path: Path) -> None:
    struck = Struck()
    strikes = chaos(tmp_path, struck).strikes
    assert struck.done == [1]
    strikes["kill"]()
    strikes["skip"]()
    strikes["cut"]()
    assert struck.done == [1, "killed", 1, SKIPPED, "cut"]


def test_while_the_store_is_locked_no_process_can_write_and_afterwards_each_can(tmp_path: Path) -> None:
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
