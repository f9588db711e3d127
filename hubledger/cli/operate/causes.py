"""The causes of letters: the app's groups, and the message of each for who may see messages."""

from collections.abc import Mapping
from typing import Any

from hubledger.cli.operate.command import At
from hubledger.cli.remote.client import AppAnswer
from hubledger.cli.remote.problems import Refusal
from hubledger.cli.views.texts import brief

MOST_CAUSES = 100  # of an answer


def messages_of(at: At, query: Mapping[str, str]) -> dict[str, str]:
    """Return the message of each cause of the letters that a filter chooses; none for who may not see messages."""
    try:
        found = at.app.get("revealed/dead-letters/groups", {**query, "limit": MOST_CAUSES})
    except Refusal as refusal:
        if refusal.status not in (401, 403):
            raise
        return {}
    return {one["fingerprint"]: message_of(one) for one in found.value["groups"] if one["template"]}


def message_of(group: Mapping[str, Any]) -> str:
    """Return the message of a cause in a line, with some of the values that stand in its gaps."""
    examples = f" (e.g. {', '.join(group['examples'])})" if group["examples"] else ""
    return brief(f"{group['template']}{examples}")


def groups_of(at: At, query: dict[str, Any], must_reveal: bool) -> AppAnswer:
    """Return the causes with their messages for who may see them, else without."""
    try:
        return at.app.get("revealed/dead-letters/groups", query)
    except Refusal as refusal:
        if must_reveal or refusal.status not in (401, 403):
            raise
    at.out.note("The messages are hidden: this key or account may not reveal what events hold.")
    return at.app.get("dead-letters/groups", query)
