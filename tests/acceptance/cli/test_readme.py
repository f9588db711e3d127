"""The recorded session of the README: its commands print what it shows."""

import re
import shlex

import pytest

from tests.acceptance.api.served import Served
from tests.acceptance.cli.terminal import hubledger
from tests.acceptance.tutorial.page import Command, steps_of
from tests.repo.product import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
SESSION = [step for step in steps_of(README) if isinstance(step, Command) and step.line.startswith("bin/hubledger ")]
# Ids and times are one sign in the session and in the output; the widths of columns follow them.
_VOLATILE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[\d-]* ?\d\d:\d\d:\d\dZ, (now|[\w ]+ ago)|─+")


def steady(text: str) -> str:
    """A text without what differs from one session to the next."""
    lines = [" ".join(_VOLATILE.sub("#", line).split()) for line in text.splitlines()]
    return "".join(f"{line}\n" for line in lines if line)


@pytest.mark.slow
@pytest.mark.proof("command line")
def test_the_commands_of_the_session_print_what_it_shows(fresh: Served) -> None:
    differing = []
    for command in SESSION:
        done = hubledger(fresh.base_url, *shlex.split(command.line)[1:], COLUMNS="100")
        assert done.returncode == 0, done.stderr
        shown = Command(command.line, steady(command.output))
        if not shown.shows(steady(done.stdout)):
            differing.append(f"$ {command.line}\n{done.stdout}")
    assert "\n".join(differing) == ""
    assert len(SESSION) == 4
