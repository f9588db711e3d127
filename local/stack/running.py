"""The address of a run of this checkout that is running now, for who wants to talk to its app."""

from collections.abc import Iterator
from pathlib import Path

from local.stack.folders import LOCAL_RUN, is_in_use

HOST_READY = "functions host ready on "  # the line of a host, before its address


def running_address(root: Path = LOCAL_RUN) -> str | None:
    """Return the address of `make run`, else of the newest demo or `make serve`; None if none runs."""
    return next((address for address, _ in _running(root)), None)


def running_log(address: str, root: Path = LOCAL_RUN) -> Path | None:
    """Return the log of the running host at an address; None if none runs there."""
    return next((output.with_suffix(".log") for each, output in _running(root) if each == address), None)


def _running(root: Path) -> Iterator[tuple[str, Path]]:
    """Give the address and the output of each host of a running run, the newest first."""
    demos = sorted((root / "demo").glob("run-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    folders = [root, *sorted((root / "run").glob("*")), *demos]
    return (found for folder in folders if is_in_use(folder) for found in _addresses(folder))


def _addresses(folder: Path) -> Iterator[tuple[str, Path]]:
    """Give the addresses that the hosts of a folder have printed, the newest first, and where."""
    for output in sorted(folder.glob("host-*.out"), key=lambda path: path.stat().st_mtime, reverse=True):
        for line in output.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(HOST_READY):
                yield line.rpartition(" ")[2].rstrip("/"), output
