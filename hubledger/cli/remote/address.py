"""Where the app is and how to sign in, from the environment: HUBLEDGER_URL, HUBLEDGER_KEY and HUBLEDGER_SCOPE."""

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from hubledger.cli.console import UsageFault

URL, KEY, SCOPE = "HUBLEDGER_URL", "HUBLEDGER_KEY", "HUBLEDGER_SCOPE"
_VISIBLE = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Address:
    """The app's address without `/api`, and the sign-in. A key or a token is never shown."""

    url: str
    key: str = field(default="", repr=False)
    scope: str = ""


def read_address(given: str | None, environment: Mapping[str, str], find_run: Callable[[], str | None]) -> Address:
    """Return the address: the option, the setting, or a local run. UsageFault says what to set."""
    key, scope = environment.get(KEY, "").strip(), environment.get(SCOPE, "").strip()
    if key and not _VISIBLE.fullmatch(key):
        raise UsageFault(f"{KEY} holds a character that no key has")
    text = given or environment.get(URL, "").strip() or find_run()
    if not text:
        raise UsageFault(
            f"which app? Set {URL} to its address, such as https://NAME.azurewebsites.net, give --url, or start one"
            " here with `make run`"
        )
    url = _url(text, f"--url {text}" if given else f"{URL}={text}")
    if (key or scope) and urlsplit(url).scheme == "http" and not _is_here(urlsplit(url).hostname or ""):
        raise UsageFault(f"{url} is not https: a key or token would cross the network in the clear")
    return Address(url, key, scope)


def find_local_run() -> str | None:
    """Return the address of a local run of this checkout, if one runs."""
    try:
        from local.running import running_address
    except ImportError:  # no files of the local run, or no POSIX
        return None
    return running_address()


def _url(text: str, named: str) -> str:
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
