"""One range of Pythons, that of pyproject.toml, in every place that names it."""

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from infra.hooks.__main__ import SUPPORTED
from tests.checkout import files_of_checkout
from tests.offenders import holds_for
from tests.repo.product import ROOT

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install -r requirements-dev.txt")
ALLOWED = SpecifierSet(
    tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
)
PYTHONS = [f"3.{minor}" for minor in range(40) if f"3.{minor}" in ALLOWED]
FILES = [ROOT / name for name in files_of_checkout() if re.search(r"(^|/)requirements[\w-]*\.txt$", name)]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def wanted(file: Path, python: str) -> list[Requirement]:
    """Return what pip would install from a file on a Python."""
    environment: dict[str, Any] = {**default_environment(), "python_version": python}
    lines = [line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines()]
    found = [Requirement(line) for line in lines if line and not line.startswith("-r ")]
    return [one for one in found if one.marker is None or one.marker.evaluate(environment)]


def test_make_refuses_another_python() -> None:
    first, last = (tuple(map(int, python.split("."))) for python in (PYTHONS[0], PYTHONS[-1]))
    assert f"not {first} <= sys.version_info < ({last[0]}, {last[1] + 1})" in read("Makefile")


def test_the_hooks_and_the_templates_know_them() -> None:
    assert [f"{major}.{minor}" for major, minor in SUPPORTED] == PYTHONS
    (allowed,) = re.findall(r"^param pythonVersion (.*) = ", read("infra/main.bicep"), re.MULTILINE)
    assert allowed == " | ".join(f"'{one}'" for one in PYTHONS)


def test_the_workflow_tests_each() -> None:
    jobs = yaml.safe_load(read(".github/workflows/ci.yml"))["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == PYTHONS


@holds_for(FILES)
def test_a_python_gets_one_version_of_each_package(file: Path) -> None:
    for python in PYTHONS:
        wants = wanted(file, python)
        assert [one for one in wants if not re.fullmatch(r"==[\w.]+", str(one.specifier))] == []
        assert [name for name, times in Counter(one.name for one in wants).items() if times > 1] == []
    packages = {one.name for python in PYTHONS for one in wanted(file, python)}
    assert {python for python in PYTHONS if {one.name for one in wanted(file, python)} != packages} == set()


def test_where_spark_3_5_does_not_run_the_pins_are_those_of_the_second_leg() -> None:
    first, second = (ROOT / "jobs" / name for name in ("requirements.txt", "requirements-spark41.txt"))
    assert "pyspark==3.5.9" in map(str, (f"{one.name}{one.specifier}" for one in wanted(first, "3.11")))
    for python in PYTHONS[1:]:
        pins = [{f"{one.name}{one.specifier}" for one in wanted(file, python)} for file in (first, second)]
        assert pins[0] == pins[1]
