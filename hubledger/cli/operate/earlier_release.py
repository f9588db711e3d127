"""Retry and discard letters of an app whose release has no redrives: in orders of at most ten thousand letters."""

from collections.abc import Mapping
from typing import Any

from hubledger.cli.operate.command import GOOD, At
from hubledger.cli.remote.client import Client
from hubledger.cli.remote.problems import Refusal
from hubledger.cli.views.texts import counted, text_of


def preview_of(app: Client, move: str, given: Mapping[str, str]) -> dict[str, Any]:
    """Return a preview in the form of the newer releases.

    An order that expects too few letters changes none of them, and its refusal counts them.
    """
    order = {"filter": given, "expected_count": 0, "reason": "a preview of the command line"}
    try:
        app.post(f"dead-letters/{move}", order)
        count = 0
    except Refusal as refusal:
        if refusal.kind != "count-differs":
            raise
        count = int(refusal.members["count"])
    groups = app.get("dead-letters/groups", given).value["groups"]
    causes = [
        {"fingerprint": one["fingerprint"], "letters": one["open"], **{name: one["sample"][name] for name in _NAMED}}
        for one in groups
        if one["open"]
    ]
    sample = app.get("dead-letters", {**given, "limit": 5}).value["letters"] if count else []
    return {"count": count, "causes": causes, "sample": sample}


_NAMED = ("error_class", "error_type")


def move_in_orders(at: At, move: str, body: Mapping[str, Any]) -> int:
    """Send one order after the other until no letter is left."""
    if body.get("per_second"):
        at.out.note("--per-second: this release of the app moves letters at once")
    order = {name: value for name, value in body.items() if name != "per_second"}
    moved = 0
    while order["expected_count"]:
        done = at.app.post(f"dead-letters/{move}", order)
        if at.out.as_json:
            at.out.json(done.text)
        moved += done.value["moved"]
        order["expected_count"] = done.value["left"]
        at.out.say(f"moved {counted(moved, 'letter')}, left {text_of(done.value['left'])}")
    return GOOD
