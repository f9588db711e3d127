"""Where the app is and how to sign in, from the environment: HUBLEDGER_URL, HUBLEDGER_KEY and HUBLEDGER_SCOPE."""

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from hubledger.cli.console import UsageFault, program
from hubledger.cli.remote.contexts import Context

URL, KEY, SCOPE = "HUBLEDGER_URL", "HUBLEDGER_KEY", "HUBLEDGER_SCOPE"
_VISIBLE = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Address:
    """The app's address without `/api`, and the sign-in. A key or a token is never shown."""

    url: str
    key: str = field(default="", repr=False)
    scope: str = ""


def read_address(
    given: str | None,
    environment: Mapping[str, str],
    find_run: Callable[[], str | None],
    chosen: Context | None = None,
) -> Address:
    """Return the address: the option, the setting, the `chosen` context, or a local run. The key and the scope of the
    context go to its own address only. UsageFault says what to set."""
    key, scope = environment.get(KEY, "").strip(), environment.get(SCOPE, "").strip()
    named = f"--url {given}" if given else f"{URL}={environment.get(URL, '').strip()}"
    if chosen is not None and not given and not environment.get(URL, "").strip():
        given, named = chosen.url, f"the context's address {chosen.url}"
        if not key and not scope:
            key, scope = chosen.key, chosen.scope
    if key and not _VISIBLE.fullmatch(key):
        raise UsageFault(f"{KEY} holds a character that no key has")
    text = given or environment.get(URL, "").strip() or find_run()
    if not text:
        raise UsageFault(
            f"which app? Name it with `{program()} use NAME --url https://NAME.azurewebsites.net`, set {URL}, give"
            " --url, or start one here with `make run`"
        )
    url = checked_url(text, named)
    if (key or scope) and urlsplit(url).scheme == "http" and not _is_here(urlsplit(url).hostname or ""):
        raise UsageFault(f"{named}: it is not https, so a key or token would cross the network in the clear")
    return Address(url, key, scope)


def find_local_run() -> str | None:
    """Return the address of a local run of this checkout, if one runs."""
    try:
        from local.stack.running import running_address
    except ImportError:  # no files of the local run, or no POSIX
        return None
    return running_address()


def checked_url(text: str, named: str) -> str:
    """Return an address without `/api`; `named` is what the person wrote. UsageFault for anything that is none."""
    parts, port = _parts(text, named)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageFault(f"{named}: an address begins with https:// and a name")
    if "@" in parts.netloc:
        raise UsageFault("the address holds a name or a password: leave them out")
    if parts.query or parts.fragment:
        raise UsageFault(f"the address has a ? or a #: give the app's address alone, and the key in {KEY}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = parts.path.rstrip("/").removesuffix("/api")
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{path}"


def _parts(text: str, named: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(text)
        return parts, parts.port
    except ValueError as error:
        raise UsageFault(f"{named}: {error}") from None


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
