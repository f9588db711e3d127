"""The machine and the code of a measurement: models and versions, and no name of a host, a person or a path."""

import os
import platform
import re
import resource
import sqlite3
import subprocess
import traceback
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("azure-eventhub", "azure-functions", "azure-functions-durable")
WRITTEN = ("bench/results.json", "docs", "README.md", "CHANGELOG.md")  # no code: a run writes some of them
_MODEL = re.compile(r"^model name\s*:\s*(.+)$", re.MULTILINE)
_PLACE = re.compile(r"(?<![\w.:/])(?:/[\w.@+~-]+)+/([\w.@+~-]*)")


def machine() -> dict[str, str | int]:
    """Return what a reader needs to know of the machine. An unknown value is missing."""
    found: dict[str, str | int] = {"processor": _processor(), "cores": cores()}
    if "SC_PHYS_PAGES" in os.sysconf_names:
        found["memory_mb"] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    found |= {
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def commit(root: Path = ROOT) -> tuple[str, bool | None]:
    """Return the commit's name, and whether the code differs from it, or "unknown" and None without git."""
    name = _git(root, "describe", "--always", "--tags")
    changed = _git(root, "status", "--porcelain", "--", ".", *(f":(exclude){path}" for path in WRITTEN))
    return (name or "unknown", None if name is None or changed is None else bool(changed))


def load() -> float:
    """Return the mean number of runnable processes over the last minute."""
    return round(os.getloadavg()[0], 2)


def busy_seconds() -> float:
    """Return the seconds that all cores together have worked since this machine started, or 0 if unknown."""
    try:
        fields = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0].split()
    except OSError:
        return 0.0
    user, nice, system, _, _, *interrupts = map(int, fields[1:9])
    return sum((user, nice, system, *interrupts)) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Return the processor's time of all processes that this one started, and they in turn, and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def fault_text(error: BaseException) -> str:
    """Return an error as one line, with the place in our code that raised it, without the folders of this machine."""
    lines = str(error).splitlines() or [""]
    text = without_folders(f"{type(error).__name__}: {lines[0]}".removesuffix(": "))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(ROOT)]
    ours = [frame for frame in frames if ".venv" not in frame.filename]
    return f"{text} ({Path(ours[-1].filename).relative_to(ROOT)}:{ours[-1].lineno})" if ours else text


def without_folders(text: str) -> str:
    """Return a text in which an absolute path is its last name only."""
    return _PLACE.sub(r"\1", text)


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _processor() -> str:
    try:
        model = _MODEL.search(Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        model = None
    return model[1].strip() if model else platform.machine()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
