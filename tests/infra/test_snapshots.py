"""The expectations of the sets are those of the plan, and the comparison with a snapshot sees each difference."""

from pathlib import Path

from tests.infra.plan import CHOSEN, given_by
from tests.infra.snapshots import expected, read_facts
from tests.infra.test_policies import FILES
from tests.infra.test_surroundings import WORKFLOWS
from tests.offenders import holds_for
from tests.repo.product import ROOT

PATHS = sorted(CHOSEN.glob("*.bicepparam"))


WANTED = read_facts(CHOSEN)


@holds_for(PATHS)
def test_the_expectation_of_each_set_is_that_of_the_plan(path: Path) -> None:
    """`python -m tests.infra.snapshots --write` writes them anew."""
    assert sorted(WANTED[path.stem]) == expected(FILES, given_by(path))


def test_each_set_uses_main_and_has_an_expectation_and_no_other_file_is_there() -> None:
    texts = {path.stem: path.read_text(encoding="utf-8") for path in PATHS}
    assert [name for name, text in texts.items() if not text.startswith("using '../../../infra/")] == []
    assert set(WANTED) == set(texts)
    assert {path.name for path in CHOSEN.iterdir()} == {path.name for path in PATHS} | {"expected.jsonl"}
    assert len([name for name in texts if name.startswith("refused-")]) >= 10


def test_github_compares_the_snapshots_with_the_compiler() -> None:
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    (target,) = make.partition("\ncheck-infra: ")[2].split("\n\n")[:1]
    assert "$(BIN)/python -m tests.infra.snapshots\n" in f"{target}\n"
    assert WORKFLOWS["infra.yml"].index("az bicep install") < WORKFLOWS["infra.yml"].index("make check-infra")
