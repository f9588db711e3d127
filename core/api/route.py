"""A route: the address and the level of one function, and the operation that answers it. Light to import."""

from typing import NamedTuple


class Link(NamedTuple):
    """A kind of signed link, which opens one subject: the one that `field` of the path names.

    `header` brings the link, `purpose` is signed with it, and `subject` is the word for it in a refusal.
    """

    header: str
    purpose: str
    field: str
    subject: str


class Level(NamedTuple):
    """The permission that a route needs: the host checks the key, and the app the role where sign-in is on.

    A route with a `link` needs no key: the app itself requires a signed link for the subject in the address.
    """

    name: str
    needs_key: bool
    role: str = ""
    link: Link | None = None


OPEN = Level("open", needs_key=False)
COUNTING = Level("counting", needs_key=True)  # counts and times only: nothing of an event, and no error text
READING = Level("reading", needs_key=True, role="Hubledger.Read")
REVEALING = Level("revealing", needs_key=True, role="Hubledger.Reveal")  # quotes events: each answer is logged
CHANGING = Level("changing", needs_key=True, role="Hubledger.Operate")
LINKING = Level("linking", needs_key=True)  # a web site of the company makes links
LEVELS = (OPEN, COUNTING, READING, REVEALING, CHANGING, LINKING)


def linked(link: Link) -> Level:
    """Return the level of a route that a link opens."""
    return Level("linked", needs_key=False, link=link)


class Route(NamedTuple):
    """One row of the table of routes.

    `template` is the path below the prefix of `host.json`. `operation` is a module and a name in it: of the app below
    `handlers/operations`, such as `letters.show_letter`, and of a room with all packages. `drives` is true
    when the operation leaves a task that an orchestration drives. `function` names the function of an address whose
    operation has another address too.
    """

    method: str
    template: str
    level: Level
    operation: str
    drives: bool = False
    function: str = ""

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of the function: HEAD goes with GET, and the host leaves out the body of its answer."""
        return (self.method, "HEAD") if self.method == "GET" else (self.method,)

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function or self.operation.rpartition(".")[2]


class OperatorPage(NamedTuple):
    """A page of a room within the operator's page: its address after `#/`, its title, and the module whose function of
    the same name fills a place."""

    name: str
    title: str
    file: str
