"""The lake's pointer: the list of files that are the aggregate at a cut. A swap replaces the whole pointer, so that no
reader sees a part of a run."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from core.aggregation.runs import NO_CUT, AggregationRun, Cut

LISTED = 256  # the most runs in a pointer; the run after them is a snapshot


@dataclass(frozen=True, slots=True)
class LakeRun:
    """One run in the lake: a folder of Parquet files that are never changed."""

    run_id: str
    number: int
    path: str


@dataclass(frozen=True, slots=True)
class Pointer:
    """The aggregate at `cut`: the windows of all `runs`; later ones add to earlier ones, or replace them."""

    job: str
    number: int
    cut: Cut
    runs: tuple[LakeRun, ...]

    def to_json(self) -> bytes:
        listed: dict[str, Any] = {**asdict(self), "cut": json.loads(self.cut)}
        return json.dumps(listed, indent=1).encode()

    @staticmethod
    def of_json(text: bytes) -> "Pointer":
        """Parse a pointer; raises ValueError or KeyError for any other text."""
        given = json.loads(text)
        cut = Cut(json.dumps(given["cut"], sort_keys=True, separators=(",", ":")))
        return Pointer(given["job"], given["number"], cut, tuple(LakeRun(**run) for run in given["runs"]))


@dataclass(frozen=True, slots=True)
class StoredPointer:
    """A pointer and the etag under which it was read."""

    pointer: Pointer
    etag: str


class Lake(Protocol):
    """Reads and swaps the lake's pointer; the jobs write the files. Every method may raise LakeUnreachable."""

    @property
    def location(self) -> str:
        """The folder or the address that jobs write to."""

    def read_pointer(self, job: str) -> StoredPointer | None:
        """Return the pointer in the lake, or None when there is none yet."""

    def swap_pointer(self, pointer: Pointer, etag: str | None) -> bool:
        """Replace the pointer with this etag (None: write the first one); False when a different one is there."""


def empty_pointer(job: str) -> Pointer:
    """Return the pointer before the first run."""
    return Pointer(job, 0, NO_CUT, ())


def pointer_after(pointer: Pointer, committed: Sequence[AggregationRun], location: str) -> Pointer:
    """Return the pointer with the committed runs that follow it, up to the first run that is not in this lake.

    A snapshot holds everything up to its run, so it needs no run before it.
    """
    for run in committed:
        if run.lake_path is None or not run.lake_path.startswith(f"{location}/"):
            continue
        listed = LakeRun(run.run_id, run.number, run.lake_path.removeprefix(f"{location}/"))
        if run.is_snapshot:
            pointer = Pointer(pointer.job, run.number, run.cut_to, (listed,))
        elif pointer.cut == run.cut_from:
            pointer = replace(pointer, number=run.number, cut=run.cut_to, runs=(*pointer.runs, listed))
    return pointer


def needs_snapshot(pointer: Pointer, run: AggregationRun) -> bool:
    """Return True when a run has to write everything: the pointer lacks runs before it, or lists too many."""
    return pointer.cut != run.cut_from or len(pointer.runs) >= LISTED
