import json
import re
import shlex
from typing import get_args

import typer.main

from core.errors import StopReason
from handlers.api import OPERATIONS
from handlers.web.openapi import describe
from hubledger.cli.commands import app
from hubledger.cli.operate.agents import tools_of
from hubledger.cli.operate.commands import GROUPS, SINGLE
from tests.acceptance.game_days.page import SECTIONS
from tests.infra.test_alerts import QUERIES
from tests.infra.test_policies import FILES
from tests.repo.product import ROOT

ALERTS_PAGE = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
AGENTS_PAGE = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
SKILL = (ROOT / "skills" / "hubledger" / "SKILL.md").read_text(encoding="utf-8")
OWN = "bin/hubledger "
NOT_PLAYED = {"log-cap"}  # its query reads the workspace's own table


def test_every_alarm_and_every_reason_of_a_stop_has_its_section_to_which_the_mails_lead() -> None:
    assert sorted(SECTIONS) == sorted(["First", "hub", "database", *QUERIES, *get_args(StopReason)])
    assert "docs/runbook.md#${alert.name}" in FILES["app/alerts.bicep"].text
    assert sorted(re.findall(r"\(runbook\.md#([\w-]+)\)", ALERTS_PAGE)) == sorted(QUERIES)


def test_every_command_of_ours_on_a_page_exists_with_its_options() -> None:
    commands = [command for one in SECTIONS.values() for command in one.commands if command.startswith(OWN)]
    assert len(commands) > 30
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        # the tutorial runs the others
        commands += re.findall(
            rf"^ *\$ ({OWN}(?!new|try|migrate-diff)[^|>\\\n]+)", page.read_text(encoding="utf-8"), re.MULTILINE
        )
    assert len(commands) > 50
    assert [one for one in commands if fault_of(shlex.split(one.removeprefix(OWN), comments=True))] == []


def test_the_skill_of_agents_has_a_tool_for_every_command_of_ours_on_the_page() -> None:
    commands = [shlex.split(command.removeprefix(OWN)) for one in SECTIONS.values() for command in one.commands]
    named = {" ".join(words[: 1 + (words[0] in GROUPS)]) for words in commands if words[0] in {*SINGLE, *GROUPS}}
    rows = re.findall(r"^\| `([a-z -]+)` \| (.+) \|$", SKILL, re.M)
    assert {command for command, _ in rows} == named
    words = {word for text in (SKILL, AGENTS_PAGE) for word in re.findall(r"`([a-z]+_[a-z_]+)`", text)}
    description = describe(OPERATIONS)
    tools = {one.name for one in tools_of(description, changes=True)}
    assert [word for word in words - tools if f'"{word}"' not in json.dumps(description)] == []
    assert [text for _, text in rows if not tools & set(re.findall(r"`(\w+)`", text))] == []


def test_every_alarm_of_a_section_is_played() -> None:
    files = (ROOT / "tests" / "acceptance" / "game_days").glob("test_*.py")
    texts = "".join(file.read_text(encoding="utf-8") for file in files)
    assert set(re.findall(r'until_it_fires\("([\w-]+)"\)', texts)) == set(QUERIES) - NOT_PLAYED


def fault_of(words: list[str]) -> bool:
    group = typer.main.get_command(app)
    name, *rest = words
    command = group.commands.get(name)  # type: ignore[attr-defined]
    while command is not None and hasattr(command, "commands"):
        name, *rest = rest
        command = command.commands.get(name)
    if command is None:
        return True
    known = {option for each in command.params for option in each.opts}
    return any(word.startswith("--") and word not in known for word in rest)
