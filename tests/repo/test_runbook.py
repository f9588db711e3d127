"""docs/runbook.md: every alarm has its section, each section its parts, and each command exists."""

import re
import shlex
from collections.abc import Sequence
from typing import get_args

import typer.main

from core.errors import StopReason
from hubledger.cli.commands import app
from tests.acceptance.game_days.page import SECTIONS
from tests.infra.test_alerts import QUERIES
from tests.infra.test_policies import FILES
from tests.repo.product import ROOT

ALERTS_PAGE = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
OWN = "bin/hubledger "
NOT_PLAYED = {"log-cap"}  # its query reads the workspace's own table


def alarms_of(sections: Sequence[str]) -> list[str]:
    """Return the titles of sections about alarms: those of the second level after the first one."""
    return [title for title in sections if SECTIONS[title].depth == 2 and title != "First"]


def test_the_page_has_a_section_for_every_alarm_and_for_nothing_else() -> None:
    assert sorted(alarms_of([*SECTIONS])) == sorted(QUERIES)


def test_every_reason_of_a_stop_has_its_section() -> None:
    below = [title for title, one in SECTIONS.items() if one.depth == 3]
    assert sorted(below) == sorted(get_args(StopReason))


def test_the_page_of_alerts_and_the_mails_lead_to_the_section() -> None:
    assert "docs/runbook.md#${alert.name}" in FILES["app/alerts.bicep"].text
    assert sorted(re.findall(r"\(runbook\.md#([\w-]+)\)", ALERTS_PAGE)) == sorted(QUERIES)


def test_every_command_of_ours_on_the_page_exists_with_its_options() -> None:
    commands = [command for one in SECTIONS.values() for command in one.commands if command.startswith(OWN)]
    assert len(commands) > 30
    assert [command for command in commands if fault_of(shlex.split(command.removeprefix(OWN)))] == []


def test_every_alarm_of_a_section_is_played() -> None:
    folder = ROOT / "tests" / "acceptance" / "game_days"
    played = {
        name
        for file in folder.glob("test_*.py")
        for name in re.findall(r'until_it_fires\("([\w-]+)"\)', file.read_text())
    }
    assert played == set(QUERIES) - NOT_PLAYED


def fault_of(words: list[str]) -> bool:
    """Return True when the command line has no such command, or the command no such option."""
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
