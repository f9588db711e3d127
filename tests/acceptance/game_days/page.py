"""docs/runbook.md as a reader takes it: sections, their commands, and the words that stand for something else."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tests.repo.product import ROOT

PAGE = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
_HEADING = re.compile(r"^(#{2,3}) (.+)$", re.M)
_BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```$", re.S | re.M)
PLACEHOLDER = re.compile(r"(?<![$\w])[A-Z]{3,}\b(?!_)")  # no variable of the shell


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page without the sections below it."""

    title: str
    depth: int
    text: str

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands of its blocks, without comments."""
        lines = "\n".join(_BLOCK.findall(self.text)).replace("\\\n", " ").splitlines()
        return tuple(re.sub(r"\s+# .*$", "", line).strip() for line in lines if line.strip())


def sections_of(page: str) -> Mapping[str, Section]:
    """Return the sections of a page by their titles, without backticks."""
    pieces = _HEADING.split(page)[1:]
    found = [
        Section(title.replace("`", ""), len(signs), text)
        for signs, title, text in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True)
    ]
    return {one.title: one for one in found}


SECTIONS = sections_of(PAGE)
