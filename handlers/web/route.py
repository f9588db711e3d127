"""A route: the address and the level of one function, and the operation that answers it. Light to import."""

from typing import NamedTuple

import azure.functions as func

_ANYBODY, _KEY = func.AuthLevel.ANONYMOUS, func.AuthLevel.FUNCTION


class Level(NamedTuple):
    """The permission that a route needs: `host` is checked by the host, `role` by the app where sign-in is on."""

    name: str
    host: func.AuthLevel
    role: str = ""

    @property
    def needs_key(self) -> bool:
        """True if the host requires a key; anybody can send the other requests."""
        return self.host is not _ANYBODY


OPEN = Level("open", _ANYBODY)
COUNTING = Level("counting", _KEY)  # counts and times only: nothing of an event, and no error text
READING = Level("reading", _KEY, "Hubledger.Read")
REVEALING = Level("revealing", _KEY, "Hubledger.Reveal")  # quotes events, or shows a home: each answer is logged
CHANGING = Level("changing", _KEY, "Hubledger.Operate")
LINKING = Level("linking", _KEY)  # the company's web site makes links for residents
LINKED = Level("linked", _ANYBODY)  # the app itself requires a link for the home in the address
LEVELS = (OPEN, COUNTING, READING, REVEALING, CHANGING, LINKING, LINKED)


class Route(NamedTuple):
    """One row of the table of routes.

    `template` is the path below the prefix of `host.json`. `operation` is the module in `handlers/operations` and the
    name in it, such as `letters.show_letter`. `drives` names the orchestration of the job that the operation leaves.
    """

    method: str
    template: str
    level: Level
    operation: str
    drives: str = ""

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of the function: HEAD goes with GET, and the host leaves out the body of its answer."""
        return (self.method, "HEAD") if self.method == "GET" else (self.method,)

    @property
    def name(self) -> str:
        """The name of the function and of its operation."""
        return self.operation.rpartition(".")[2]
