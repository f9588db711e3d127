"""docs/transforms.md: the check prints what the page shows."""

import re
from pathlib import Path

import pytest

from core.store.migrate import main
from tests.fakes.written_modules import written_modules
from tests.repo.product import ROOT

PAGE = (ROOT / "docs" / "transforms.md").read_text(encoding="utf-8")


def blocks(section: str, kind: str) -> list[str]:
    """Return the blocks of a kind in a section of the page."""
    (text,) = re.findall(rf"^## {section}\n(.*?)^## ", PAGE, re.S | re.M)
    return re.findall(rf"```{kind}\n(.*?)```", text, re.S)


def test_the_check_prints_the_faults_that_the_page_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STORE_CONNECTION", raising=False)
    ((module,), (output,)) = (blocks("Checked at start", kind) for kind in ("python", "text"))
    with written_modules(tmp_path) as modules:
        modules.write(module, "faulty")
        assert main(["--check", "--transform", "faulty"]) == 1
    assert capsys.readouterr().err == output
