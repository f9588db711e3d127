"""A route: the address and the key of one function, and the operation that answers it. Light to import."""

from typing import NamedTuple

import azure.functions as func

# Who may call: anybody; the holder of a key of the function or of the app; the holder of the app's master key.
OPEN, READING, CHANGING = func.AuthLevel.ANONYMOUS, func.AuthLevel.FUNCTION, func.AuthLevel.ADMIN


class Route(NamedTuple):
    """One row of the table of routes.

    `template` is the path below the prefix of `host.json`. `operation` is the module in `handlers/operations` and the
    name in it, such as `letters.show_letter`. `drives` marks an operation that leaves a replay to be driven.
    """

    method: str
    template: str
    level: func.AuthLevel
    operation: str
    drives: bool = False

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of the function: HEAD goes with GET, and the host leaves out the body of its answer."""
        return (self.method, "HEAD") if self.method == "GET" else (self.method,)

    @property
    def name(self) -> str:
        """The name of the function and of its operation."""
        return self.operation.rpartition(".")[2]
