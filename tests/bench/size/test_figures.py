"""bench/size: the figures of a run follow from its looks, and those at a pace from its commits and waits."""

from collections.abc import Iterable

import pytest

from bench.figures import Figure
from bench.peers.latency import Fed
from bench.peers.watching import Committed
from bench.size import paced, size
from bench.size.looks import Look, Usage

MB = 1 << 20
SLOW = ["share of 7,000 events/s accounted for", "from enqueued to committed at that pace, p99"]
Found = dict[str, tuple[object, bool | None]]


def look(number: int, cpu: float, worker: float = 100.0) -> Look:
    """A look each second at a run of 8,000 events per second, with two workers."""
    usage = {
        "worker-1": Usage(int(worker * MB), cpu * number), "worker-2": Usage(100 * MB, cpu * number),
        "emulator": Usage(50 * MB, number / 10), "publisher": Usage(40 * MB, number / 5),
    }  # fmt: skip
    files = {"store": 100 * 8_000 * number, "log": 4_000_000, "hub": 20 * MB}
    return Look(float(number), 8_000 * number, (0.5, 1.5), usage, files)


def fed(each: int) -> Fed:
    """A feed with a commit of so many events each second, of two partitions in turn."""
    commits: list[Committed] = [
        (f"{n % 2}", each * (n // 2) - 1, each * (n // 2 + 1) - 1, 100.0 + n) for n in range(21)
    ]
    return Fed("telemetry", 7_000, commits)


def values(figures: Iterable[Figure]) -> Found:
    return {one.name.removeprefix("size, "): (pytest.approx(one.value), one.met) for one in figures}


def missed(figures: Iterable[Figure]) -> list[str]:
    return [name for name, (_, met) in values(figures).items() if met is False]


def test_a_steady_run_meets_each_target() -> None:
    found = values(size.figures([look(number, 0.2) for number in range(21)]))
    assert found["events accounted for per second, after a fifth"] == (8_000, True)
    assert found["memory of the workers, against after a fifth"] == (1.0, True)
    assert found["CPU of the workers per event"] == (50.0, None)
    assert found["CPU of the publishers per event"] == (25.0, None)
    assert found["growth of the store per event"] == (100.0, None)
    assert found["growth of the store, last fifth against second"] == (1.0, True)
    assert found["lag, 99 of 100 looks at a partition"] == (1.5, None)
    assert [name for name, (_, met) in found.items() if met is False] == []


def test_memory_that_grows_and_a_run_that_gets_slower_miss_their_targets() -> None:
    found = values(size.figures([look(number, 0.2, worker=100.0 + 5 * number) for number in range(21)]))
    assert found["memory of the workers, against after a fifth"] == (300 / 220, False)
    slower = size.figures([look(number, 0.2 + 0.01 * number) for number in range(21)])
    assert "CPU of the workers per event, last fifth against second" in missed(slower)


def test_workers_that_keep_the_pace_meet_each_target_and_those_that_fall_behind_miss_both() -> None:
    assert values(paced.figures(fed(7_000), (400.0, 1_999.0))) == {
        SLOW[0]: (100, True),
        "from enqueued to committed at that pace, median": (0.4, None),
        SLOW[1]: (1.999, True),
    }
    assert missed(paced.figures(fed(6_800), (1_500.0, 2_000.0))) == SLOW
