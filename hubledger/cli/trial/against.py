"""The difference between two transforms: the dry run of a replay with the new one of what the old one ingested."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from core.model.transforms import Transform
from core.replay.pieces import ReplayCounts
from core.replay.store import Replays
from core.replay.task import ReplayKind
from core.store.database import Database
from hubledger.cli.lines import EventFile
from hubledger.cli.trial.run import CLOCK
from local.trials.replay_identity import STREAM, TrialLog, replay_all


@dataclass(frozen=True, slots=True)
class Difference:
    """The counts of a dry run, and the changes of the first events that it would change, by line."""

    counts: ReplayCounts
    changes: tuple[tuple[int, dict[str, Any]], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the values in the form that JSON holds."""
        return {"counts": asdict(self.counts), "events": [{"line": line, **change} for line, change in self.changes]}


def difference(file: EventFile, events: int, database: Database, transform: Transform, limit: int) -> Difference:
    """Rehearse a replay of a file, of which the database has the rows of a different transform."""
    store = Replays(database)
    means = ReplayKind(STREAM, store, TrialLog(lambda: file, events), transform, CLOCK)
    job_id = replay_all(means, is_dry_run=True)
    job = store.find_replay(job_id)
    found = store.read_replay_diffs(job_id, None, limit)
    return Difference(
        ReplayCounts() if job is None else job.counts,
        tuple((file.line_of(one.sequence_number), json.loads(one.diff)) for one in found),
    )
