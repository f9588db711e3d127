"""Every wait of the tests has a patience (tests/patience.py), which a busy machine stretches."""

import re

from tests.repo.product import ROOT, name_of, text_of

ELSEWHERE = ("tests/patience.py", "tests/test_patience.py", "tests/repo/test_waits.py", "tests/mutants/tables/")
# A few moments in which nothing must come are fixed, because a busy machine makes such a test weaker and never red.
FIXED = re.compile(
    r"(?<![\"])\btimeout[=(](?=[1-9A-Z]|0\.)(?!None|MOMENT|\d+ \* MOMENT)"  # of a call, of subprocess and of asyncio
    r"|\.(wait|join|result)\((?=[1-9]|DEADLINE)"
    r"|monotonic\(\) \+ (?!allowed\()"
)


def fixed(line: str) -> bool:
    return FIXED.search(line) is not None


def test_no_wait_of_a_test_has_a_fixed_deadline() -> None:
    modules = [path for path in sorted((ROOT / "tests").rglob("*.py")) if not name_of(path).startswith(ELSEWHERE)]
    assert len(modules) > 500
    found = [
        f"{name_of(path)}: {line.strip()}" for path in modules for line in text_of(path).splitlines() if fixed(line)
    ]
    assert found == [], "use allowed, until, ended or Patience of tests/patience.py"


def test_a_fixed_deadline_is_seen_and_a_moment_is_none() -> None:
    deadlines = ["run(timeout=60)", "f(timeout=0.5)", "done.wait(10)", "x.join(DEADLINE)", "at = time.monotonic() + 20"]
    assert [line for line in deadlines if not fixed(line)] == []
    others = ["run(timeout=allowed(60))", "f(timeout=10 * MOMENT)", "f(timeout=0)", "done.wait()", "f(timeout=None)"]
    assert [line for line in others if fixed(line)] == []
