"""What the documents name is there."""

import ast
import json
import re
from functools import cache

import pytest

from core.errors import SettingsRefused
from core.remote.hub import consumer
from core.settings import read_settings
from tests.repo.product import MODULES, ROOT, name_of, tree_of

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
HOST_WORDS = {"PartitionContext", "OffsetStringArray", "PropertiesArray"}


@cache
def defined() -> set[str]:
    """The name of every function and class of the product."""
    nodes = (node for path in MODULES for node in ast.walk(tree_of(path)))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}


def test_the_walk_names_files_functions_and_classes() -> None:
    assert len(FILES) >= 8
    assert {"ingest_batch", "settle", "guard"} <= set(FUNCTIONS)
    assert {"BatchCommit", "DeadLetter"} <= set(CLASSES)


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_the_walk_is_there(name: str) -> None:
    assert (ROOT / name).exists()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_the_walk_is_there(name: str) -> None:
    assert name in defined()


@pytest.mark.parametrize("name", sorted(set(CLASSES) - HOST_WORDS))
def test_a_class_of_the_walk_is_there(name: str) -> None:
    assert name in defined()


@pytest.mark.parametrize("name", sorted(HOST_WORDS & set(CLASSES)))
def test_a_word_of_the_host_is_one_that_the_adapter_reads(name: str) -> None:
    assert f'"{name}"' in (ROOT / "handlers" / "adapters.py").read_text(encoding="utf-8")


def test_a_statement_of_the_walk_is_in_the_file_that_it_names() -> None:
    text = ONE_EVENT.read_text(encoding="utf-8")
    for statement, file in re.findall(r"`(\w+)` of `(sql/[\w/.]+)`", text):
        assert f"-- name: {statement}\n" in (ROOT / file).read_text(encoding="utf-8")


def test_every_setting_is_in_the_page_of_settings() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    source = (ROOT / "core" / "settings.py").read_text(encoding="utf-8")
    names = set(re.findall(r'"([A-Z][A-Z_]+(?:__\w+)?)"', source))
    assert {"STORE_CONNECTION", "EVENTHUB_NAME", "TRANSFORM"} <= names
    assert {name for name in names if f"`{name}`" not in page} == set()


def test_every_option_of_the_worker_is_in_the_page_of_settings() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    source = (ROOT / "core" / "worker.py").read_text(encoding="utf-8")
    options = dict(re.findall(r'add_argument\("(--\w+)".*default=(\d+)', source))
    assert set(options) == set(re.findall(r"^\| `(--\w+)`", page, flags=re.MULTILINE)) != set()
    assert [name for name, default in options.items() if f"| `{name}` | `{default}` |" not in page] == []


def test_every_setting_that_must_be_set_is_in_the_example() -> None:
    example = (ROOT / "local.settings.example.json").read_text(encoding="utf-8")
    with pytest.raises(SettingsRefused) as refusal:
        read_settings({})
    assert all(fault.split()[0] in example for fault in refusal.value.faults)


LINKS = [
    (page, target)
    for page in sorted((ROOT / "docs").rglob("*.md"))
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
]


def test_links_between_documents_lead_somewhere() -> None:
    assert [(name_of(page), target) for page, target in LINKS if not (page.parent / target).exists()] == []


def test_the_worker_receives_as_host_json_has_the_trigger_receive() -> None:
    hubs = json.loads((ROOT / "host.json").read_text(encoding="utf-8"))["extensions"]["eventHubs"]
    assert (hubs["maxEventBatchSize"], hubs["prefetchCount"]) == (consumer.BATCH_SIZE, consumer.PREFETCH)


def test_the_settings_page_tells_the_values_of_host_json() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    hubs = json.loads((ROOT / "host.json").read_text(encoding="utf-8"))["extensions"]["eventHubs"]
    for name in ("maxEventBatchSize", "minEventBatchSize", "prefetchCount", "batchCheckpointFrequency"):
        assert f"| `extensions.eventHubs.{name}` | {hubs[name]} |" in page
