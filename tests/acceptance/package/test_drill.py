"""The change that docs/architecture.md walks through is made in a copy of the tree, and the copy is asked."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import ROOT, copy_checkout
from tests.patience import allowed

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CHANGES: list[tuple[str, str]] = re.findall(r"^```diff (\S+)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
ASKED = """
from tests.unit.handlers.running import HOME, Running

def test_the_copy(running: Running) -> None:
    running.ingest([0, 1], [HOME, b"{"])
    place = {"partition_id": "1", "sequence_number": "1"}
    assert running.get("list_letters").body["letters"][0]["first_tried_at"] is None
    order = {"letters": [place], "expected_count": 1, "reason": "because I say so"}
    assert running.post("retry_letters_now", order).status == 200
    (letter,) = running.get("list_letters").body["letters"]
    whole = running.get("show_letter", place).body
    assert letter["first_tried_at"] == whole["letter"]["first_tried_at"] == whole["history"][0]["done_at"]
    shapes = running.get("openapi").body["components"]["schemas"]
    assert "first_tried_at" in shapes["LetterAnswer"]["properties"]
"""
TESTS = ("tests/unit/handlers/test_copy.py", "tests/unit/handlers/operations/test_letter_bodies.py")
OF_THE_COPY = (
    *TESTS,
    "tests/repo/test_api_page.py",
    "tests/contract/operator/test_listing.py",
    "tests/repo/test_sql.py",
)


def changed(text: str, change: str) -> str:
    """Return a text with a change made, whose lines begin with -, + or a blank; it must fit in one place."""
    lines = change.splitlines()
    before = "\n".join(line[1:] for line in lines if line[0] in "- ")
    after = "\n".join(line[1:] for line in lines if line[0] in "+ ")
    assert text.count(f"{before}\n") == 1, before
    return text.replace(f"{before}\n", f"{after}\n")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = copy_checkout(tmp_path_factory.mktemp("drill"), without=("bench/results/",))
    for name, change in CHANGES:
        text = (made / name).read_text(encoding="utf-8")
        (made / name).write_text(changed(text, change), encoding="utf-8")
    (made / TESTS[0]).write_text(ASKED, encoding="utf-8")
    return made


def test_a_column_takes_four_files() -> None:
    assert len({name for name, _ in CHANGES}) == len(CHANGES) == 4


def test_the_copy_answers_with_the_new_column_and_its_other_tests_hold(copy: Path) -> None:
    words = [sys.executable, "-m", "pytest", "-q", "-n", "0", *OF_THE_COPY]
    done = subprocess.run(words, cwd=copy, env=os.environ, capture_output=True, text=True, timeout=allowed(120))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
