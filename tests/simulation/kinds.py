"""The kinds of trouble that worlds must meet: over enough seeds each kind occurs, or a check has gone blind."""

from collections import Counter

from tests.simulation.faults import (
    COMMITTED,
    DEATH_AFTER,
    DEATH_BEFORE,
    DEATH_INSIDE,
    NOT_COMMITTED,
    NOT_REACHED,
    STATEMENT_FAILS,
)
from tests.simulation.trouble import FROZEN, HUB_FAULTS, OUTAGE, SLOW

ENOUGH = 300  # seeds over which every kind occurs
OF_STORE = (NOT_REACHED, STATEMENT_FAILS, NOT_COMMITTED, COMMITTED, DEATH_BEFORE, DEATH_INSIDE, DEATH_AFTER)
FAULTS = (
    OUTAGE,
    SLOW,
    FROZEN,
    *(fault.kind for fault in OF_STORE),
    "death: event kills its process",
    "death: killed from outside",
    *HUB_FAULTS,
    "hub: recreated",
    "hub: recreated and empty",
    "hub: swapped",
    "hub: swapped for an empty one",
    "hub: swapped amid a call",
    "hub: given back",
    "hub: retention",
    "hub: retention took unread events",
    "host: batch lost before the app saw it",
    "host: failed batch lost",
    "host: failed batch retried",
    "host: failed batch passed after its retries",
    "host: shut down between retries",
    "host: stands at an event",
    "host: checkpoint lifted",
    "host: events redelivered",
    "host: owner changed",
    "host: two owners at once",
    "keeper: chunks purged",
    "keeper: chunk run again",
    "clock: jump",
    "deployment",
    *(
        f"operator: {act}"
        for act in ("requeue", "discard", "replay", "replay by key", "dry run", "pause", "resume", "cancel")
    ),
    "operator: next incarnation",
    *(f"event: {one}" for one in ("poison", "bug", "refused row", "missing reference", "kills its process")),
)
ANSWERS = (
    "batches",
    "redelivered events dropped",
    "healed events",
    "absent numbers",
    "events isolated as crash",
    "gaps at the end healed",
    "batches held by the fuse",
    "batches stopped at a different hub",
    "tasks held at a different hub",
    "reads refused at a different hub",
    "events found",
    "events gone",
    *(f"letters {one}" for one in ("resolved", "waiting", "exhausted", "released", "lost")),
    "events held",
    "held letters freed",
    "batches stopped by too many held letters",
    "pieces replayed",
)


def missing(counts: Counter[str]) -> list[str]:
    """Return the kinds that never occurred."""
    return [kind for kind in (*FAULTS, *ANSWERS) if not counts[kind]]


def table(counts: Counter[str]) -> str:
    """Return the counts of all kinds, one a line; a kind that is in no list is a fault of this module."""
    unknown = set(counts) - {*FAULTS, *ANSWERS}
    assert not unknown, f"kinds that no list has: {unknown}"
    lines = [f"  {counts[kind]:>10,}  {kind}" for kind in FAULTS]
    return "\n".join(["injected:", *lines, "answered:", *(f"  {counts[kind]:>10,}  {kind}" for kind in ANSWERS)])
