import re

import pathspec

from core.model.policies import DEFAULT_DAYS
from tests.checkout import files_of_checkout
from tests.repo.cli_page import NAMES, PAGE, written
from tests.repo.product import ROOT


def test_the_page_has_the_help_of_every_command() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(), "write it again: python -m tests.repo.cli_page"
    rows = "\n".join(re.findall(r"^\| `(.+?)` \|", page, re.MULTILINE))
    assert [name for name in NAMES if not re.search(rf"^{name}\b", rows, re.MULTILINE)] == []


def test_the_ages_that_the_commands_name_are_of_tables_that_a_purge_takes() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "hubledger" / "cli" / "operate").glob("*.py")]
    named = {table for text in texts for table in re.findall(r"(?:--older-than|TABLE=DAYS, such as) (\w+)=\d", text)}
    assert named
    assert named <= DEFAULT_DAYS.keys()


def test_the_deployed_app_has_no_command_line() -> None:
    lines = (ROOT / ".funcignore").read_text(encoding="utf-8").splitlines()
    ignored = pathspec.GitIgnoreSpec.from_lines(lines)
    own = re.compile(r"hubledger/(?!__init__|web)|bin/|requirements-cli\.txt$")
    files = [name for name in files_of_checkout() if own.match(name)]
    assert len(files) > 20
    assert [name for name in files if not ignored.match_file(name)] == []
    deployed, own_pins = ((ROOT / f"requirements{one}.txt").read_text(encoding="utf-8") for one in ("", "-cli"))
    assert [name for name in ("typer", "rich") if name in deployed] == []
    shared = re.findall(r"^(?:requests|azure-identity)==\S+", own_pins, flags=re.MULTILINE)
    assert [pin for pin in shared if pin not in deployed] == []
