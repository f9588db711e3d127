"""Whatever events the database refuses, however batches are cut: they are letters, the others are as in one pass."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InfrastructureFault
from core.ingest.ingest import Ingestion, ingest_batch
from tests.fakes.builders import batch, event, stamps
from tests.fakes.faulty_database import Fault, FaultyStore
from tests.fakes.memory_store import MemoryStore
from tests.fakes.one_pass import assert_equals_one_pass
from tests.fakes.plain_transform import PLAIN, is_refused

GOOD, BAD = ["reading a", "double b", "quiet", "poison", "home a 1", "look a"], ["huge a", "huge b"]
BODIES = st.one_of(st.sampled_from(GOOD), st.sampled_from(GOOD), st.sampled_from(BAD))
FAULTS = st.lists(st.sampled_from([None, None, Fault.UNANSWERED, Fault.LOST, Fault.RIVAL]), max_size=40)


@pytest.mark.slow
@given(st.lists(BODIES, min_size=1, max_size=80), st.integers(1, 80), FAULTS)
@settings(max_examples=250)
def test_refused_events_are_letters_and_the_others_are_committed(
    bodies: list[str], length: int, faults: list[Fault | None]
) -> None:
    log = [event(number, body) for number, body in enumerate(bodies)]
    store = MemoryStore()
    faulty, own = FaultyStore(store, on_commit=faults), stamps()
    for first in range(0, len(log), length):
        for _ in range(20):
            try:
                ingest_batch(batch(log[first : first + length]), Ingestion(faulty, PLAIN, own))
                break
            except InfrastructureFault:
                continue  # the host hands it over again
    assert_equals_one_pass(store, {"0": log})
    letters = [kept.sequence_number for kept in store.letters() if kept.error_class == "refused"]
    assert letters == [each.sequence_number for each in log if is_refused(each)]
