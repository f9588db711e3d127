"""docs/your-own-events.md: its commands run in a copy of the checkout, and print what the page shows."""

import re
import urllib.request
from pathlib import Path

import pytest

from tests.acceptance.tutorial.page import Command, steps_of
from tests.acceptance.tutorial.reader import USUAL_PORT, Reader, in_a_copy
from tests.acceptance.upgrade.git import GIT
from tests.patience import allowed
from tests.repo.product import ROOT

PAGE = (ROOT / "docs" / "your-own-events.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(GIT is None, reason="git is missing: apt-get install git")
def test_the_commands_of_the_page_print_what_it_shows(tmp_path: Path) -> None:
    reader = in_a_copy(tmp_path / "my-app")
    try:
        for step in steps_of(PAGE):
            reader.take(step)
            if isinstance(step, Command) and step.is_endless:
                addresses = re.findall(rf"<http://localhost:{USUAL_PORT}(/[^>]+)>", PAGE)
                assert [one for one in addresses if not answers(reader, one)] == []
    finally:
        reader.stop()
    assert "\n".join(reader.differing) == ""


def answers(reader: Reader, path: str) -> bool:
    """Return whether the app that the reader started answers with 200."""
    with urllib.request.urlopen(f"http://localhost:{reader.port}{path}", timeout=allowed(10)) as answer:
        return bool(answer.status == 200)
