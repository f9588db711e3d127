"""The benchmark of a drain, tiny: whole processes; its counts, not its times."""

import pytest

from tests.acceptance.demo.started import Start

pytestmark = pytest.mark.slow
EVENTS = 600


def test_a_tiny_drain_loses_and_doubles_nothing_and_stays_within_its_bound(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_EVENTS", str(EVENTS))
    ended = start("bench", "drain").wait()
    figures = {line[:59].strip(): line[59:].split() for line in ended.out if line.startswith("drain, ")}
    assert len(figures) == 9, ended.err
    assert figures["drain, differences between the store and the record"][:3] == ["0.00", "0", "met"]
    lag = figures["drain, largest lag as a share of its bound"]
    assert lag[3] == "met"
    assert 0 < int(lag[4].replace(",", "")) <= EVENTS
    assert all(float(figure[0]) > 0 for name, figure in figures.items() if "published/s" in name)
