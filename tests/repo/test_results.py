import re

from bench.__main__ import FULL, LONG, PARTS, QUICK
from bench.figures import Figure
from bench.report.__main__ import RESULTS, made
from bench.report.pages import IMAGES
from bench.report.results import read_results
from tests.repo.product import ROOT, name_of

MEASURED = [result for found in read_results(ROOT / RESULTS).values() for result in found]
_TARGET = re.compile(r"(>=|<=|>|<|) ?([\d,.]+)")
_HOLDS = {">=": float.__ge__, "<=": float.__le__, ">": float.__gt__, "<": float.__lt__, "": float.__eq__}


def verdict(figure: Figure) -> bool | None:
    """Judge a figure by its target again. Return the verdict that it has when the target is no plain number."""
    target = _TARGET.fullmatch(figure.target)
    return _HOLDS[target[1]](float(figure.value), float(target[2].replace(",", ""))) if target else figure.met


def test_pages_and_pictures_are_made_from_the_results() -> None:
    files = made()
    assert {"README.md", "docs/benchmarks.md"} <= {name_of(path) for path in files}
    stale = [name_of(path) for path, text in files.items() if not path.exists() or path.read_text("utf-8") != text]
    assert stale == [], "make bench-readme makes them again"
    assert set((ROOT / IMAGES).glob("*.svg")) - files.keys() == set()


def test_a_verdict_follows_from_the_value_and_the_target() -> None:
    figures = [(result.part, figure) for result in MEASURED for figure in result.figures]
    assert [(part, figure.name) for part, figure in figures if figure.met is not verdict(figure)] == []


def test_every_stored_result_and_every_order_is_of_a_part_that_exists() -> None:
    assert {*(result.part for result in MEASURED), *QUICK, *LONG} - PARTS.keys() == set()
    assert FULL.keys() <= PARTS.keys()
