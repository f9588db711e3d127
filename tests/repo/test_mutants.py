import ast
from collections import Counter

from tests.mutants.tables import MUTANTS, Mutant
from tests.offenders import holds_for
from tests.repo.product import ROOT, text_of


@holds_for(MUTANTS)
def test_a_mutant_applies_once_is_code_and_names_tests_that_are_there(mutant: Mutant) -> None:
    original = text_of(ROOT / mutant.path)
    assert original.count(mutant.old) == 1, f"the file has not this text once, so change the mutant too: {mutant.old!r}"
    assert mutant.planted(original).split() != original.split()
    assert mutant.tests
    for test in mutant.tests:
        path, *names = test.split("::")
        text = text_of(ROOT / path)
        assert "/tests/" in f"/{path}"
        assert all(f"def {name}(" in text or f"class {name}:" in text for name in names), test
    if mutant.path.endswith(".py"):
        ast.parse(mutant.planted(original))


def test_there_are_enough_mutants_and_each_has_a_name_of_its_own() -> None:
    assert [name for name, count in Counter(one.name for one in MUTANTS).items() if count > 1] == []
    assert 200 <= len(MUTANTS) <= 250
