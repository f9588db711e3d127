"""The causes of letters: the app's groups, and the message of each for who may see messages."""

import re
from collections.abc import Mapping
from typing import Any

from hubledger.cli.console import UsageFault, program
from hubledger.cli.operate.command import At
from hubledger.cli.remote.client import AppAnswer
from hubledger.cli.remote.problems import Refusal
from hubledger.cli.views.texts import brief

MOST_CAUSES = 100  # of an answer
WHOLE = 16  # characters of a cause; after a dot come eight of the values of its message
_CAUSE = re.compile(r"[0-9a-f]{16}(\.[0-9a-f]{8})?")
_BEGINNING = re.compile(r"[0-9a-f]{1,16}(\.[0-9a-f]{1,8})?")


def cause_named(at: At, given: str, query: Mapping[str, str]) -> str:
    """Return the cause, or the value of it, that begins as given. UsageFault where several of the letters' do, and
    for a text that begins no cause at all.
    """
    if _CAUSE.fullmatch(given):
        return given
    if not given.isascii():  # the app, or the way there, refuses it
        return given
    if not _BEGINNING.fullmatch(given):
        raise UsageFault(f"--cause {given!r} is no cause, and no beginning of one: {program()} letters causes")
    cause, dot, value = given.partition(".")
    found = cause if len(cause) == WHOLE else _only(at, cause, query)
    return _only(at, f"{found}.{value}", {**query, "fingerprint": found}) if dot else found


def _only(at: At, given: str, query: Mapping[str, str]) -> str:
    groups = at.app.get("dead-letters/groups", {**query, "limit": MOST_CAUSES}).value["groups"]
    known = [one["fingerprint"] for one in groups]
    fitting = [given] if given in known else [one for one in known if one.startswith(given)]
    if given not in known and len(known) == MOST_CAUSES:
        raise UsageFault(f"--cause {given}: there are too many causes to find it among them: write it whole")
    if len(fitting) > 1:
        raise UsageFault(f"--cause {given} begins {len(fitting)} causes: {', '.join(fitting)}")
    return fitting[0] if fitting else given


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
