"""docs/runbook.md as a reader takes it: sections, their commands, and the words that stand for something else."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tests.repo.product import ROOT

PAGE = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
_HEADING = re.compile(r"^## (.+)$", re.M)
_BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```$", re.S | re.M)
PLACEHOLDER = re.compile(r"(?<![$\w])[A-Z]{3,}\b(?!_)")  # no variable of the shell


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page."""

    title: str
    text: str

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands of its blocks, without comments."""
        lines = "\n".join(_BLOCK.findall(self.text)).replace("\\\n", " ").splitlines()
        return tuple(re.sub(r"\s+# .*$", "", line).strip() for line in lines if line.strip())


def sections_of(page: str) -> Mapping[str, Section]:
    """Return the sections of a page by their titles, without backticks."""
    pieces = _HEADING.split(page)[1:]
    found = [Section(title.replace("`", ""), text) for title, text in zip(pieces[::2], pieces[1::2], strict=True)]
    return {one.title: one for one in found}


SECTIONS = sections_of(PAGE)
