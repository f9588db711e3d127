"""The repository is a template of azd: a copy by `azd init` is exactly its files, and sets itself up.

`azd init --template` clones one commit, deletes .git and copies the files (initializer.go of azure-dev).
"""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.checkout import copy_checkout, files_of_checkout
from tests.repo.product import ROOT

AZURE = yaml.safe_load((ROOT / "azure.yaml").read_text(encoding="utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_template_names_the_version_of_the_project() -> None:
    assert AZURE["metadata"]["template"] == f"{AZURE['name']}@{PROJECT['version']}"


def test_azd_changes_no_file_of_the_copy() -> None:
    """azd appends `.azure` to a .gitignore without this line, and every copy would differ from its release."""
    assert ".azure" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


def test_azd_leaves_no_file_out() -> None:
    """A file that a copy lacks is a conflict in each release that changes it."""
    assert [name for name in files_of_checkout() if name.endswith(".azdignore")] == []


def test_every_file_has_the_same_line_ends_on_every_system() -> None:
    assert "* text=auto eol=lf" in (ROOT / ".gitattributes").read_text(encoding="utf-8").splitlines()
    binary = {".png"}
    crlf = [n for n in files_of_checkout() if Path(n).suffix not in binary and b"\r\n" in (ROOT / n).read_bytes()]
    assert crlf == []


@pytest.mark.slow
def test_a_copy_without_git_packs_itself_and_knows_its_files(tmp_path: Path) -> None:
    copy = copy_checkout(tmp_path / "copy")
    assert files_of_checkout(copy) == files_of_checkout()
    command = [sys.executable, "-m", "infra.hooks", "package", "--to", str(tmp_path / "package.zip")]
    done = subprocess.run(command, cwd=copy, check=True, capture_output=True, text=True)
    assert "function_app.py" in done.stdout
