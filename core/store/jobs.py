"""Jobs in SQL: the parts that replays, redrives, purges and audits share."""

import json
from datetime import UTC, datetime
from typing import Any

from core.model.jobs import JOB_MOVES, JobMove
from core.store.columns import cut, instant_text

FAULT_LENGTH = 2_000  # characters that are stored
LATEST = (datetime.max.replace(tzinfo=UTC), "~")  # after every job


def job_move_values(move: JobMove) -> dict[str, Any]:
    """Return the parameters of the compare-and-set of a job's status."""
    allowed, at = JOB_MOVES[move.move], instant_text(move.moved_at)
    entry = {"at": at, "move": move.move, "by": move.by, "why": move.why}
    return {
        "status": allowed.target,
        "sources": f",{','.join(allowed.sources)},",
        "moved_at": at,
        "fault": cut(move.fault or "", FAULT_LENGTH),
        "entry": json.dumps(entry) + "\n",
    }
