"""The order of the tests: processes take whole modules, the longest first, and the end says what was left out.

A module is as long as it was when `tests/seconds.json` was stored. Tests that share a server by a fixture of their
package stay together, and so do those of Spark, because each process of them starts a JVM.
"""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.spark.passed import is_passed

ROOT = Path(__file__).parents[1]
STORED = ROOT / "tests" / "seconds.json"
# Whatever lies here starts processes, or is of `make check-infra`: `make test` runs only its proofs.
SLOW = ("acceptance", "browser", "infra", "smoke", "spark")
TOGETHER = ("tests/acceptance/api", "tests/acceptance/cli", "tests/browser", "tests/spark")
OF_SUBJECTS = "proof"
NEW = 5.0  # seconds of a module that was never measured


def stored_seconds() -> dict[str, float]:
    return dict(json.loads(STORED.read_text(encoding="utf-8"))) if STORED.exists() else {}


def module_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def unit_of(nodeid: str) -> str:
    """Return the name of what one process runs as a whole: a package that shares a server, otherwise a module."""
    module = module_of(nodeid)
    return next((each for each in TOGETHER if module.startswith(f"{each}/")), module)


def room_of(module: str) -> str:
    parts = module.removeprefix("tests/").split("/")[:-1]
    return "/".join(parts[:2] if parts[:1] == ["acceptance"] else parts[:1])


class LongestFirst(LoadScopeScheduling):
    """Gives a process that has little left the longest unit that nobody has begun."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)

    def schedule(self) -> None:
        self.config.option.loadscopereorder = False
        super().schedule()


SECONDS: defaultdict[str, float] = defaultdict(float)  # of each module of this run
TESTS: Counter[str] = Counter()
LEFT_OUT: Counter[str] = Counter()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--store-seconds", action="store_true", help="store the seconds of each module for later runs")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LongestFirst:
    return LongestFirst(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folders = tuple(f"tests/{each}/" for each in SLOW)
    passed = is_passed()
    for item in items:
        if item.nodeid.startswith(folders):
            item.add_marker(pytest.mark.slow)
        if passed and item.nodeid.startswith("tests/spark/") and not is_always_run(item):
            item.add_marker(pytest.mark.soak)
    stored = stored_seconds()
    units: defaultdict[str, float] = defaultdict(float)
    for module in {module_of(item.nodeid) for item in items}:
        units[unit_of(module)] += stored.get(module, NEW)
    items.sort(key=lambda item: -units[unit_of(item.nodeid)])


def is_always_run(item: pytest.Item) -> bool:
    return module_of(item.nodeid) == "tests/spark/test_engines.py" or item.get_closest_marker(OF_SUBJECTS) is not None


def pytest_deselected(items: list[pytest.Item]) -> None:
    LEFT_OUT["tests"] += len(items)


def pytest_sessionfinish(session: pytest.Session) -> None:
    getattr(session.config, "workeroutput", {}).update(LEFT_OUT)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    LEFT_OUT["tests"] = max(LEFT_OUT["tests"], getattr(node, "workeroutput", {}).get("tests", 0))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    module = module_of(report.nodeid)
    SECONDS[module] += report.duration
    TESTS[module] += report.when == "call" or report.skipped


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.getoption("--store-seconds"):
        kept = {module: round(spent, 1) for module, spent in sorted(SECONDS.items()) if spent >= 1}
        STORED.write_text(json.dumps(kept) + "\n", encoding="utf-8")
    if config.getoption("numprocesses", None):
        terminalreporter.section("seconds of each room")
        rooms: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0])
        for module, spent in SECONDS.items():
            room = rooms[room_of(module)]
            room[:] = [room[0] + spent, room[1] + TESTS[module]]
        for name, (spent, tests) in sorted(rooms.items(), key=lambda one: -one[1][0]):
            terminalreporter.write_line(f"{spent:8.1f} s  {tests:5,}  {name}")
    if OF_SUBJECTS in config.option.markexpr and LEFT_OUT["tests"]:
        minutes = sum(stored_seconds().values()) / 60 / 2
        rest = f"{LEFT_OUT['tests']:,} tests more ({minutes:.0f} min on two cores)"
        terminalreporter.write_line(f"left out: make test-all has {rest}")
