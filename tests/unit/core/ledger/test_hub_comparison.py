"""core/ledger/hub_comparison.py: the audit names a hub that is not the one that the stream was read from."""

from datetime import datetime, timedelta

from core.ledger.hub_comparison import incarnation_faults
from core.model.events import Incarnation
from tests.fakes.builders import EPOCH, commit, event, events, partition
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore

CREATED = EPOCH - timedelta(days=1)


def fault(hub: MemoryHub, stored: datetime | None = CREATED) -> str | None:
    """Audit a partition that is committed up to 9."""
    store = MemoryStore()
    store.commit_batch(commit(store.read_partition(partition()), 0, 9))
    found = next(incarnation_faults([store.read_partition(partition())], Incarnation(1, 1, EPOCH, stored), hub), None)
    assert found is None or (found.kind, found.first, found.last) == ("hub", 9, 9)
    return None if found is None else found.detail


def test_the_hub_of_the_stream_is_no_fault() -> None:
    assert fault(MemoryHub({"0": events(0, 12)})) is None
    assert fault(MemoryHub({"0": events(0, 12)}), stored=None) is None


def test_a_hub_that_was_created_at_a_different_time_is_named() -> None:
    hub = MemoryHub({"0": events(0, 12)})
    hub.recreate_hub(EPOCH)
    assert "the hub was created at" in (fault(hub) or "")


def test_a_different_event_at_the_checkpoint_is_named() -> None:
    log = [event(number, at=EPOCH + timedelta(hours=1)) for number in range(12)]
    assert "the hub's event 9 was enqueued at" in (fault(MemoryHub({"0": log})) or "")


def test_an_event_of_the_checkpoint_that_retention_has_cut_is_no_fault() -> None:
    hub = MemoryHub({"0": events(0, 12)})
    hub.expire_before("0", 11)
    assert fault(hub) is None


def test_a_partition_without_a_checkpoint_is_not_compared() -> None:
    hub = MemoryHub({"0": []})
    state = MemoryStore().read_partition(partition())
    assert list(incarnation_faults([state], None, hub)) == []
    assert hub.asked == []
