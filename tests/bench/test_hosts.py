import time
from pathlib import Path

import pytest

from bench.figures import Figure, Table
from bench.peers import hosts
from bench.peers.hosts import NAMES, report, run, steady
from bench.peers.run import BARE, FAST, HOST, NOTHING, Bench, group_of
from bench.peers.watching import Look
from bench.report.words import SHARE
from local.stack.processes import Children
from local.stack.stack import HUB, Place, Stack

EVENTS = 2_000


def test_the_start_and_the_end_of_a_run_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "EVENTS", 1_000)
    looks = [Look(0, 0, 0), Look(9, 100, 5), Look(10, 200, 6.0), Look(12, 900, 6.7), Look(20, 1_000, 9)]
    assert list(steady(looks)) == pytest.approx([350, 1_000])
    assert steady([looks[0], looks[-1]]) == (50, 9_000)  # too quick to look at


def test_ours_is_compared_round_by_round() -> None:
    taken = {
        HOST: [(90, 30), (50, 31)],
        FAST: [(100, 29), (50, 30)],
        BARE: [(30, 100), (10, 99)],
        NOTHING: [(45, 9), (25, 9)],
    }
    table, *figures = report(taken, "this host")
    assert isinstance(table, Table) and table.rows[0] == (NAMES[HOST], 70, 30.5)
    found = {one.name.removeprefix(SHARE): (one.value, one.met) for one in figures if isinstance(one, Figure)}
    assert found == {NAMES[FAST]: (0.95, True), NAMES[BARE]: (4, None), NAMES[NOTHING]: (2, None)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [HOST, FAST, NOTHING])
def test_a_function_handles_all_events_on_the_local_host(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "EVENTS", EVENTS)
    with Children(tmp_path) as children:
        stack = Stack(Place(tmp_path), children, time.sleep)
        stack.start_emulator("--consumer-group", group_of(kind), "--retain", str(EVENTS), "--lead", "0")
        bench = Bench(tmp_path, children, stack.connection, "")
        bench.start_feed(HUB, EVENTS, "full").wait_done(time.sleep)
        looks = run(bench, kind)
    assert looks[-1].rows == EVENTS and looks[-1].cpu > looks[0].cpu
