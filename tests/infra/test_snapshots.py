"""The expectations of the sets are those of the plan, and the comparison with a snapshot sees each difference."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.infra import snapshots
from tests.infra.plan import CHOSEN, given_by
from tests.infra.snapshots import expected, read_facts, text_of
from tests.infra.test_policies import FILES
from tests.infra.test_surroundings import WORKFLOWS
from tests.offenders import holds_for
from tests.repo.product import ROOT

PATHS = sorted(CHOSEN.glob("*.bicepparam"))
TOKEN = "abcdefghijk23"
Snapshot = dict[str, Any]


@holds_for(PATHS)
def test_the_expectation_of_each_set_is_that_of_the_plan(path: Path) -> None:
    """`python -m tests.infra.snapshots --write` writes them anew."""
    assert path.with_suffix(".expected").read_text(encoding="utf-8") == text_of(expected(FILES, given_by(path)))


def test_each_set_uses_main_and_has_an_expectation_and_no_other_file_is_there() -> None:
    assert [
        path.name for path in PATHS if not path.read_text(encoding="utf-8").startswith("using '../../../infra/")
    ] == []
    names = {path.stem for path in PATHS}
    assert {path.name for path in CHOSEN.iterdir()} == {
        f"{name}.{end}" for name in names for end in ("bicepparam", "expected")
    }
    assert len([name for name in names if name.startswith("refused-")]) >= 10


def snapshot_of(name: str) -> Snapshot:
    """Return a snapshot of a set as a compiler writes it, from the expectation."""
    resources: list[dict[str, Any]] = []
    group = "/subscriptions/s/resourceGroups/rg-dev"
    for state, kind, said in read_facts((CHOSEN / f"{name}.expected").read_text(encoding="utf-8")):
        *around, last = said.replace("token", TOKEN).split("/")
        one = {"type": kind, "properties": {"roleDefinitionId": f"/providers/roleDefinitions/{last}"}}
        inner = "/".join(["/providers/Contoso.Any", *(f"things/{each}" for each in around)]) if around else ""
        one["id"] = f"{group}{inner}/providers/{kind.partition('/')[0]}/kind/{last}"
        if kind == snapshots.ROLES:
            one["id"] = f"{group}{inner}/providers/Microsoft.Authorization/roleAssignments/0a1b"
        if kind == "Microsoft.Resources/resourceGroups":
            one["id"] = f"/subscriptions/s/resourceGroups/{last}"
        resources += [one] if state == snapshots.MADE else []
    return {"predictedResources": resources, "diagnostics": []}


@pytest.fixture
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Compare one set with the snapshot, or the words, of a command `bicep` that says what is given."""

    def run(name: str, snapshot: Snapshot | None, words: str = "", code: int = 0) -> int:
        for end in ("bicepparam", "expected"):
            shutil.copy(CHOSEN / f"{name}.{end}", tmp_path)
        (tmp_path / "given").write_text(json.dumps(snapshot))
        (tmp_path / "words").write_text(words)
        writes = f"cp {tmp_path}/given {tmp_path}/{name}.snapshot.json" if snapshot else ":"
        bicep = tmp_path / "bicep"
        bicep.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n{writes}\ncat {tmp_path}/words >&2\nexit {code}\n')
        bicep.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        return snapshots.main([], tmp_path)

    return run


@pytest.mark.parametrize("name", [path.stem for path in PATHS if not path.stem.startswith("refused-")])
def test_a_snapshot_of_the_expected_resources_passes(compare: Callable[..., int], name: str, tmp_path: Path) -> None:
    assert compare(name, snapshot_of(name)) == 0
    asked = (tmp_path / "asked").read_text().split()
    assert asked[:4] == ["snapshot", f"{tmp_path}/{name}.bicepparam", "--mode", "overwrite"]
    assert not (tmp_path / f"{name}.snapshot.json").exists(), "the snapshot holds ids of nobody"


def test_each_resource_too_few_and_too_many_is_named(
    compare: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = snapshot_of("new")
    gone = snapshot["predictedResources"].pop()
    assert compare("new", snapshot) == 1
    assert f"too few: {gone['type']}" in capsys.readouterr().err
    more = {"id": "/subscriptions/s/resourceGroups/rg-dev/providers/A.B/c/d", "type": "A.B/c"}
    assert compare("new", {**snapshot, "predictedResources": [*snapshot["predictedResources"], gone, more]}) == 1
    assert "too many: A.B/c d" in capsys.readouterr().err


def test_a_name_that_is_an_expression_fits_one_resource_of_its_type_and_not_two(compare: Callable[..., int]) -> None:
    snapshot = snapshot_of("new")
    role = next(one for one in snapshot["predictedResources"] if one["type"] == snapshots.ROLES)
    role["id"] = "[format('{0}/providers/x', reference('y').id)]"
    assert compare("new", snapshot) == 0
    snapshot["predictedResources"].append(dict(role))
    assert compare("new", snapshot) == 1


def test_a_different_role_is_seen(compare: Callable[..., int]) -> None:
    snapshot = snapshot_of("new")
    role = next(one for one in snapshot["predictedResources"] if one["type"] == snapshots.ROLES)
    role["properties"] = {"roleDefinitionId": "/providers/Microsoft.Authorization/roleDefinitions/owner"}
    assert compare("new", snapshot) == 1


def test_what_a_module_of_the_registry_makes_in_its_resource_is_its_own_affair(compare: Callable[..., int]) -> None:
    snapshot = snapshot_of("network")
    subnet = (
        f"/subscriptions/s/resourceGroups/rg-dev/providers/Microsoft.Network/virtualNetworks/vnet-{TOKEN}/subnets/app"
    )
    snapshot["predictedResources"].append({"id": subnet, "type": "Microsoft.Network/virtualNetworks/subnets"})
    assert compare("network", snapshot) == 0


def test_a_refusal_must_be_said_in_its_words(compare: Callable[..., int]) -> None:
    ((_, _, said),) = read_facts((CHOSEN / "refused-id.expected").read_text(encoding="utf-8"))
    quoted = said.replace('"', '\\"')
    assert compare("refused-id", None, f"Unhandled exception: fail: '{quoted}'", 1) == 0
    assert compare("refused-id", {"predictedResources": [], "diagnostics": [said]}) == 0
    assert compare("refused-id", None, "array index '4' is out of bounds", 1) == 1
    assert compare("refused-id", snapshot_of("new")) == 1


def test_a_compiler_that_fails_or_complains_fails(compare: Callable[..., int]) -> None:
    assert compare("new", None, "no such command", 1) == 1
    assert compare("new", None) == 1
    assert compare("new", {**snapshot_of("new"), "diagnostics": ["a warning"]}) == 1


def test_without_a_compiler_the_command_says_that_none_has_looked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert snapshots.main([]) == 0
    assert capsys.readouterr().out.startswith("bicep is not on the PATH, so no compiler has evaluated the ")


def test_github_compares_the_snapshots_with_the_compiler() -> None:
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    (target,) = make.partition("\ncheck-infra: ")[2].split("\n\n")[:1]
    assert "$(BIN)/python -m tests.infra.snapshots\n" in f"{target}\n"
    assert WORKFLOWS["infra.yml"].index("az bicep install") < WORKFLOWS["infra.yml"].index("make check-infra")
