"""Azurite, Microsoft's storage emulator, from npm: installed into a folder of its own, on a port of its own."""

import base64
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ACCOUNT = "devstoreaccount1"
KEY = base64.b64encode(b"a key that only this test's Azurite knows, of sixty-four octets!").decode()
SECONDS = 120.0


def lacking() -> str | None:
    """What is missing for it, in one line."""
    return None if shutil.which("npm") and shutil.which("node") else "npm is missing: apt-get install npm"


@contextmanager
def azurite(folder: Path) -> Iterator[tuple[str, str]]:
    """Its blobs' address and a connection string. RuntimeError when npm cannot install it."""
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), "azurite@3.35.0"]
    done = subprocess.run(install, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"npm could not install azurite: {done.stderr.strip().splitlines()[-1:]}")
    command = [str(folder / "node_modules" / ".bin" / "azurite-blob"), "--blobHost", "127.0.0.1", "--blobPort", "0"]
    command += ["--location", str(folder / "blobs"), "--silent", "--disableTelemetry", "--skipApiVersionCheck"]
    log = folder / "azurite.log"
    with log.open("wb") as out:
        running = subprocess.Popen(command, stdout=out, stderr=out, env=_environment())
    try:
        address = f"http://127.0.0.1:{_port(running, log)}/{ACCOUNT}"
        named = f"AccountName={ACCOUNT};AccountKey={KEY}"
        yield address, f"DefaultEndpointsProtocol=http;{named};BlobEndpoint={address};"
    finally:
        running.terminate()
        running.wait()


def _environment() -> dict[str, str]:
    node = str(Path(shutil.which("node") or "").parent)
    return {"PATH": f"{node}:/usr/bin:/bin", "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}


def _port(running: "subprocess.Popen[bytes]", log: Path) -> str:
    deadline = time.monotonic() + SECONDS
    while True:
        found = re.search(r"listens on http://127\.0\.0\.1:(\d+)", log.read_text(errors="replace"))
        if found:
            return found[1]
        if running.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"azurite did not start: {log.read_text(errors='replace')[-500:]}")
        time.sleep(0.05)
