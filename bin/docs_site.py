"""The hook of mkdocs.yml: the front page is README.md, and links to files outside docs/ lead to the repository."""

import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
REPOSITORY = "https://github.com/OWNER/hubledger/blob/main"
_LINK = re.compile(r"(\]\()(?!\w+:|#)([^)#\s]+)")


def on_files(files: Files, config: Any) -> Files:
    """Add the front page."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("-->\n")[2]
    files.append(File.generated(config, "index.md", content=_LINK.sub(_from_root, text)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page whose links to files outside docs/ lead to the repository."""
    folder = PurePosixPath("docs") / PurePosixPath(page.file.src_uri).parent
    return _LINK.sub(lambda found: f"{found[1]}{_outside(folder, found[2]) or found[2]}", markdown)


def _from_root(found: re.Match[str]) -> str:
    target = found[2].removeprefix("docs/")
    if target == found[2] or not (ROOT / found[2]).is_file():
        return f"{found[1]}{REPOSITORY}/{found[2]}"
    return f"{found[1]}{target}"


def _outside(folder: PurePosixPath, target: str) -> str | None:
    """Return the address in the repository of a file outside docs/. None for one inside."""
    path = (ROOT / folder / target).resolve()
    if not path.is_relative_to(ROOT) or path.is_relative_to(ROOT / "docs") or target.startswith("http"):
        return None
    return f"{REPOSITORY}/{path.relative_to(ROOT).as_posix()}"
