"""The app's address and the sign-in: from the environment, from a context of `use`, or with a token of Entra."""

import ipaddress
import json
import logging
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from hubledger.cli.output import Refused, UsageFault, program


@dataclass(frozen=True, slots=True)
class Address:
    """An app: its address without `/api`, and the key or the scope of a sign-in. A key or a token is never shown."""

    url: str
    key: str = field(default="", repr=False)
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts by name, and the name of the current one."""

    known: Mapping[str, Address] = field(default_factory=dict)
    current: str = ""


def contexts_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file in the user's folder of settings."""
    base = environment.get("APPDATA") if sys.platform == "win32" else environment.get("XDG_CONFIG_HOME")
    home = Path(environment.get("HOME") or "~").expanduser()
    return (Path(base) if base else home / ".config") / "hubledger" / "contexts.json"


def read_contexts(path: Path) -> Contexts:
    """Return the contexts of a file, if it exists. Raises Refused when others may read it, or it cannot be read."""
    if not path.exists():
        return Contexts()
    if sys.platform != "win32" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise Refused(f"{path} holds keys, and others may read it: chmod 600 {path}")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        known = {str(name): Address(**given) for name, given in found["known"].items()}
        return Contexts(known, str(found["current"]))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Refused(f"{path} is no file of contexts ({error}): mend it, or delete it") from error


def write_contexts(path: Path, contexts: Contexts) -> None:
    """Replace the file at once, so that nobody sees half of it. Only its user may read it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = json.dumps(
        {"known": {name: asdict(one) for name, one in contexts.known.items()}, "current": contexts.current}
    )
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".contexts-")  # mkstemp gives 0600
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(name).replace(path)


URL, KEY, SCOPE = "HUBLEDGER_URL", "HUBLEDGER_KEY", "HUBLEDGER_SCOPE"
_VISIBLE = re.compile(r"[!-~]+")


def read_address(
    given: str | None,
    environment: Mapping[str, str],
    find_run: Callable[[], str | None],
    chosen: Address | None = None,
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
    host, is_here = urlsplit(url).hostname or "", False
    with suppress(ValueError):
        is_here = host == "localhost" or ipaddress.ip_address(host).is_loopback
    if (key or scope) and urlsplit(url).scheme == "http" and not is_here:
        raise UsageFault(f"{named}: it is not https, so a key or token would cross the network in the clear")
    return Address(url, key, scope)


def find_local_run() -> str | None:
    """Return the address of a local run of this checkout, if one runs."""
    try:
        from local.stack.folders import running_address
    except ImportError:  # no files of the local run, or no POSIX
        return None
    return running_address()


def checked_url(text: str, named: str) -> str:
    """Return an address without `/api`. `named` is its name in a UsageFault, for a text that is no address."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise UsageFault(f"{named}: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageFault(f"{named}: an address begins with https:// and a name")
    if "@" in parts.netloc:
        raise UsageFault("the address holds a name or a password: leave them out")
    if parts.query or parts.fragment:
        raise UsageFault(f"the address has a ? or a #: give the app's address alone, and the key in {KEY}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = parts.path.rstrip("/").removesuffix("/api")
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{path}"


EARLY = 300  # seconds before its end, a token is replaced


def tokens_for(scope: str) -> Callable[[], str]:
    """Return a source of tokens: Azure CLI, environment, managed identity, in the order of DefaultAzureCredential."""
    from azure.core.exceptions import ClientAuthenticationError
    from azure.identity import DefaultAzureCredential

    logging.getLogger("azure").setLevel(logging.CRITICAL)  # its warnings repeat the error
    credential, found = DefaultAzureCredential(), ("", 0.0)

    def token() -> str:
        nonlocal found
        if time.time() > found[1] - EARLY:
            try:
                given = credential.get_token(scope)
            except ClientAuthenticationError as error:
                first = str(error).partition("\n")[0]
                raise UsageFault(f"HUBLEDGER_SCOPE={scope}: no token ({first}): sign in with `az login`") from None
            found = (given.token, given.expires_on)
        return found[0]

    return token
