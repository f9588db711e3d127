"""The processor's time and the memory of a process, from /proc."""

import os
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
READABLE = Path(PROC, "self", "stat").exists()
PAGE = os.sysconf("SC_PAGE_SIZE")
TICK = os.sysconf("SC_CLK_TCK")


def cpu_of(pid: int) -> float:
    """Return the seconds of the processor that a running process has used. Raises OSError when it has ended."""
    fields = _read(pid, "stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def resident_of(pid: int) -> int:
    """Return the resident bytes of a running process. Raises OSError when it has ended."""
    return int(_read(pid, "statm").split()[1]) * PAGE


def peak_of(pid: int) -> float:
    """Return the MB of a running process at its peak. Raises OSError when it has ended."""
    return next((int(line.split()[1]) / 1024 for line in _read(pid, "status").splitlines() if "VmHWM" in line), 0.0)


def family(pid: int) -> list[int]:
    """Return a process and the ones that it has started, and theirs."""
    found = [pid]
    for each in found:
        for tasks in Path(PROC, str(each), "task").glob("*/children"):
            with suppress(OSError):  # the thread has ended
                found += map(int, tasks.read_text(encoding="utf-8").split())
    return found


def _read(pid: int, name: str) -> str:
    return Path(PROC, str(pid), name).read_text(encoding="utf-8")
