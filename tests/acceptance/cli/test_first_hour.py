"""The first hour, typed in a terminal of 80x24: what the screen shows, and that every question can be answered."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.acceptance.cli.terminal import TMUX, WITHOUT_TMUX, Shell
from tests.acceptance.tutorial.reader import free_port, in_a_copy

pytestmark = [pytest.mark.slow, pytest.mark.skipif(TMUX is None, reason=WITHOUT_TMUX)]
ORDER = {"order_id": "A-1", "item": "lamp", "quantity": 2, "placed_at": "2026-03-01T09:12:04Z"}
LINES = [json.dumps({**ORDER, "order_id": f"A-{number}"}) for number in range(1, 6)]
RULE = re.compile(r"^ *─{3,}[ ─]*$")


def typed(shell: Shell, line: str, *answers: tuple[str, str]) -> tuple[int, str]:
    """Type a command, answer its questions, and return its code and its screen."""
    shell.begin(line)
    for question, answer in answers:
        shell.shows(question)
        shell.type(answer)
    code, screen = shell.code(), shell.screen()
    assert "Traceback" not in screen
    assert [one for one in tabular(screen) if len(one) > 80] == []
    return code, screen


def tabular(screen: str) -> list[str]:
    """Return the lines of tables: the head above a rule, the rule, and the rows to the next empty line."""
    lines = screen.splitlines()
    found = []
    for at, line in enumerate(lines):
        if RULE.match(line):
            end = next((to for to in range(at, len(lines)) if not lines[to].strip()), len(lines))
            found += lines[at - 1 : end]
    return found


def test_a_person_types_the_commands_of_the_first_hour(tmp_path: Path, short_path: Path) -> None:
    root = in_a_copy(tmp_path / "my-app").folder
    (root / "orders.jsonl").write_text("\n".join([*LINES, '{"order_id": "A-6", ', "no JSON"]) + "\n")
    kept = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
    given = {**kept, "PATH": f"{root / 'bin'}:{os.environ['PATH']}", "XDG_CONFIG_HOME": str(tmp_path)}
    first, second = short_path / "1", short_path / "2"
    first.mkdir()
    second.mkdir()
    with Shell(first, root, given) as demo, Shell(second, root, given) as shell:
        demo.begin(f"make demo EVENTS=2000 PORT={free_port()}")
        without_an_app(shell)
        own_room(shell)
        assert "Proved: each of 2,000 events" in demo.shows("Ctrl-C ends it")
        with_an_app(shell)
        demo.press("C-c")
        assert demo.code() in (0, 2, 130)  # make tells of an interrupted recipe in its own way
        assert "Traceback" not in demo.screen()


def without_an_app(shell: Shell) -> None:
    code, screen = typed(shell, "hubledger")
    assert (code, screen.count("Usage:")) == (2, 1)
    code, screen = typed(shell, "hubledger letters")
    assert (code, screen.count("Usage:")) == (0, 1)
    assert "causes" in screen
    code, screen = typed(shell, "hubledger --version")
    assert code == 0
    assert re.search(r"^hubledger \d+\.\d+\.\d+$", screen, re.M)


def own_room(shell: Shell) -> None:
    questions = (("Name of your events", "orders"), ("File with orders", "orders.jsonl"))
    code, screen = typed(shell, "hubledger new --key order_id", *questions)
    assert code == 0
    assert "Left out: 2 lines of orders.jsonl" in screen
    assert "hubledger try --transform apps.orders" in screen
    code, screen = typed(shell, "hubledger try --transform orders")
    assert code == 0
    assert "apps.orders, orders/1: events 5, with rows 5, filtered 0, letters 0" in screen
    assert typed(shell, "hubledger new shop --from orders.jsonl")[0] == 0
    asked = ("Which room (apps.orders, apps.shop)", "shop"), ("not one of 'apps.orders', 'apps.shop'", "apps.shop")
    code, screen = typed(shell, "hubledger try", *asked)
    assert code == 0
    assert "apps.shop, shop/1: events 5" in screen


def with_an_app(shell: Shell) -> None:
    code, screen = typed(shell, "hubledger doctor")
    assert code == 0
    assert re.search(r"^hubledger [\d.]+, Python 3", screen, re.M)
    assert re.search(r"^ ledger +ok +", screen, re.M)
    code, screen = typed(shell, "hubledger letters list")
    assert code == 0
    assert re.search(r"exhausted +poison", screen)
    code, screen = typed(shell, "hubledger open")
    assert code == 0
    assert re.search(r"^http://localhost:\d+/api/ops$", screen, re.M)
