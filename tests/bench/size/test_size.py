"""bench/size/size.py: the figures of a run follow from its looks."""

import pytest

from bench.size.looks import Look, Usage
from bench.size.size import figures

MB = 1 << 20


def look(number: int, cpu: float, worker: float = 100.0) -> Look:
    """A look each second at a run of 8,000 events per second, with two workers."""
    usage = {
        "worker-1": Usage(int(worker * MB), cpu * number),
        "worker-2": Usage(100 * MB, cpu * number),
        "emulator": Usage(50 * MB, number / 10),
        "publisher": Usage(40 * MB, number / 5),
    }
    files = {"store": 100 * 8_000 * number, "log": 4_000_000, "hub": 20 * MB}
    return Look(float(number), 8_000 * number, (0.5, 1.5), usage, files)


def values(looks: list[Look]) -> dict[str, tuple[object, bool | None]]:
    return {one.name.removeprefix("size, "): (pytest.approx(one.value), one.met) for one in figures(looks)}


def test_a_steady_run_meets_each_target() -> None:
    found = values([look(number, 0.2) for number in range(21)])
    assert found["events accounted for per second, after a fifth"] == (8_000, True)
    assert found["memory of the workers, against after a fifth"] == (1.0, True)
    assert found["CPU of the workers per event"] == (50.0, None)
    assert found["CPU of the publishers per event"] == (25.0, None)
    assert found["growth of the store per event"] == (100.0, None)
    assert found["growth of the store, last fifth against second"] == (1.0, True)
    assert found["lag, 99 of 100 looks at a partition"] == (1.5, None)
    assert [name for name, (_, met) in found.items() if met is False] == []


def test_memory_that_grows_misses_its_target() -> None:
    found = values([look(number, 0.2, worker=100.0 + 5 * number) for number in range(21)])
    assert found["memory of the workers, against after a fifth"] == (300 / 220, False)


def test_a_run_that_gets_slower_misses_the_target_of_its_cost() -> None:
    found = values([look(number, 0.2 + 0.01 * number) for number in range(21)])
    assert found["CPU of the workers per event, last fifth against second"][1] is False
