"""The pages that show results: the text between two comments is made from them, the rest is written by hand."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.report.pictures import Picture
from bench.report.results import Results, ResultsRefused
from bench.report.words import front, targets

IMAGES = Path("docs/images")
_BLOCK = re.compile(r"(<!-- results: (.+?) -->\n)(.*?)(<!-- end of results -->)", re.DOTALL)
Block = Callable[[Results, Mapping[str, Picture], str], str]
BLOCKS: dict[str, Block] = {"the front page": front, "the targets": targets}


def pages_of(root: Path, results: Results, pictures: Mapping[str, Picture]) -> dict[Path, str]:
    """Return the pages with blocks of results, each with its new text."""
    pages = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    found = {}
    for page in pages:
        text = page.read_text(encoding="utf-8")
        images = "docs/images" if page.parent == root else "images"
        made = _BLOCK.sub(lambda block: _made(block, page, results, pictures, images), text)  # noqa: B023 - called here
        if _BLOCK.search(text):
            found[page] = made
    return found


def _made(block: re.Match[str], page: Path, results: Results, pictures: Mapping[str, Picture], images: str) -> str:
    opening, name, _, end = block.groups()
    if name not in BLOCKS:
        raise ResultsRefused(f"{page.name} asks for results named {name}: choose {' or '.join(BLOCKS)}")
    return f"{opening}\n{BLOCKS[name](results, pictures, images)}\n\n{end}"
