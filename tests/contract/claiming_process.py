"""A claimer as a process of its own: `python -m tests.contract.claiming_process DATABASE OWNER_ID`.

It claims 200 partitions that nobody ever owned, and prints those it won as JSON.
"""

import json
import sys
from pathlib import Path

from core.ownership import Ownership, OwnershipClaim
from core.store.sqlite import SqliteStore
from tests.fakes.builders import EPOCH, partition


def main(database: str, owner_id: str) -> None:
    """Claim one after the other."""
    store = SqliteStore(Path(database), busy_timeout=30.0)
    places = [partition(str(number)) for number in range(200)]
    claims = [OwnershipClaim(Ownership(place, owner_id, owner_id, EPOCH), None) for place in places]
    won = [claim.ownership.partition.partition_id for claim in claims if store.claim_ownership(claim)]
    sys.stdout.write(json.dumps(won))


if __name__ == "__main__":
    main(*sys.argv[1:])
