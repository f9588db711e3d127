import re

import pytest

from bench.growth import BODY, ROWS, TABLES, Growth, growths
from tests.repo.product import ROOT

PAGE = (ROOT / "docs" / "capacity.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def measured() -> dict[str, Growth]:
    return {one.table: one for one in growths(ROWS)}


@pytest.mark.slow
def test_the_page_has_the_bytes_of_a_row_of_each_table_that_events_fill(measured: dict[str, Growth]) -> None:
    found = re.findall(r"^\| `(\w+)`.*?\| [^|]+ \| (\d+) B \| (\d+) B \|", PAGE, re.MULTILINE)
    shown = tuple(TABLES)[:4]  # those of every event; the others grow by an operator's orders
    assert found == [(name, f"{measured[name].sqlite:.0f}", f"{measured[name].sqlserver:.0f}") for name in shown]
    assert PAGE.count(f"its body of {BODY} B included") == 1
