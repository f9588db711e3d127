"""The folders of local runs: one that stays for `run`, a new one for each `demo`. A lock marks those in use.

The output of its hosts in a folder tells the address of a run that is running now, for who wants to talk to its app.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.programs import APP

LOCAL_RUN = APP / ".local-run"
_LOCK = "lock"
_FRESH = "run-"  # what the names of fresh folders begin with


class FolderRefused(Exception):
    """A folder cannot hold the files of a local run. The message says why, and what to do."""


class FolderInUse(FolderRefused):
    """A different run uses the folder."""


@contextmanager
def kept_folder(folder: Path) -> Iterator[Path]:
    """Lock a folder whose content stays. Raises FolderRefused when it cannot be written, or a different run uses it."""
    with _refusing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _LOCK).touch(mode=0o600)
    lock = _lock(folder)
    if lock is None:
        raise FolderInUse(f"another run uses {folder}: end that one first")
    try:
        yield folder
    finally:
        os.close(lock)


@contextmanager
def fresh_folder(parent: Path) -> Iterator[Path]:
    """Make and lock a new folder under a parent. Remove the folders of ended runs, but not those in use."""
    with _refusing(parent):
        parent.mkdir(parents=True, exist_ok=True)
        for old in parent.glob(f"{_FRESH}*"):
            if (lock := _lock(old)) is not None:
                shutil.rmtree(old, ignore_errors=True)
                os.close(lock)
        made = Path(tempfile.mkdtemp(prefix=_FRESH, dir=parent.resolve()))
    with kept_folder(made) as folder:
        yield folder


@contextmanager
def _refusing(folder: Path) -> Iterator[None]:
    """Raise FolderRefused, which is one line, where the block cannot write below a folder."""
    try:
        yield
    except OSError as error:
        raise FolderRefused(
            f"{folder} cannot be written ({error.strerror}): choose a different folder, or change its rights"
        ) from error


def is_in_use(folder: Path) -> bool:
    if not (folder / _LOCK).exists():
        return False
    lock = _lock(folder)
    if lock is not None:
        os.close(lock)
    return lock is None


def _lock(folder: Path) -> int | None:
    """Return the lock of a folder, or None when it is in use. The kernel releases the lock when the process ends."""
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:  # not a folder, or a different demo removed it just now
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


HOST_READY = "functions host ready on "  # the line of a host, before its address


def running_address(root: Path = LOCAL_RUN) -> str | None:
    """Return the address of `make run`, else of the newest demo or `make serve`, or None if none runs."""
    return next((address for address, _ in _running(root)), None)


def running_log(address: str, root: Path = LOCAL_RUN) -> Path | None:
    """Return the log of the running host at an address, or None if none runs there."""
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
