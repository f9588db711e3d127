import re
import subprocess
import sys
from collections.abc import Iterator

import hubledger
import hubledger.testing
import hubledger.web
from hubledger.cli.scaffold import modules as tests_of_room
from hubledger.cli.scaffold.design import Wish, design_of, field_of
from hubledger.cli.scaffold.modules import aggregate_text, transform_text
from hubledger.cli.scaffold.sample import sample_lines
from tests.fakes import orders_room
from tests.patience import allowed
from tests.repo.product import ROOT, name_of

OURS = {"bench", "core", "function_app", "handlers", "hubledger", "infra", "jobs", "local", "tests", "tools"}
FIELDS = "parcel:ascii(40) at:instant day:date ts:epoch_ms depot:text(40) weight:decimal count:integer"
IMPORT = re.compile(r"^[ \t]*(?:from ([\w.]+) import |import ([\w.]+))", re.MULTILINE)
OWN = (ROOT / "docs" / "your-own-events.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "transforms.md").read_text(encoding="utf-8")


def written() -> Iterator[tuple[str, str]]:
    for folder in ("examples", "apps", "tests/fixtures/rooms"):
        yield from ((name_of(path), path.read_text(encoding="utf-8")) for path in (ROOT / folder).rglob("*.py"))
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        code = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        yield name_of(page), "".join(code)
    yield "apps/orders/transform.py", orders_room.TRANSFORM
    yield "apps/orders/aggregates/turnover.py", orders_room.AGGREGATE
    yield from scaffolded()


def scaffolded() -> Iterator[tuple[str, str]]:
    fields = tuple(map(field_of, FIELDS.split()))
    design = design_of(Wish("parcels", key=("parcel",)), fields, {}, sample_lines(fields))
    assert design.at is not None
    assert design.by is not None
    yield "apps/parcels/transform.py", transform_text(design)
    yield "apps/parcels/aggregates/parcels_by_hour.py", aggregate_text(design, design.at, design.by)
    yield "apps/parcels/tests/test_parcels.py", tests_of_room.tests_text(design)


def test_rooms_pages_and_the_scaffold_import_the_public_face_alone() -> None:
    """Only tests may import the helpers of tests."""
    foreign = []
    for name, text in written():
        is_test = "/tests/" in name or name.endswith(".md")
        found = {one for pair in IMPORT.findall(text) for one in pair if one.split(".")[0] in OURS}
        foreign += [(name, found - {"hubledger", "hubledger.web", *["hubledger.testing"] * is_test})]
    assert [one for one in foreign if one[1]] == []


def test_every_name_has_a_docstring_of_its_own_and_stands_on_the_page() -> None:
    public = [(name, module) for module in (hubledger, hubledger.testing, hubledger.web) for name in module.__all__]
    values = {name: getattr(module, name) for name, module in public}
    documents = {name: one.__doc__ or "" for name, one in values.items() if callable(one)}
    made_by_dataclass = [name for name, text in documents.items() if text.startswith(f"{name}(")]
    assert [name for name, text in documents.items() if not text] == made_by_dataclass == []
    (section,) = re.findall(r"^## The names$(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^\| (`.*?) \| ", section, re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)", " ".join(heads))) == sorted(hubledger.__all__)
    assert [name for name in hubledger.testing.__all__ if f"`{name}(" not in PAGE] == []
    web = re.findall(r"^\| (`.*?) \| ", OWN.split("from `hubledger.web`")[1], re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)", " ".join(web))) == sorted(hubledger.web.__all__)


def test_the_face_loads_nothing_until_a_name_is_asked_for_and_then_values_alone() -> None:
    assert loaded("import hubledger") == {"hubledger"}
    found = loaded("from hubledger import *")
    values = {name for name in found if name.startswith("core.model.")}
    assert found - values == {"hubledger", "core", "core.errors", "core.model"}


def loaded(line: str) -> set[str]:
    watched = OURS | {"azure", "pyodbc", "sqlite3", "typer", "rich", "requests", "hypothesis"}
    script = f"import sys\n{line}\nprint(*(one for one in sys.modules if one.split('.')[0] in {sorted(watched)!r}))"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, env={}, capture_output=True, text=True, check=True, timeout=allowed(60))
    return set(done.stdout.split())
