"""The folders of local runs: one that stays for `run`, a new one for each `demo`; a lock marks those in use."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.processes import APP

LOCAL_RUN = APP / ".local-run"
_LOCK = "lock"


class FolderInUse(Exception):
    """A different run uses the folder."""


@contextmanager
def kept_folder(folder: Path) -> Iterator[Path]:
    """Lock a folder whose content stays; FolderInUse when a different run uses it."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = _lock(folder)
    if lock is None:
        raise FolderInUse(f"another run uses {folder}: end that one first")
    try:
        yield folder
    finally:
        os.close(lock)


@contextmanager
def fresh_folder(parent: Path) -> Iterator[Path]:
    """Make and lock a new folder under a parent; remove the folders of ended runs, but not those in use."""
    parent.mkdir(parents=True, exist_ok=True)
    for old in parent.iterdir():
        _remove_unused(old)
    with kept_folder(Path(tempfile.mkdtemp(prefix="run-", dir=parent.resolve()))) as folder:
        yield folder


def is_in_use(folder: Path) -> bool:
    """Return whether a run uses the folder now."""
    if not (folder / _LOCK).exists():
        return False
    lock = _lock(folder)
    if lock is not None:
        os.close(lock)
    return lock is None


def _remove_unused(folder: Path) -> None:
    lock = _lock(folder)
    if lock is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _lock(folder: Path) -> int | None:
    """Lock a folder; None when it is in use. The kernel releases the lock when the process ends."""
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
