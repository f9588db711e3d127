"""Every mutant applies to the tree, is code, and names tests that are there; the runner recognizes a kill."""

import ast
from collections import Counter

import pytest

from tests.mutants.mutant import Mutant
from tests.mutants.tables import MUTANTS
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
