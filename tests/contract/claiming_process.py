"""A claimer as a separate process: `python -m tests.contract.claiming_process OWNER_ID`.

It claims 200 partitions that nobody ever owned, and prints those it won as JSON.
"""

import json
import sys

from core.worker.ownership import Ownership
from tests.contract.separate import opened
from tests.fakes.builders import EPOCH, partition


def main(owner_id: str) -> None:
    """Claim one after the other."""
    store = opened()
    places = [partition(str(number)) for number in range(200)]
    claims = [Ownership(place, owner_id, owner_id, EPOCH) for place in places]
    won = [claim.partition.partition_id for claim in claims if store.claim_ownership(claim, None)]
    sys.stdout.write(json.dumps(won))


if __name__ == "__main__":
    main(*sys.argv[1:])
