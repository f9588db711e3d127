"""docs/architecture.md shows the house as the code is built, and the house keeps its shape."""

import re
import tomllib
from pathlib import Path

from tests.repo.house import LIMITS, WALKS, House, cycles, figures_of, floors, reachable, read_walks
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


def planted(tmp_path: Path, **modules: str) -> House:
    """A house of a few modules in `core/`; `__` in a name stands for a folder."""
    for name, source in modules.items():
        path = tmp_path / "core" / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return House(tmp_path)


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


def test_the_page_has_the_walks() -> None:
    assert tuple(HOUSE.walks) == WALKS


def test_every_module_of_a_walk_exists_and_comes_once() -> None:
    missing = {name: [file for file in walk if not (ROOT / file).is_file()] for name, walk in HOUSE.walks.items()}
    twice = {name: [file for file in walk if walk.count(file) > 1] for name, walk in HOUSE.walks.items()}
    assert missing == twice == {name: [] for name in WALKS}


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


def test_no_import_goes_round() -> None:
    assert cycles(HOUSE.imports) == []


def test_the_house_keeps_its_limits() -> None:
    figures = figures_of(HOUSE)
    assert {name: figures[name] for name, limit in LIMITS.items() if (figures[name] or 0) > limit} == {}


def test_each_file_belongs_to_a_feature_and_each_feature_keeps_its_budget() -> None:
    assert len(HOUSE.features) > 40
    assert [one for one in HOUSE.features if one.lines > one.budget] == []


def test_a_file_of_no_feature_a_pattern_without_a_file_and_a_heavy_feature_are_seen(tmp_path: Path) -> None:
    house = planted(tmp_path, letters__plan="a = 1\nb = 2\n", letters__other="c = 3\n", stray="d = 4\n")
    page = tmp_path / "tests" / "repo" / "features.toml"
    page.parent.mkdir(parents=True)
    budgets = {"letters": ["core/letters/*", "core/gone.py"], "plan": ["core/letters/p*"]}
    page.write_text("".join(f"[{name}]\nlines = 1\nfiles = {files}\n" for name, files in budgets.items()))
    assert {one.name: one.lines for one in house.features if one.lines > one.budget} == {
        "plan": 2,
        "no feature, or no file: core/stray.py": 1,
        "no feature, or no file: core/gone.py": 1,
    }


def test_a_helper_with_one_caller_and_twins_are_seen(tmp_path: Path) -> None:
    fields = "\n".join(f"    f{number}: int" for number in range(6))
    source = f"class {{}}:\n{fields}\n\ndef _only():\n    pass\n\ndef shown():\n    _only()\n"
    house = planted(tmp_path, a=source.format("A"), b=source.format("B"))
    lines = 2 * len(source.splitlines())
    assert (house.lone_helpers("core"), house.functions("core")) == (round(2000 / lines), round(4000 / lines))
    assert (house.names_in_two_modules(), house.twin_classes()) == (["_only", "shown"], [("A", "B")])


def test_a_cycle_through_a_type_and_a_late_import_is_seen(tmp_path: Path) -> None:
    house = planted(
        tmp_path,
        a="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from core.b import B\n",
        b="def late():\n    import core.c\n",
        c="from core import a\n",
        d="import core.a\n",
    )
    assert cycles(house.imports) == [["core.a", "core.b", "core.c"]]


def test_a_cycle_through_a_computed_name_is_seen(tmp_path: Path) -> None:
    loader = 'from importlib import import_module\ndef load(name):\n    return import_module(f"core.letters.{name}")\n'
    house = planted(tmp_path, loader=loader, letters__plan="import core.loader", letters__port="")
    assert house.imports["core.loader"] == {"core.letters.plan", "core.letters.port"}
    assert cycles(house.imports) == [["core.letters.plan", "core.loader"]]


def test_floors_are_the_longest_chain_by_room_and_by_module(tmp_path: Path) -> None:
    house = planted(tmp_path, store__top="import core.store.low", store__low="import core.model", model="", settings="")
    assert house.rooms == ["model.py", "settings.py", "store"]
    assert (floors(house.room_imports), floors(house.core_imports)) == (2, 3)


def test_a_method_that_only_forwards_is_seen(tmp_path: Path) -> None:
    source = '''
class Store:
    def read(self, key, *, at):
        """See Reading."""
        return self._retry(lambda: self._store.read(key, at=at))

    def write(self, value):
        return self._store.write(value.rows)

    def close(self):
        self._store.close()
'''
    house = planted(tmp_path, store__patient=source, store__server_letters="", store__sqlite__rows="")
    assert house.pass_throughs() == ["core.store.patient.Store.read"]
    assert house.pointing_docstrings() == ["core.store.patient"]
    assert house.engine_modules() == ["core/store/server_letters.py"]


def test_a_module_is_reached_in_so_many_steps_and_no_more(tmp_path: Path) -> None:
    house = planted(tmp_path, a="import core.b", b="import core.c", c="import core.d", d="")
    assert reachable(house.imports, {"core.a"}, 2) == {"core.a", "core.b", "core.c"}


def test_a_walk_is_read_without_its_remarks() -> None:
    assert read_walks("```walk gap\ncore/a.py # it begins\ncore/b.py\n```\n") == {"gap": ["core/a.py", "core/b.py"]}
