import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tests.acceptance.api.served import HUB, Served
from tests.checkout import ROOT, copy_checkout
from tests.fakes.builders import keep_letters, partition
from tests.fakes.rooms import EXAMPLES
from tests.patience import allowed

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(diff|python|sql) (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NO_TIMER = {"TASK_SCHEDULE": "0 0 0 1 1 *"}  # a task that no request drives stands still
LETTERS = {"0": {"poison": 1_300, "unknown": 800}, "1": {"poison": 20, "crash": 4}}
CENSUS = {"poison": 1_320, "unknown": 800, "crash": 4}
PIECES = 3 + 1  # of 1,000 letters each, by partition

ASKED = """
from tests.handlers.running import HOME, Running

def test_the_copy(running: Running) -> None:
    running.ingest([0, 1], [HOME, b"{"])
    place = {"partition_id": "1", "sequence_number": "1"}
    assert running.get("list_letters").body["letters"][0]["first_tried_at"] is None
    order = {"move": "retry", "letters": [place], "expected_count": 1, "reason": "because I say so"}
    assert running.put("redrive", order).status == 201
    (letter,) = running.get("list_letters").body["letters"]
    whole = running.get("show_letter", place).body
    assert letter["first_tried_at"] == whole["letter"]["first_tried_at"] == whole["history"][0]["done_at"]
    shapes = running.get("openapi").body["components"]["schemas"]
    assert "first_tried_at" in shapes["LetterAnswer"]["properties"]
"""


def changed(text: str, change: str) -> str:
    """Return a text with a change made, whose lines begin with -, + or a blank. It must fit in one place."""
    lines = change.splitlines()
    before = "\n".join(line[1:] for line in lines if line[0] in "- ")
    after = "\n".join(line[1:] for line in lines if line[0] in "+ ")
    assert text.count(f"{before}\n") == 1, before
    return text.replace(f"{before}\n", f"{after}\n")


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


CENSUS_FILES = (ROOT / "tests" / "fixtures" / "census.md").read_text(encoding="utf-8")
COLUMN = BLOCK.findall(section("A column for the list of letters"))
KIND = BLOCK.findall(section("A new kind of long work") + CENSUS_FILES)


def made(drill: list[tuple[str, str, str]], folder: Path) -> Path:
    """Make the new files and the edits of a drill in a copy of the tree, and return the copy."""
    copy = copy_checkout(folder / "copy", without=("bench/results.json",))
    for form, name, text in sorted(drill, key=lambda one: one[0] == "diff"):
        path = copy / name
        assert path.exists() == (form == "diff"), name
        path.write_text(changed(path.read_text("utf-8"), text) if form == "diff" else text, encoding="utf-8")
    return copy


@pytest.mark.parametrize("drill", [COLUMN, KIND], ids=["column", "kind"])
def test_each_edit_of_the_page_fits_in_one_place_of_its_file(drill: list[tuple[str, str, str]]) -> None:
    assert drill
    for form, name, text in drill:
        assert (ROOT / name).exists() == (form == "diff"), name
        assert form != "diff" or changed((ROOT / name).read_text(encoding="utf-8"), text)


def run(copy: Path, *words: str) -> None:
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, cwd=copy, env=os.environ, capture_output=True, text=True, timeout=allowed(120))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


@pytest.mark.soak
@pytest.mark.slow
def test_a_copy_with_the_new_column_answers_with_it_and_its_other_tests_hold(tmp_path: Path) -> None:
    copy, asked = made(COLUMN, tmp_path), "tests/handlers/test_copy.py"
    (copy / asked).write_text(ASKED, encoding="utf-8")
    others = ("test_api_page.py", "test_sql.py")
    tests = ("tests/handlers/operations/test_letters.py", "tests/core/letters/test_listing.py")
    run(copy, "pytest", "-q", "-n", "0", asked, *tests, *(f"tests/repo/{name}" for name in others))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(KIND, tmp_path_factory.mktemp("kind"))


@pytest.fixture(scope="module")
def app(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("app"), (copy, EXAMPLES), **NO_TIMER)
    for id, classes in LETTERS.items():
        first = 0
        for error_class, number in classes.items():
            place, numbers = partition(id, hub=HUB), range(first, first + number)
            keep_letters(served.store, dict.fromkeys(numbers, "{"), place, status="exhausted", error_class=error_class)
            first += number
    yield served
    served.close()


@pytest.mark.soak
@pytest.mark.slow
def test_a_copy_with_the_new_kind_keeps_the_rules_of_the_house(copy: Path) -> None:
    names = sorted({name for _, name, _ in KIND if name.endswith(".py")})
    run(copy, "ruff", "check", *names)
    run(copy, "ruff", "format", "--check", *names)
    run(copy, "mypy", "--cache-dir=.local-run/mypy", *names)
    rules = ("test_api_page.py", "test_house.py", "test_sql.py")
    sizes = ("-k", "not its_limits and not its_budget")  # a copy is larger by the kind
    run(copy, "pytest", "-q", "-n", "0", *sizes, *(f"tests/repo/{name}" for name in rules))


@pytest.mark.soak
@pytest.mark.slow
def test_a_census_that_the_api_begins_counts_all_letters_in_pieces(app: Served) -> None:
    begun = app.order("census", {"reason": "before the release"})
    assert begun.status == 201, begun.body
    address = f"tasks/{begun.json['task_id']}"
    app.until(lambda: app.get(address).json["ended_at"])
    census = app.get(address).json
    rows = app.sqlite.sql("SELECT error_class, COUNT(*) FROM event_hub_dead_letter GROUP BY error_class")
    assert census["letters"] == dict(cast(Any, rows)) == CENSUS
    assert (census["kind"], census["status"], census["done"], census["total"]) == ("census", "done", 2, 2)
    assert app.sqlite.sql(f"SELECT pieces FROM task WHERE task_id = '{census['task_id']}'") == [(PIECES,)]
    listed = app.get("tasks", kind="census").json
    assert (listed["tasks"], "census" in listed["kinds"]) == ([census], True)
