"""docs/architecture.md shows the house as the code is built, and the house keeps its shape."""

import re
import tomllib
from pathlib import Path

from tests.repo.house import LIMITS, WALKS, House, figures_of, reachable
from tests.repo.product import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
HOUSE = House(ROOT)
STEPS = 4  # imports from one module of a walk to a later one: the settings lead to the default of TRANSFORM
Layers = list[frozenset[str]]


def drawn_layers() -> Layers:
    """The layers of `core/` in the picture: its rows below the one that names core, each cut into its cells."""
    picture = re.search(r"^```layers\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert picture is not None
    below = picture[1].partition("═ core ═")[2]
    rows = [line.strip().strip("│") for line in below.splitlines() if line.strip().startswith("│")]
    return [frozenset(cell.split()[0] for cell in row.split("│")) for row in rows]


def contracted_layers() -> Layers:
    """The layers of the import-linter contract whose only container is `core`, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (contract,) = (one for one in contracts if one["type"] == "layers" and one.get("containers") == ["core"])
    return [frozenset(re.findall(r"\w+", layer)) for layer in contract["layers"]]


def test_the_picture_has_the_layers_of_the_import_contract() -> None:
    assert drawn_layers() == contracted_layers()


def test_the_picture_has_every_room_of_core_once() -> None:
    drawn = [room for layer in drawn_layers() for room in layer]
    assert sorted(drawn) == sorted(Path(room).stem for room in HOUSE.rooms)


def test_the_page_has_a_line_for_every_room() -> None:
    described = re.findall(r"^\| `([\w./]+)` \|", PAGE, flags=re.MULTILINE)
    rooms = {f"core/{room}" + ("" if room.endswith(".py") else "/") for room in HOUSE.rooms}
    assert {name for name in described if name.startswith("core/")} == rooms
    assert [name for name in described if not (ROOT / name).exists()] == []


def test_an_earlier_module_of_a_walk_imports_its_way_to_each_next_one() -> None:
    graph = {name: HOUSE.imports[name] | HOUSE.named[name] for name in HOUSE.imports}
    unreached = {
        name: [
            file
            for place, file in enumerate(walk[1:], start=1)
            if HOUSE.module_of(file) not in reachable(graph, {HOUSE.module_of(one) for one in walk[:place]}, STEPS)
        ]
        for name, walk in HOUSE.walks.items()
    }
    assert unreached == {name: [] for name in WALKS}


def test_the_house_keeps_its_limits() -> None:
    figures = figures_of(HOUSE)
    assert {name: figures[name] for name, limit in LIMITS.items() if (figures[name] or 0) > limit} == {}


def test_each_file_belongs_to_a_feature_and_each_feature_keeps_its_budget() -> None:
    assert len(HOUSE.features) > 40
    assert [one for one in HOUSE.features if one.lines > one.budget] == []
