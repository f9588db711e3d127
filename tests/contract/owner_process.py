"""An owner as a separate process: `python -m tests.contract.owner_process FIRST_SEED BATCHES SIZE`.

It ingests the batches of partition 0 one after another and prints the number of each one that it is done with.
"""

import sys

from core.errors import CheckpointConflict
from core.ingest.gaps import NO_GAP_READING, GapReading
from core.ingest.ingest import Ingestion, ingest_batch
from core.model.events import EventBatch
from core.model.ports import Clock
from tests.contract.separate import opened
from tests.fakes.builders import PATIENCE, batch, events, stamps
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import Store


def main(seed: str, batches: str, size: str) -> None:
    """Go through all batches; what another owner commits meanwhile is dropped by the guard."""
    store, own = opened().patient(PATIENCE), stamps(int(seed))
    length = int(size)
    for number in range(int(batches)):
        handed_over(batch(events(number * length, number * length + length - 1, "double home-1")), store, own)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


def handed_over(given: EventBatch, store: Store, own: Clock, gap_reading: GapReading = NO_GAP_READING) -> None:
    """Ingest a batch as the host has it ingested: where others won too many times in a row, once more."""
    while True:
        try:
            ingest_batch(given, Ingestion(store, PLAIN, own, gap_reading))
            return
        except CheckpointConflict:
            continue


if __name__ == "__main__":
    main(*sys.argv[1:])
