"""`use`: name an app once, and talk to it from then on."""

import sys
from typing import Annotated

import typer

from hubledger.cli.console import UsageFault, say, show_table
from hubledger.cli.remote.address import checked_url
from hubledger.cli.remote.contexts import Context, Contexts, contexts_file, read_contexts, write_contexts

_Name = Annotated[
    str | None, typer.Argument(metavar="NAME", help="The app; without a name, the known ones are listed.")
]
_Url = Annotated[
    str | None, typer.Option("--url", metavar="URL", help="Its address: makes the context, or changes it.")
]
_Scope = Annotated[
    str, typer.Option("--scope", metavar="SCOPE", help="Sign in by Entra ID with this scope, and keep no key.")
]
_FromStdin = Annotated[bool, typer.Option("--key-from-stdin", help="Read the key from the standard input.")]
_Forget = Annotated[bool, typer.Option("--forget", help="Forget the context and its key.")]


def use(
    name: _Name = None,
    url: _Url = None,
    scope: _Scope = "",
    key_from_stdin: _FromStdin = False,
    forget: _Forget = False,
) -> None:
    """Choose the app that the commands talk to, and keep its address and key.

    They are kept in the user's folder of settings, in a file that only the user can read. --url and the settings
    HUBLEDGER_URL, HUBLEDGER_KEY and HUBLEDGER_SCOPE win over it.

    Example: bin/hubledger use prod --url https://NAME.azurewebsites.net
    """
    path = contexts_file()
    found = read_contexts(path)
    if name is None:
        rows = [
            ("*" if one == found.current else "", one, each.url, _signed(each)) for one, each in found.known.items()
        ]
        return show_table("contexts", ("", "name", "address", "sign-in"), rows) if rows else say("no context is known")
    known = dict(found.known)
    if forget:
        if known.pop(name, None) is None:
            raise UsageFault(f"there is no context {name}")
        write_contexts(path, Contexts(known, "" if found.current == name else found.current))
        return say(f"{name} is forgotten")
    if not url and name not in known:
        raise UsageFault(f"there is no context {name}: make it with --url, or use {', '.join(known) or 'none yet'}")
    if url or scope or key_from_stdin:
        address = checked_url(url, f"--url {url}") if url else known[name].url
        known[name] = Context(address, "" if scope else _key(key_from_stdin), scope)
    write_contexts(path, Contexts(known, name))
    return say(f"using {name}: {known[name].url}, {_signed(known[name])}; kept in {path}")


def _key(from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().strip()
    if not sys.stdin.isatty():
        return ""
    return str(typer.prompt("Key (empty: none)", default="", hide_input=True, show_default=False)).strip()


def _signed(one: Context) -> str:
    return f"scope {one.scope}" if one.scope else "with a key" if one.key else "without a key"
