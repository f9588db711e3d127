"""An owner as a process of its own: `python -m tests.contract.owner_process DATABASE FIRST_SEED BATCHES SIZE`.

It ingests the batches of partition 0 one after another and prints the number of each one that it is done with.
"""

import sys
from pathlib import Path

from core.ingest import ingest_batch
from core.store.sqlite import SqliteStore
from tests.fakes.builders import batch, events, stamps
from tests.fakes.plain_transform import PLAIN


def main(database: str, seed: str, batches: str, size: str) -> None:
    """Go through all batches; what another owner commits meanwhile is dropped by the guard."""
    store, own = SqliteStore(Path(database), busy_timeout=30.0), stamps(int(seed))
    length = int(size)
    for number in range(int(batches)):
        given = batch(events(number * length, number * length + length - 1, "double home-1"))
        ingest_batch(given, store, PLAIN, own)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
