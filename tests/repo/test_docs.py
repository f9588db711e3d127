"""Every file, function and setting that the documents name exists."""

import ast
import json
import re
from functools import cache

import pytest

from core.errors import SettingsRefused
from core.remote.hub import client as consumer
from core.settings import read_settings
from tests.repo.product import MODULES, ROOT, name_of, nodes_of

ONE_EVENT = ROOT / "docs" / "one-event.md"


def quoted(text: str) -> set[str]:
    """All that stands between single backticks, outside of blocks."""
    return set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)))


NAMED = quoted(ONE_EVENT.read_text(encoding="utf-8"))
DIAGRAM = "".join(re.findall(r"```.*?```", ONE_EVENT.read_text(encoding="utf-8"), flags=re.DOTALL))
FILES = sorted(
    {*(name for name in NAMED if re.search(r"/|\.(py|sql|md|json)$", name)), *re.findall(r"[\w/]+\.py", DIAGRAM)}
)
FUNCTIONS = sorted(name.removesuffix("()") for name in NAMED if name.endswith("()"))
CLASSES = sorted(name for name in NAMED if re.fullmatch(r"(?:[A-Z][a-z]+)+", name))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "local" / "README.md", *(ROOT / "docs").rglob("*.md")]
PRODUCT_PATH = re.compile(r"(?:core|handlers|sql|jobs|local|infra|tools|bench|tests|docs)/[\w./-]*(?:/|\.\w+)")
HOST_WORDS = {"PartitionContext", "OffsetStringArray", "PropertiesArray"}


@cache
def defined() -> set[str]:
    """The name of every function and class of the product."""
    nodes = (node for path in MODULES for node in nodes_of(path))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}


def test_every_file_of_the_walk_exists() -> None:
    assert [name for name in FILES if not (ROOT / name).exists()] == []


def test_every_path_that_a_page_names_exists() -> None:
    named = {(page, path) for page in PAGES for path in quoted(page.read_text(encoding="utf-8"))}
    product = {(page, path) for page, path in named if PRODUCT_PATH.fullmatch(path)}
    assert len(product) > 50
    assert sorted((name_of(page), path) for page, path in product if not (ROOT / path).exists()) == []


def test_every_function_and_class_of_the_walk_is_defined() -> None:
    assert [name for name in (*FUNCTIONS, *CLASSES) if name not in defined() | HOST_WORDS] == []


def test_the_adapter_reads_every_word_of_the_host() -> None:
    adapter = (ROOT / "handlers" / "event_batches.py").read_text(encoding="utf-8")
    assert set(CLASSES) >= HOST_WORDS
    assert [word for word in sorted(HOST_WORDS) if f'"{word}"' not in adapter] == []


def test_a_statement_of_the_walk_is_in_the_file_that_it_names() -> None:
    text = ONE_EVENT.read_text(encoding="utf-8")
    named = re.findall(r"`(\w+)` of `(sql/[\w/.]+)`", text)
    assert len(named) == text.count("`sql/") > 0
    for statement, file in named:
        assert f"-- name: {statement}\n" in (ROOT / file).read_text(encoding="utf-8")


def test_every_setting_is_in_the_page_of_settings() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    source = "".join((ROOT / "core" / one).read_text(encoding="utf-8") for one in ("settings.py", "model/policies.py"))
    names = set(re.findall(r'"([A-Z][A-Z_]+(?:__\w+)?)"', source))
    assert {"STORE_CONNECTION", "EVENTHUB_NAME", "TRANSFORM"} <= names
    assert {name for name in names if f"`{name}`" not in page} == set()


def test_every_option_of_the_worker_is_in_the_page_of_settings() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    source = (ROOT / "core" / "worker" / "__main__.py").read_text(encoding="utf-8")
    options = dict(re.findall(r'add_argument\(\s*"(--\w+)"(?:.*default=(\d+))?', source))
    assert set(options) == set(re.findall(r"^\| `(--\w+)`", page, flags=re.MULTILINE)) != set()
    defaults = {name: f"`{default}`" if default else "" for name, default in options.items()}
    assert [
        name for name, default in defaults.items() if f"| `{name}` | {default} |".replace("  ", " ") not in page
    ] == []


def test_every_setting_that_must_be_set_is_in_the_example() -> None:
    example = (ROOT / "local.settings.example.json").read_text(encoding="utf-8")
    with pytest.raises(SettingsRefused) as refusal:
        read_settings({})
    assert all(fault.split()[0] in example for fault in refusal.value.faults)


def test_links_between_documents_lead_somewhere() -> None:
    links = [
        (page, target)
        for page in PAGES
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    ]
    assert len(links) > 50
    assert [(name_of(page), target) for page, target in links if not (page.parent / target).exists()] == []


def test_every_page_is_linked_from_the_front_page() -> None:
    front = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"(docs/{page.name})" not in front] == []


def test_the_page_of_commands_has_every_target_of_the_makefile_and_no_other() -> None:
    page = (ROOT / "docs" / "run.md").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z0-9-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(set(re.findall(r"`make ([a-z0-9-]+)", page))) == sorted(targets)


def test_the_worker_receives_as_host_json_has_the_trigger_receive() -> None:
    hubs = json.loads((ROOT / "host.json").read_text(encoding="utf-8"))["extensions"]["eventHubs"]
    assert (hubs["maxEventBatchSize"], hubs["prefetchCount"]) == (consumer.BATCH_SIZE, consumer.PREFETCH)


def test_the_settings_page_tells_the_values_of_host_json() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    hubs = json.loads((ROOT / "host.json").read_text(encoding="utf-8"))["extensions"]["eventHubs"]
    for name in ("maxEventBatchSize", "minEventBatchSize", "prefetchCount", "batchCheckpointFrequency"):
        assert f"| `extensions.eventHubs.{name}` | {hubs[name]} |" in page
