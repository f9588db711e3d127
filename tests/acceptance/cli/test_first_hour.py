"""The questions of the command line, typed in a terminal of 80x24 in a copy of the checkout."""

import json
import os
from pathlib import Path

import pytest

from tests.acceptance.cli.terminal import TMUX, WITHOUT_TMUX, Shell
from tests.acceptance.tutorial.reader import in_a_copy

pytestmark = [pytest.mark.slow, pytest.mark.skipif(TMUX is None, reason=WITHOUT_TMUX)]
ORDER = {"item": "lamp", "quantity": 2, "placed_at": "2026-03-01T09:12:04Z"}
LINES = [json.dumps({"order_id": f"A-{number}", **ORDER}) for number in range(1, 6)]


def typed(shell: Shell, line: str, *answers: tuple[str, str]) -> str:
    """Type a command that ends well, answer its questions, and return its screen."""
    shell.begin(line)
    for question, answer in answers:
        shell.shows(question)
        shell.type(answer)
    assert shell.code() == 0
    return shell.screen()


def test_what_a_command_needs_is_asked_for(tmp_path: Path, short_path: Path) -> None:
    root = in_a_copy(tmp_path / "my-app").folder
    (root / "orders.jsonl").write_text("\n".join([*LINES, '{"order_id": "A-6", ', "no JSON"]) + "\n")
    kept = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
    given = {**kept, "PATH": f"{root / 'bin'}:{os.environ['PATH']}", "XDG_CONFIG_HOME": str(tmp_path)}
    with Shell(short_path, root, given) as shell:
        questions = (("Name of your events", "orders"), ("File with orders", "orders.jsonl"))
        screen = typed(shell, "hubledger new --key order_id", *questions)
        assert "Left out: 2 lines of orders.jsonl" in screen
        assert "hubledger try --transform apps.orders" in screen
        screen = typed(shell, "hubledger try --transform orders")
        assert "apps.orders, orders/1: events 5, with rows 5, filtered 0, letters 0" in screen
        typed(shell, "hubledger new shop --from orders.jsonl")
        asked = ("Which room (apps.orders, apps.shop)", "shop"), ("not one of 'apps.orders', 'apps.shop'", "apps.shop")
        assert "apps.shop, shop/1: events 5" in typed(shell, "hubledger try", *asked)
