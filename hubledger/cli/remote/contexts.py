"""Contexts: apps by name, each with its address and sign-in, in a file that only its user reads."""

import json
import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hubledger.cli.console import Refused


@dataclass(frozen=True, slots=True)
class Context:
    """An app: its address, and the key or the scope with which a person signs in. The key is never shown."""

    url: str
    key: str = field(default="", repr=False)
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts by name, and the name of the current one."""

    known: Mapping[str, Context] = field(default_factory=dict)
    current: str = ""


def contexts_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file in the user's folder of settings."""
    base = environment.get("APPDATA") if sys.platform == "win32" else environment.get("XDG_CONFIG_HOME")
    home = Path(environment.get("HOME") or "~").expanduser()
    return (Path(base) if base else home / ".config") / "hubledger" / "contexts.json"


def read_contexts(path: Path) -> Contexts:
    """Return the contexts of a file; none without the file. Refused when others may read it, or it cannot be read."""
    if not path.exists():
        return Contexts()
    if sys.platform != "win32" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise Refused(f"{path} holds keys, and others may read it: chmod 600 {path}")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        known = {str(name): Context(**given) for name, given in found["known"].items()}
        return Contexts(known, str(found["current"]))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Refused(f"{path} is no file of contexts ({error}): mend it, or delete it") from error


def write_contexts(path: Path, contexts: Contexts) -> None:
    """Replace the file at once, so that nobody sees half of it; only its user may read it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = json.dumps(
        {"known": {name: asdict(one) for name, one in contexts.known.items()}, "current": contexts.current}
    )
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".contexts-")  # mkstemp gives 0600
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(name).replace(path)
