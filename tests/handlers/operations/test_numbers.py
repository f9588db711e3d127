"""handlers/operations/ledger.py: the rows of a number in JSON that JavaScript reads without loss."""

from core.model.events import PartitionId
from examples.home_security.transform import HomeAlert
from handlers.app import app
from tests.fakes.builders import EPOCH, commit, settled
from tests.handlers.running import Running

LARGEST = 2**53 - 1  # that JavaScript keeps


def test_a_whole_number_that_javascript_would_round_is_a_text(running: Running) -> None:
    own = app()
    state = own.core.ingestion.store.read_partition(own.settings.stream.partition(PartitionId("1")))
    alerts = [HomeAlert("h", "s", "motion", ppm, EPOCH) for ppm in (LARGEST, LARGEST + 1, -LARGEST - 1)]
    own.core.ingestion.store.commit_batch(commit(state, 0, 0, settled({0: alerts})))
    rows = running.get("reveal_number", {"partition_id": "1", "sequence_number": "0"}).body["rows"]
    assert [row["columns"]["ppm"] for row in rows] == [LARGEST, str(LARGEST + 1), str(-LARGEST - 1)]
