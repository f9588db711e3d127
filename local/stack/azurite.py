"""Azurite, Microsoft's emulator of storage accounts, in its own process on free ports."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.programs import APP

# The default name and key of Azurite, as Microsoft documents them. They open nothing else.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
LISTENS = re.compile(r"Azurite (Blob|Queue|Table) service is successfully listening at (http://127\.0\.0\.1:\d+)")
DEADLINE_S = 30.0


class AzuriteFailed(Exception):
    """Azurite is not installed, or did not start."""


def command() -> str | None:
    """Return the command of AZURITE, of `make azurite` or of the PATH, or None without any."""
    installed = APP / ".venv" / "azurite" / "node_modules" / ".bin" / "azurite"
    named = os.environ.get("AZURITE") or (str(installed) if installed.exists() else None)
    return named or shutil.which("azurite")


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Run a storage account whose content is in a folder. Yield its connection string."""
    found = command()
    if found is None:
        raise AzuriteFailed("Azurite is not installed: `make azurite` does it, with npm")
    log = folder / "azurite.out"
    options = [f"--{kind}{what}" for kind in ("blob", "queue", "table") for what in ("Host=127.0.0.1", "Port=0")]
    options += ["--location", str(folder), "--disableTelemetry", "--skipApiVersionCheck"]
    with log.open("wb") as output:
        process = subprocess.Popen([found, *options], stdout=output, stderr=subprocess.STDOUT)
    try:
        endpoints = "".join(
            f"{kind}Endpoint={address}/{ACCOUNT};" for kind, address in _addresses(log, process).items()
        )
        yield f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};{endpoints}"
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


def _addresses(log: Path, process: "subprocess.Popen[bytes]") -> dict[str, str]:
    deadline = time.monotonic() + DEADLINE_S
    while len(found := dict(LISTENS.findall(log.read_text()))) < 3:
        if process.poll() is not None or time.monotonic() > deadline:
            raise AzuriteFailed(f"Azurite did not get ready: {log.read_text()}")
        time.sleep(0.05)
    return found
