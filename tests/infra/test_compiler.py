"""`make check-bicep` fails on any diagnostic of the compiler, which itself returns 0 for warnings."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.infra.doubles import plant
from tests.repo.product import ROOT

WARNING = "main.bicep(3,7) : Warning BCP081: Resource type x does not have types available."


def check(folder: Path, build: str = "", lint: str = "") -> "subprocess.CompletedProcess[str]":
    """Run the target with a compiler that says and returns what is given."""
    cases = f'build) echo "{{}}"; {build or ":"} ;;\nlint) {lint or ":"} ;;'
    plant(folder / "bicep", f'#!/bin/sh\ncase "$1" in\n{cases}\nesac\n')
    path = f"{folder}:{os.environ['PATH']}"
    command = ["make", "--no-print-directory", "check-bicep"]
    return subprocess.run(command, cwd=ROOT, env={"PATH": path}, capture_output=True, text=True, check=False)


def test_templates_without_a_diagnostic_pass(tmp_path: Path) -> None:
    done = check(tmp_path)
    assert (done.returncode, done.stdout) == (0, "check-bicep: no diagnostic\n")


@pytest.mark.parametrize("step", ["build", "lint"])
@pytest.mark.parametrize("said", [f"echo '{WARNING}' >&2", f"echo '{WARNING}' >&2; exit 1"])
def test_any_diagnostic_fails_and_is_shown(tmp_path: Path, step: str, said: str) -> None:
    done = check(tmp_path, **{step: said})
    assert done.returncode != 0
    assert WARNING in done.stderr
