"""core/transforms: a module is loaded once, or it is said what it lacks."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import InvalidTransform
from core.transforms import load_transform


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder from which modules can be imported."""
    sys.path.insert(0, str(tmp_path))
    known = set(sys.modules)
    yield tmp_path
    sys.path.remove(str(tmp_path))
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_the_business_of_the_product_loads() -> None:
    transform = load_transform("core.transforms.home_security")
    assert transform.version == "home_security/1"
    assert callable(transform.rows_of)
    assert transform.references_of is not None


def test_a_module_without_references_loads(place: Path) -> None:
    (place / "only_rows.py").write_text("VERSION = '1'\ndef transform(event, references): return ()\n")
    assert load_transform("only_rows").references_of is None


def test_a_module_that_is_not_there_is_named() -> None:
    with pytest.raises(InvalidTransform, match=r"TRANSFORM=no\.such: No module named 'no'"):
        load_transform("no.such")


def test_a_module_that_imports_what_is_not_there_is_named_with_it(place: Path) -> None:
    (place / "wanting.py").write_text("import no_such_library\n")
    with pytest.raises(InvalidTransform, match="TRANSFORM=wanting: No module named 'no_such_library'"):
        load_transform("wanting")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "VERSION = '1'",
        "def transform(event, references): return ()",
        "VERSION = 1\ndef transform(event, references): return ()",
        "VERSION = '1'\ntransform = 'no function'",
    ],
)
def test_a_module_that_lacks_version_or_transform_is_refused(place: Path, text: str) -> None:
    (place / "lacking.py").write_text(text)
    with pytest.raises(InvalidTransform, match="TRANSFORM=lacking: the module needs VERSION"):
        load_transform("lacking")


@pytest.mark.parametrize("length", [101, 4_001])
def test_a_version_that_no_column_can_hold_is_refused_before_it_stops_every_partition(place: Path, length: int) -> None:
    text = "VERSION = '{}'\ndef transform(event, references): return ()\n"
    (place / "talkative.py").write_text(text.format("1" * length))
    with pytest.raises(InvalidTransform, match="TRANSFORM=talkative: VERSION is longer than 100 characters"):
        load_transform("talkative")
    (place / "terse.py").write_text(text.format("1" * 100))
    assert load_transform("terse").version == "1" * 100
