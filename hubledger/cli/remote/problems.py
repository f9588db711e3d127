"""A refusal of the app in plain words: one sentence, the faults of the fields, and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hubledger.cli.console import Refused, program

PREFIX = "urn:hubledger:problem:"
ROLES = {"reading": "Hubledger.Read", "revealing": "Hubledger.Reveal", "changing": "Hubledger.Operate"}
# Members of a problem that name a thing, and the command that shows it.
_SHOWN_BY = {"task_id": "tasks show"}


@dataclass(eq=False)
class Refusal(Refused):
    """The app refused a request. `kind` is the name of the problem's type, empty for an answer without a problem."""

    status: int
    kind: str = ""
    members: Mapping[str, Any] = field(default_factory=dict)
    sentence: str = ""

    def __str__(self) -> str:
        """Return the sentence, and a line for each hint."""
        return self.sentence


def refusal_of(status: int, members: Mapping[str, Any], level: str) -> Refusal:
    """Make the refusal of an answer; `members` are those of its problem, empty where it has none."""
    kind = str(members.get("type", "")).removeprefix(PREFIX)
    lines = [_said(status, members), *_fields(members), *_hints(status, kind, members, level)]
    return Refusal(status, kind, members, "\n".join(lines))


def _said(status: int, members: Mapping[str, Any]) -> str:
    said = members.get("detail") or members.get("title")
    if said:
        return str(said)
    if status in (401, 403):
        return f"the app refuses the caller ({status})"
    return f"the app answers {status} without a reason"


def _fields(members: Mapping[str, Any]) -> list[str]:
    errors = members.get("errors")
    listed = [one for one in errors if isinstance(one, dict)] if isinstance(errors, list) else []
    named = [f"{one.get('field')}: {one.get('detail')}" for one in listed]
    details = {str(one.get("detail")) for one in listed}
    said = str(members.get("detail"))
    return [f"  {line}" for line in named if line != said and details != {said}]


def _hints(status: int, kind: str, members: Mapping[str, Any], level: str) -> list[str]:
    found = [
        f"  look at it: {program()} {command} {members[name]}"
        for name, command in _SHOWN_BY.items()
        if members.get(name)
    ]
    if status in (401, 403):
        found.append(f"  {needs(level)}")
    if kind == "unavailable":
        found.append(f"  nothing was changed; try again, and look at `{program()} health`")
    return found


def needs(level: str) -> str:
    """Return what a request of a level needs, and the settings that hold it."""
    role = ROLES.get(level)
    signed = f", and where sign-in is on a token (HUBLEDGER_SCOPE) of a person with the role {role}" if role else ""
    return f"this is {level}: it needs a key of the function (HUBLEDGER_KEY){signed}; see docs/access.md"
