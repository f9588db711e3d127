"""The parts that operator commands share: options, the connection to the app, confirmation of a change, exit codes."""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any

import typer

from hubledger.cli.output import Output, Refused, UsageFault, given_url, printable
from hubledger.cli.remote.client import Client, Interrupted
from hubledger.cli.remote.connection import contexts_file, find_local_run, read_address, read_contexts, tokens_for

GOOD, UNHEALTHY = 0, 1
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="The app's address; default: HUBLEDGER_URL, the context of `use`, or the local run.",
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="Print the app's answers as JSON, one a line.")]
_NoColor = Annotated[bool, typer.Option("--no-color", help="Print without colour, as with NO_COLOR.")]
_Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before the change.")]
Why = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="The reason, which the app stores. A terminal asks for it.")
]
Everything = Annotated[bool, typer.Option("--all", help="All pages.")]
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_SHARED = {"url": (Url, None), "as_json": (_Json, False), "no_color": (_NoColor, False)}


@dataclass(frozen=True, slots=True)
class At:
    """The app that a command talks to, the place where it prints, and whether it may change without a question."""

    app: Client
    out: Output
    yes: bool = False

    def confirm(self, question: str) -> None:
        """Ask before a change. Raises Refused on no, and UsageFault where nobody can answer."""
        self.refuse_without_person()
        try:
            if self.yes or typer.confirm(printable(question), err=True):
                return
        except typer.Abort:
            self.out.note("")
            raise Interrupted("nothing was changed") from None
        raise Refused("nothing was changed")

    def refuse_without_person(self) -> None:
        """Raise UsageFault where a question comes that nobody can answer."""
        if not self.yes and not self.out.asks:
            raise UsageFault("this command changes something, and there is no terminal to ask in: give --yes")

    def listed(self, path: str, name: str, query: Mapping[str, object], everything: bool) -> tuple[list[Any], Any]:
        """Read a page of a list, or all, and print them where JSON is wanted. Return the entries under a name, and the
        cursor of more."""
        found, following = list[Any](), None
        for page in self.app.pages(path, query, everything):
            if self.out.as_json:
                self.out.json(page.text)
            found += page.value[name]
            following = page.value.get("next")
        return found, following


def begun(given: str, known: Sequence[str], noun: str, option: str = "") -> str | None:
    """Return the one that begins as given, or None. UsageFault where several do."""
    fitting = [given] if given in known else [one for one in known if one.startswith(given)]
    if len(fitting) > 1:
        more = f" and {len(fitting) - SHOWN:,} more" if len(fitting) > SHOWN else ""
        raise UsageFault(f"{option}{given} begins {len(fitting):,} {noun}s: {', '.join(fitting[:SHOWN])}{more}")
    return fitting[0] if fitting else None


SHORTEST = 3  # characters of a reason
SHOWN = 10  # names of those that begin alike
Work = Callable[..., int | None]


def add_command(group: typer.Typer, name: str, work: Work, changes: bool = False) -> None:
    """Add a function of At to a group as a command, with the options of every command. It returns its exit code.

    Its help ends with its example. Each field of a parameter that is a dataclass is an option.
    """
    own = list(inspect.signature(work).parameters.values())[1:]
    groups: dict[str, Any] = {one.name: one.annotation for one in own if is_dataclass(one.annotation)}
    shared = {**_SHARED, **({"yes": (_Yes, False)} if changes else {})}

    def run(**given: Any) -> int:
        url, as_json, no_color = given.pop("url"), given.pop("as_json"), given.pop("no_color")
        yes = given.pop("yes") if changes else False
        out = Output(as_json, not no_color)
        root = given.pop("context").find_root()
        url = url or root.obj
        given_url.set(url or "")
        if given.get("reason", "") is None:
            given["reason"] = _asked_reason(out)
        if len(given.get("reason", "why").strip()) < SHORTEST:
            raise UsageFault(f"--reason: say why in {SHORTEST} characters or more, because the app stores it")
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in fields(group)})
        with connected(url) as app:
            try:
                return work(At(app, out, yes), **given) or GOOD
            except KeyboardInterrupt:
                raise Interrupted("interrupted") from None
            except UnicodeEncodeError:
                raise UsageFault("an argument is no text: its octets are not UTF-8") from None

    options: list[tuple[str, Any, Any]] = []
    for one in own:
        grouped = fields(one.annotation) if is_dataclass(one.annotation) else ()
        options += [(each.name, each.type, each.default) for each in grouped]
        default = None if one.name == "reason" else one.default  # it is asked for
        options += [] if grouped else [(one.name, one.annotation, default)]
    options += [(name, kind, value) for name, (kind, value) in shared.items()]
    named = [inspect.Parameter(name, _KEYWORD, default=value, annotation=kind) for name, kind, value in options]
    context = inspect.Parameter("context", _KEYWORD, annotation=typer.Context)
    run.__signature__ = inspect.Signature([*named, context])  # type: ignore[attr-defined]
    help, _, example = (inspect.getdoc(work) or "").rpartition("\n\n")
    group.command(name, help=help, epilog=example)(run)


def _asked_reason(out: Output) -> str:
    """Ask for the reason that was left out, so that a command which an output names can be pasted as it is."""
    if not out.asks:
        raise UsageFault("Missing option '--reason': there is no terminal to ask in")
    try:
        return str(typer.prompt("Reason, which the app stores", err=True))
    except typer.Abort:
        out.note("")
        raise Interrupted("nothing was changed") from None


def connected(url: str | None) -> Client:
    """Return the client of the app that the option, the settings or a local run name."""
    contexts = read_contexts(contexts_file())
    address = read_address(url, os.environ, find_local_run, contexts.known.get(contexts.current))
    return Client(address, tokens_for(address.scope) if address.scope else None)
