"""The files of editors and of the dev container parse, name what there is, and are in no deployed package."""

import json
import re
from importlib.util import find_spec
from typing import Any

from tests.repo.product import ROOT

FILES = (
    ".devcontainer/devcontainer.json",
    *(f".vscode/{name}.json" for name in ("extensions", "launch", "settings", "tasks")),
)
TARGETS = set(re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def parsed(name: str) -> Any:
    """Return a file of JSON with comments, each in a line of its own."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))


def test_each_file_parses_and_each_make_command_is_a_target() -> None:
    for name in FILES:
        commands = re.findall(r'\bmake ([a-z -]+)["&]', json.dumps(parsed(name)))
        assert {target for command in commands for target in command.split()} <= TARGETS, name
    commands = [task["command"] for task in parsed(".vscode/tasks.json")["tasks"]]
    assert {"make setup", "make check", "make func"} <= set(commands)
    assert "make setup" in parsed(".devcontainer/devcontainer.json")["postCreateCommand"]


def test_each_configuration_starts_a_module_and_each_task_before_it_is_there() -> None:
    tasks = {task["label"]: task for task in parsed(".vscode/tasks.json")["tasks"]}
    for each in parsed(".vscode/launch.json")["configurations"]:
        assert each["preLaunchTask"] in tasks
        assert each["request"] == "attach" or find_spec(each["module"]) is not None, each["name"]
    assert {task["dependsOn"] for task in tasks.values() if "dependsOn" in task} <= tasks.keys()
    (attached,) = [each for each in parsed(".vscode/launch.json")["configurations"] if each["request"] == "attach"]
    listening = tasks["func"]["options"]["env"]["languageWorkers__python__arguments"]
    assert listening.endswith(f"{attached['connect']['host']}:{attached['connect']['port']}")


def test_the_container_and_the_editor_recommend_the_same_extensions() -> None:
    inside = parsed(".devcontainer/devcontainer.json")["customizations"]["vscode"]["extensions"]
    assert inside == parsed(".vscode/extensions.json")["recommendations"]


def test_no_deployed_package_has_these_files() -> None:
    ignored = (ROOT / ".funcignore").read_text(encoding="utf-8").split()
    assert {name.partition("/")[0] for name in FILES} <= set(ignored)
    assert (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()[1] == "*"
