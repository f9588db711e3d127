"""The documents name only files, links and commands that exist, and their examples print the output that they show.

docs/cli.md has the help of every command.
"""

import ast
import json
import re
from pathlib import Path

import pathspec
import pytest

from core.model.policies import DEFAULT_DAYS
from core.remote.hub import client as consumer
from core.store.migrate import main
from core.store.migrations import load_migrations
from tests.checkout import files_of_checkout
from tests.fakes.written_modules import written_modules
from tests.repo import cli_page
from tests.repo.product import MODULES, ROOT, name_of, nodes_of

WALK = (ROOT / "docs" / "one-event.md").read_text(encoding="utf-8")


def quoted(text: str) -> set[str]:
    """All that stands between single backticks, outside of blocks."""
    return set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)))


FILES = {*re.findall(r"[\w/]+\.py", "".join(re.findall(r"```.*?```", WALK, flags=re.DOTALL)))}
FILES |= {name for name in quoted(WALK) if re.search(r"/|\.(py|sql|md|json)$", name)}
NAMES = {name.removesuffix("()") for name in quoted(WALK) if re.fullmatch(r".*\(\)|(?:[A-Z][a-z]+)+", name)}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "local" / "README.md", *(ROOT / "docs").rglob("*.md")]
PRODUCT_PATH = re.compile(r"(?:core|handlers|sql|jobs|local|infra|tools|bench|tests|docs)/[\w./-]*(?:/|\.\w+)")
HOST_WORDS = {"PartitionContext", "OffsetStringArray", "PropertiesArray"}


def test_every_path_that_a_page_names_exists() -> None:
    assert [name for name in FILES if not (ROOT / name).exists()] == []
    named = {(page, path) for page in PAGES for path in quoted(page.read_text(encoding="utf-8"))}
    product = {(page, path) for page, path in named if PRODUCT_PATH.fullmatch(path)}
    assert len(product) > 50
    assert sorted((name_of(page), path) for page, path in product if not (ROOT / path).exists()) == []


def test_links_between_documents_lead_somewhere() -> None:
    links = [
        (page, target)
        for page in PAGES
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    ]
    assert len(links) > 50
    assert [(name_of(page), target) for page, target in links if not (page.parent / target).exists()] == []
    shown = {(page.parent / target).resolve() for page, target in links}
    assert set((ROOT / "docs" / "images").iterdir()) <= shown, "each picture is on a page"


def test_every_function_class_and_statement_of_the_walk_is_where_it_says() -> None:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    defined = {node.name for path in MODULES for node in nodes_of(path) if isinstance(node, kinds)}
    assert [name for name in NAMES if name not in defined | HOST_WORDS] == []
    statements = re.findall(r"`(\w+)` of `(sql/[\w/.]+)`", WALK)
    assert len(statements) == WALK.count("`sql/") > 0
    for statement, file in statements:
        assert f"-- name: {statement}\n" in (ROOT / file).read_text(encoding="utf-8")


def test_every_option_of_the_worker_is_in_the_page_of_settings() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    source = (ROOT / "core" / "worker" / "__main__.py").read_text(encoding="utf-8")
    options = dict(re.findall(r'add_argument\(\s*"(--\w+)"(?:.*default=(\d+))?', source))
    assert set(options) == set(re.findall(r"^\| `(--\w+)`", page, flags=re.MULTILINE)) != set()
    defaults = {name: f"`{default}`" if default else "" for name, default in options.items()}
    rows = {name: f"| `{name}` | {default} |".replace("  ", " ") for name, default in defaults.items()}
    assert [name for name, row in rows.items() if row not in page] == []


def test_the_page_of_commands_has_every_target_of_the_makefile_and_no_other() -> None:
    page = (ROOT / "docs" / "run.md").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z0-9-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(set(re.findall(r"`make ([a-z0-9-]+)", page))) == sorted(targets)


def test_the_worker_receives_as_host_json_has_the_trigger_receive() -> None:
    hubs = json.loads((ROOT / "host.json").read_text(encoding="utf-8"))["extensions"]["eventHubs"]
    assert (hubs["maxEventBatchSize"], hubs["prefetchCount"]) == (consumer.BATCH_SIZE, consumer.PREFETCH)


def test_the_page_of_retention_has_every_table_of_the_schema_with_the_defaults_of_the_code() -> None:
    page = (ROOT / "docs" / "retention.md").read_text(encoding="utf-8")
    rows = {
        table: days
        for tables, days in re.findall(r"^\| (`[\w`, ]+`) \|.*\| (\d*) ?\|$", page, re.MULTILINE)
        for table in re.findall(r"\w+", tables)
    }
    text = " ".join(one.text for one in load_migrations("sqlite"))
    made = set(re.findall(r"CREATE TABLE (\w+) \(", text)) - set(re.findall(r"DROP TABLE IF EXISTS (\w+);", text))
    of_examples = {table for table in made if table.startswith(("home", "flight", "sensor"))}
    assert set(rows) ^ (made - of_examples) == {"schema_migration"}
    assert {table: int(days) for table, days in rows.items() if days} == dict(DEFAULT_DAYS)


def test_the_check_of_a_transform_prints_the_faults_that_the_page_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STORE_CONNECTION", raising=False)
    page = (ROOT / "docs" / "transforms.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"^## Checked at start\n(.*?)^## ", page, re.S | re.M)
    ((module,), (output,)) = (re.findall(rf"```{kind}\n(.*?)```", section, re.S) for kind in ("python", "text"))
    with written_modules(tmp_path) as modules:
        modules.write(module, "faulty")
        assert main(["--check", "--transform", "faulty"]) == 1
    assert capsys.readouterr().err == output


def test_the_page_has_the_help_of_every_command() -> None:
    page = cli_page.PAGE.read_text(encoding="utf-8")
    assert page == cli_page.written(), "write it again: python -m tests.repo.cli_page"
    rows = "\n".join(re.findall(r"^\| `(.+?)` \|", page, re.MULTILINE))
    assert [name for name in cli_page.NAMES if not re.search(rf"^{name}\b", rows, re.MULTILINE)] == []


def test_the_ages_that_the_commands_name_are_of_tables_that_a_purge_takes() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "hubledger" / "cli" / "operate").glob("*.py")]
    named = {table for text in texts for table in re.findall(r"(?:--older-than|TABLE=DAYS, such as) (\w+)=\d", text)}
    assert named
    assert named <= DEFAULT_DAYS.keys()


def test_the_deployed_app_has_no_command_line() -> None:
    lines = (ROOT / ".funcignore").read_text(encoding="utf-8").splitlines()
    ignored = pathspec.GitIgnoreSpec.from_lines(lines)
    own = re.compile(r"hubledger/(?!__init__|web)|bin/|requirements-(cli|mcp)\.txt$")
    files = [name for name in files_of_checkout() if own.match(name)]
    assert len(files) > 20
    assert [name for name in files if not ignored.match_file(name)] == []
    deployed, own_pins = ((ROOT / f"requirements{one}.txt").read_text(encoding="utf-8") for one in ("", "-cli"))
    assert [name for name in ("typer", "rich") if name in deployed] == []
    shared = re.findall(r"^(?:requests|azure-identity)==\S+", own_pins, flags=re.MULTILINE)
    assert [pin for pin in shared if pin not in deployed] == []
