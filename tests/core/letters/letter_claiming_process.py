"""A keeper as a separate process: `python -m tests.core.letters.letter_claiming_process DATABASE NAME`.

It claims letters, seven at a time, until it gets none, and prints those it got as JSON.
"""

import json
import sys
from itertools import count
from pathlib import Path

from core.store.sqlite.database import SqliteDatabase
from tests.fakes.builders import claim
from tests.fakes.store import Store


def main(database: str, name: str) -> None:
    """Claim one handful after the other."""
    store = Store(SqliteDatabase(Path(database), busy_timeout=30.0))
    got: list[int] = []
    turns = count()  # a claim that is sent again gets the same letters
    while some := store.claim_letters(claim(f"{name}-{next(turns)}", most=7)):
        got += [one.position.sequence_number for one in some]
    sys.stdout.write(json.dumps(got))


if __name__ == "__main__":
    main(*sys.argv[1:])
