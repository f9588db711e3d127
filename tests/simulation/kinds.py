"""The kinds of trouble that worlds must meet: over enough seeds each kind occurs, or a check has gone blind."""

from collections import Counter

from tests.simulation.faults import OF_SCRIPTS
from tests.simulation.trouble import FROZEN, HUB_FAULTS, OUTAGE, SLOW

ENOUGH = 300  # seeds over which every kind occurs
OF_OTHERS = {
    "death": "event kills its process, killed from outside",
    "hub": "recreated, recreated and empty, swapped, swapped for an empty one, swapped amid a call, given back,"
    " retention, retention took unread events",
    "host": "batch lost before the app saw it, failed batch lost, failed batch retried,"
    " failed batch passed after its retries, shut down between retries, stands at an event, checkpoint lifted,"
    " events redelivered, owner changed, two owners at once",
    "keeper": "chunks purged, chunk run again",
    "clock": "jump",
    "operator": "requeue, discard, replay, replay by key, dry run, pause, resume, cancel, next incarnation",
    "event": "poison, bug, refused row, missing reference, kills its process",
}
FAULTS = (
    *(OUTAGE, SLOW, FROZEN, *HUB_FAULTS, "deployment"),
    *(fault.kind for fault in OF_SCRIPTS),
    *(f"{who}: {act}" for who, acts in OF_OTHERS.items() for act in acts.split(", ")),
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
