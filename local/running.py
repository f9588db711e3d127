"""The address of a run of this checkout that is running now, for who wants to talk to its app."""

from collections.abc import Iterator
from pathlib import Path

from local.folders import LOCAL_RUN, is_in_use

HOST_READY = "functions host ready on "  # the line of a host, before its address


def running_address(root: Path = LOCAL_RUN) -> str | None:
    """Return the address of `make run`, else of the newest demo or `make serve`; None if none runs."""
    demos = sorted((root / "demo").glob("run-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    folders = [root, *sorted((root / "run").glob("*")), *demos]
    found = (address for folder in folders if is_in_use(folder) for address in _addresses(folder))
    return next(found, None)


def _addresses(folder: Path) -> Iterator[str]:
    """Yield the addresses that the hosts of a folder have printed, the newest first."""
    for output in sorted(folder.glob("host-*.out"), key=lambda path: path.stat().st_mtime, reverse=True):
        for line in output.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(HOST_READY):
                yield line.rpartition(" ")[2].rstrip("/")
