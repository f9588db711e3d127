"""The proof of a demo: its figures, and every difference between the published events and the app's results."""

import json
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from local.demo.chaos import BlowKind, counted, struck_figures
from local.feed.record import Copies
from local.recount.recount import recount, recount_properties
from local.stack.app_totals import OPEN, Books, count_gaps, count_letters, count_survived

Recount = Callable[[Path, Path], list[str]]  # of a store and a record, to the differences


@dataclass(frozen=True, slots=True)
class Finished:
    """A run with every event accounted for: the published copies, the app's books, the blows and the logs."""

    published: Copies
    books: Books
    seconds: float
    struck: Counter[BlowKind]
    workers: int
    logs: list[Path]
    was_dangerous: bool = False


@dataclass(frozen=True, slots=True)
class Proof:
    """The figures in their order, and the differences. A proof without differences holds."""

    figures: dict[str, object]
    differences: list[str]


def report(proof: Proof) -> int:
    """Print the differences, and the figures as the last line. Return the exit code: 1 when there is a difference."""
    for difference in proof.differences:
        print(f"difference: {difference}", file=sys.stderr)
    print(in_words(proof))
    print(json.dumps(proof.figures), flush=True)
    return 1 if proof.differences else 0


def in_words(proof: Proof) -> str:
    found = proof.figures
    if proof.differences:
        count = len(proof.differences)
        word = "difference" if count == 1 else "differences"
        return f"NOT proved: {count:,} {word} between the events that were published and the store."
    outcomes = (("written", "written"), ("filtered", "filtered"), ("dead_lettered", "dead-lettered"), ("held", "held"))
    parts = ", ".join(f"{found[name]:,} {word}" for name, word in outcomes if found.get(name))
    return (
        f"Proved: each of {found['published']:,} events is accounted for exactly once ({parts}), in"
        f" {found['seconds']:g} s; the rows equal a recount."
    )


def prove(finished: Finished, store: Path, record: Path, recounted: Recount = recount) -> Proof:
    """Recount the store against the record, and compare the app's own books with both."""
    books, copies = finished.books, finished.published
    published = copies.at_least
    if copies.at_least != copies.at_most and books.in_hub is not None:  # an answer was lost: only the hub knows it
        published = min(max(copies.at_least, books.in_hub), copies.at_most)
    differences = recounted(store, record)
    if books.accounted != published:
        differences.append(f"status: {books.accounted} events accounted for, {published} published")
    if not books.balanced:
        differences.append("status: the app reports that its ledger is not balanced")
    letters = count_letters(store)
    waiting = sum(letters[status] for status in OPEN)
    if waiting:
        differences.append(f"letters: {waiting} are still waiting")
    gaps = count_gaps(store)
    counts = counted(finished.logs)
    if finished.struck["skip"]:  # otherwise the chaos proves nothing
        differences += [] if counts["batch_skipped"] else ["chaos: the host lost no batch"]
        differences += [] if gaps["healed"] else ["chaos: no gap was healed"]
    balanced = books.balanced and not any(one.startswith(("ledger", "checkpoint")) for one in differences)
    figures: dict[str, object] = {
        "published": published,
        "accounted": books.accounted,
        "written": books.written,
        "filtered": books.filtered,
        "dead_lettered": books.dead_lettered,
        "letters": {"resolved": letters["resolved"], "exhausted": letters["exhausted"], "waiting": waiting},
        "gaps": {"healed": gaps["healed"], "absent": gaps["absent"]},
        "redelivered_dropped": counts["redelivered"],
        "ledger_balanced": balanced,
        "seconds": round(finished.seconds, 2),
        "events_per_second": round(published / finished.seconds),
    }
    figures |= struck_figures(finished.struck, counts)
    if finished.workers:
        figures["workers"] = finished.workers
    if finished.was_dangerous:
        survived = count_survived(store)
        differences += recount_properties(store)
        differences += [f"chaos: none of {name}" for name, count in survived.items() if not count]
        figures |= survived
    return Proof(figures, differences)
