"""Every mutant applies to the tree, is code, and names tests that are there."""

import ast
from collections import Counter

from tests.mutants.mutant import Mutant
from tests.mutants.tables import MUTANTS
from tests.offenders import holds_for
from tests.repo.product import ROOT

# The subjects that the product is for, each with the fewest mutants that it must have.
SUBJECTS = {
    **dict.fromkeys(("core/ingest", "core/letters", "core/replay", "core/ledger", "core/store"), 10),
    **dict.fromkeys(("core/settle", "core/aggregation", "sql/sqlite", "local/event_hubs"), 5),
    **dict.fromkeys(("sql/sqlserver", "handlers", "core", "local/functions_host"), 3),
}


@holds_for(MUTANTS)
def test_a_mutant_applies_once_and_is_code_of_a_different_meaning(mutant: Mutant) -> None:
    original = (ROOT / mutant.path).read_text(encoding="utf-8")
    assert original.count(mutant.old) == 1, f"the file has the text {original.count(mutant.old)} times, not once"
    planted = mutant.planted(original)
    if mutant.path.endswith(".py"):
        assert ast.dump(ast.parse(planted)) != ast.dump(ast.parse(original))
    else:
        assert planted.split() != original.split()


@holds_for(MUTANTS)
def test_a_mutant_names_tests_that_are_there(mutant: Mutant) -> None:
    assert mutant.tests
    for test in mutant.tests:
        path, *names = test.split("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert path.startswith("tests/")
        assert all(f"def {name}(" in text or f"class {name}" in text for name in names), test


def test_each_mutant_has_a_name_of_its_own() -> None:
    assert [name for name, count in Counter(one.name for one in MUTANTS).items() if count > 1] == []


def test_the_mutants_are_spread_over_the_subjects() -> None:
    counts = Counter(one.subject for one in MUTANTS)
    assert len(MUTANTS) >= 40
    assert {subject: counts[subject] for subject, fewest in SUBJECTS.items() if counts[subject] < fewest} == {}
