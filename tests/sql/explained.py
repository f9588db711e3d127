"""The T-SQL in docs/sqlserver.md: `python -m tests.sql.explained` writes it there again after a change."""

import re
from collections.abc import Mapping
from pathlib import Path

from core.model.room import DEFAULT_TRANSFORM
from core.transforms import load_transform
from local.explain import TRANSACTIONS, explained

PAGE = Path(__file__).parents[2] / "docs" / "sqlserver.md"
BLOCK = re.compile(r"^```sql (?P<name>\w+)\n(?P<text>.*?)\n```$", re.M | re.S)


def sent() -> Mapping[str, str]:
    """Return each transaction as the store sends it."""
    row_classes = load_transform(DEFAULT_TRANSFORM).row_classes
    return {name: explained(name, row_classes) for name in TRANSACTIONS}


def documented() -> Mapping[str, str]:
    """Return each transaction that the page shows, as it shows it."""
    return {block["name"]: block["text"] for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))}


def write() -> None:
    """Put the T-SQL that is sent into the blocks of the page."""
    texts = sent()
    page = PAGE.read_text(encoding="utf-8")
    page = BLOCK.sub(lambda block: f"```sql {block['name']}\n{texts[block['name']]}\n```", page)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    write()
