"""The commands of docs/upgrading.md, so that the tests run those that a user reads."""

import re
from collections.abc import Sequence

from tests.acceptance.upgrade.git import Repository
from tests.repo.product import ROOT

PAGE = (ROOT / "docs" / "upgrading.md").read_text(encoding="utf-8")
ADDRESS = "https://github.com/OWNER/hubledger"


def commands(section: str) -> list[str]:
    """Return the commands of the blocks of a section of the page."""
    (text,) = re.findall(rf"^##+ {section}\n(.*?)(?=^##+ )", PAGE, re.S | re.M)
    return [line.split("  # ")[0].strip() for line in re.findall(r"^ *\$ (.+)$", text, re.M)]


def join(theirs: Repository, ours: Repository) -> None:
    """Join the histories by the commands of the page."""
    run(commands("Join once")[:3], theirs, ours)


def upgrade(theirs: Repository, ours: Repository, version: str) -> None:
    """Take a release by the commands of the page."""
    run([line.replace("v0.3.0", version) for line in commands("Each release")[:2]], theirs, ours)


def run(lines: Sequence[str], theirs: Repository, ours: Repository) -> str:
    """Run commands in the repository of a user, with our folder as the address; return the output of the last one."""
    return [theirs.shell(line.replace(ADDRESS, f"file://{ours.folder}")) for line in lines][-1]
