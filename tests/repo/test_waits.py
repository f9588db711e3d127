"""Every wait of the tests that start processes has a patience (tests/patience.py), which a busy machine stretches."""

import re

from tests.repo.product import ROOT, text_of

FOLDERS = ("acceptance", "browser", "contract", "infra", "smoke", "spark", "sql")
FIXED = re.compile(
    r"\btimeout[=(](?=[\dA-Z])"  # of a call, of subprocess and of asyncio
    r"|\.(wait|join|result)\((?=[1-9]|DEADLINE)"
    r"|monotonic\(\) \+ (?!allowed\()"
)


def test_no_wait_of_a_test_that_starts_processes_has_a_fixed_deadline() -> None:
    modules = [path for folder in FOLDERS for path in sorted((ROOT / "tests" / folder).rglob("*.py"))]
    assert len(modules) > 100
    fixed = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in modules
        for line in text_of(path).splitlines()
        if FIXED.search(line)
    ]
    assert fixed == [], "use allowed, until, ended or Patience of tests/patience.py"
