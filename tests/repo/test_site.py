"""mkdocs.yml: the site of docs/ builds, loads nothing from elsewhere, and a dead link fails."""

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.repo.product import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("mkdocs") is None, reason="mkdocs is missing: make docs installs it"),
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what the site is made of."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    for name in ("README.md", "mkdocs.yml", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "bin").mkdir()
    shutil.copy(ROOT / "bin" / "docs_site.py", tmp_path / "bin")
    return tmp_path


def built(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_site_has_every_page_a_search_and_nothing_from_elsewhere(copy: Path) -> None:
    done = built(copy)
    assert done.returncode == 0, done.stderr
    site = copy / ".local-run" / "site"
    pages = {path.stem for path in site.glob("*.html")} - {"404", "index"}
    assert pages == {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert (site / "search" / "search_index.json").is_file()
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|img)[^>]* src="(http[^"]*)|<link[^>]* href="(http[^"]*)', page.read_text("utf-8")
        )
        assert [one for one in loaded if any(one)] == [], page.name
    front = (site / "index.html").read_text("utf-8")
    assert 'href="your-own-events.html"' in front
    assert 'src="images/ops-overview.png"' in front


@pytest.mark.parametrize("link", ["[x](nowhere.md)", "[x](run.md#nowhere)"])
def test_a_dead_link_fails(copy: Path, link: str) -> None:
    with (copy / "docs" / "glossary.md").open("a", encoding="utf-8") as page:
        page.write(f"\n{link}\n")
    done = built(copy)
    assert done.returncode == 1
    assert "nowhere" in done.stderr
