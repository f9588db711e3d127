"""bench/size/paced.py: the figures of a run at a pace follow from its commits and waits."""

import pytest

from bench.peers.latency import Fed
from bench.peers.watching import Committed
from bench.size.paced import figures

Found = dict[str, tuple[object, bool | None]]


def commits(each: int) -> list[Committed]:
    """A commit of so many events each second, of two partitions in turn; the first one has no second before it."""
    return [(f"{n % 2}", each * (n // 2) - 1, each * (n // 2 + 1) - 1, 100.0 + n) for n in range(21)]


def values(each: int, waits: tuple[float, float] | None) -> Found:
    found = figures(Fed("telemetry", 7_000, commits(each)), waits)
    return {one.name.removeprefix("size, "): (pytest.approx(one.value), one.met) for one in found}


def test_workers_that_keep_the_pace_meet_each_target() -> None:
    assert values(7_000, (400.0, 1_999.0)) == {
        "share of 7,000 events/s accounted for": (100, True),
        "from enqueued to committed at that pace, median": (0.4, None),
        "from enqueued to committed at that pace, p99": (1.999, True),
    }


def test_workers_that_fall_behind_miss_both() -> None:
    found = values(6_800, (1_500.0, 2_000.0))
    assert [name for name, (_, met) in found.items() if met is False] == [
        "share of 7,000 events/s accounted for",
        "from enqueued to committed at that pace, p99",
    ]
