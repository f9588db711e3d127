"""Every mutant applies to the tree, is code, and names tests that are there; the runner recognizes a kill."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.mutant import Mutant, in_file
from tests.mutants.tables import MUTANTS
from tests.mutants.trial import Runner
from tests.offenders import holds_for
from tests.repo.product import ROOT, text_of

# The subjects that the product is for, each with the fewest mutants that it must have.
SUBJECTS = {
    **dict.fromkeys(("core/ingest", "core/letters", "core/replay", "core/store", "sql/queries"), 10),
    **dict.fromkeys(("core/settle", "core/aggregation", "core/ledger", "core/audit"), 5),
    **dict.fromkeys(("handlers", "local/event_hubs", "local/functions_host"), 3),
}


@holds_for(MUTANTS)
def test_a_mutant_applies_once_and_changes_the_file(mutant: Mutant) -> None:
    original = text_of(ROOT / mutant.path)
    assert original.count(mutant.old) == 1, f"the file has not this text once, so change the mutant too: {mutant.old!r}"
    assert mutant.planted(original).split() != original.split()


@pytest.mark.slow
@holds_for([mutant for mutant in MUTANTS if mutant.path.endswith(".py")])
def test_a_mutant_of_a_module_is_code(mutant: Mutant) -> None:
    ast.parse(mutant.planted(text_of(ROOT / mutant.path)))


@holds_for(MUTANTS)
def test_a_mutant_names_tests_that_are_there(mutant: Mutant) -> None:
    assert mutant.tests
    for test in mutant.tests:
        path, *names = test.split("::")
        text = text_of(ROOT / path)
        assert "/tests/" in f"/{path}"
        assert all(f"def {name}(" in text or f"class {name}:" in text for name in names), test


def test_each_mutant_has_a_name_of_its_own() -> None:
    assert [name for name, count in Counter(one.name for one in MUTANTS).items() if count > 1] == []


def test_the_mutants_are_spread_over_the_subjects() -> None:
    counts = Counter(one.subject for one in MUTANTS)
    assert 200 <= len(MUTANTS) <= 250
    assert {subject: counts[subject] for subject, fewest in SUBJECTS.items() if counts[subject] < fewest} == {}


CODE = "def larger(a: int, b: int) -> int:\n    return a if a > b else b\n"
TEST = "from code_of import larger\n\n\ndef test_the_larger_one_is_returned() -> None:\n    assert larger(1, 2) == 2\n"
PLANTED = in_file(
    "code_of.py",
    "test_code.py",
    ("the smaller one is returned", "a > b", "a < b"),
    ("equal numbers differ", "a > b", "a >= b"),
    ("the code names nothing", "a > b", "a > c"),
    ("the code cannot be read", "a > b", "a > > b"),
    ("the code never ends", "    return a if", "    while True:\n        pass\n    return a if"),
    ("the code is missing", "a == b", "a != b"),
)


@pytest.mark.slow  # it starts pytest five times
def test_the_runner_tells_a_kill_from_everything_else_and_restores_the_file(tmp_path: Path) -> None:
    (tmp_path / "code_of.py").write_text(CODE)
    (tmp_path / "test_code.py").write_text(TEST)
    (tmp_path / "conftest.py").touch()
    patient, hasty = Runner(60.0), Runner(3.0)
    trials = [(hasty if "ends" in one.name else patient).try_mutant(one, tmp_path) for one in PLANTED]
    verdicts = ["killed", "SURVIVED", "BROKEN", "BROKEN", "timeout", "DOES NOT APPLY"]
    assert [one.verdict for one in trials] == verdicts
    assert trials[0].by == "test_code.py::test_the_larger_one_is_returned"
    assert (tmp_path / "code_of.py").read_text() == CODE
