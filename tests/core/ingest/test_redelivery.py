"""Whatever order batches come in, and however often: each event has one outcome, and rows are those of one pass."""

from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InfrastructureFault
from core.ingest.gaps import GapReading
from core.ingest.ingest import Ingestion, ingest_batch
from core.model.events import Event
from core.model.rows import References
from core.settle.settle import settle
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.builders import FakeClock, batch, event, stamps
from tests.fakes.faulty_database import Fault, FaultyStore
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.fakes.one_pass import assert_equals_one_pass
from tests.fakes.plain_transform import PLAIN

BODIES = ["reading a", "double b", "quiet", "poison", "bug", "home a 0", "home a 1", "look a", "look b", "home b 1"]
BODIES += ["huge a"]  # no database takes this
COMMIT_FAULTS = [None, Fault.NOT_REACHED, Fault.UNANSWERED, Fault.LOST, Fault.RIVAL]


@dataclass(frozen=True)
class Delivery:
    """A slice of the log that reaches one of two owners: `first` says how far before the end of what is committed."""

    back: int
    length: int
    owner: int


LOGS = st.lists(st.sampled_from(BODIES), min_size=1, max_size=25).map(
    lambda bodies: [event(number, body) for number, body in enumerate(bodies)]
)
DELIVERIES = st.lists(
    st.builds(Delivery, st.integers(0, 10), st.integers(1, 12), st.integers(0, 1)), min_size=1, max_size=20
)


def committed(store: MemoryStore, log: list[Event]) -> int:
    """Return the count of committed events of the log."""
    checkpoint = store.read_partition(batch(log).partition).checkpoint
    return 0 if checkpoint is None else checkpoint.sequence_number + 1


@pytest.mark.slow
@given(LOGS, DELIVERIES, st.lists(st.sampled_from(COMMIT_FAULTS), max_size=30))
@settings(max_examples=250)
def test_any_redelivery_with_any_fault_ends_as_one_pass_would(
    log: list[Event], deliveries: list[Delivery], faults: list[Fault | None]
) -> None:
    store = MemoryStore()
    faulty = FaultyStore(store, on_commit=faults)
    owners = [faulty.remembering(timedelta(days=1), FakeClock().monotonic) for _ in range(2)]
    own = stamps()
    for delivery in [*deliveries, *[Delivery(0, len(log), 0)] * 40]:
        first = max(0, committed(store, log) - delivery.back)
        given = log[first : first + delivery.length]
        if not given:
            continue
        try:
            ingest_batch(batch(given), Ingestion(owners[delivery.owner], PLAIN, own))
        except InfrastructureFault:
            continue  # the host hands it over again
    assert_equals_one_pass(store, {"0": log})


@pytest.mark.slow
@given(LOGS, st.sets(st.integers(0, 24)), st.sets(st.integers(0, 24)), st.integers(0, 20))
@settings(max_examples=300)
def test_whatever_a_batch_lacks_comes_from_the_hub_or_is_absent(
    log: list[Event], not_in_hand: set[int], lost: set[int], beginning: int
) -> None:
    in_hand = [each for each in log if each.sequence_number not in not_in_hand and each.sequence_number >= beginning]
    if not in_hand:
        return
    store, hub = MemoryStore(), MemoryHub({"0": log})
    if beginning:
        before = batch(log[:beginning])
        ingest_batch(before, Ingestion(store, PLAIN, stamps(9), GapReading(hub)))
    hub.lose("0", *(lost & set(range(len(log)))))
    report = ingest_batch(batch(in_hand), Ingestion(store, PLAIN, stamps(), GapReading(hub)))

    def numbers(events: list[Event]) -> set[int]:
        return {each.sequence_number for each in events}

    last = in_hand[-1].sequence_number
    since = beginning or min({0} if 0 in numbers(in_hand) else {min(hub.held["0"], default=99), min(numbers(in_hand))})
    absent = (set(range(since, last + 1)) & lost) - numbers(in_hand)
    wanted = [each for each in log[: last + 1] if each.sequence_number not in absent]
    wanted = [each for each in wanted if beginning or each.sequence_number >= since]
    assert_equals_one_pass(store, {"0": wanted}, absent={"0": absent})
    assert (report.absent, report.redelivered) == (len(absent), 0)
    assert report.healed == len([each for each in wanted if each.sequence_number >= since]) - len(in_hand)
    assert [books.balanced for books in store.read_ledgers()] == [True]
    assert not [gap for gap in store.gaps() if gap.status == "open"]


@given(LOGS)
@settings(max_examples=100)
def test_every_event_of_a_batch_has_exactly_one_outcome(log: list[Event]) -> None:
    done = settle(log, References({}), PLAIN)
    written = {number for rows in done.rows.values() for number, _, _ in rows}
    lettered = [letter.event.sequence_number for letter in done.letters]
    assert done.written + done.filtered + len(lettered) == len(log)
    assert len(written) == done.written
    assert not written & set(lettered)
    assert [row_class for row_class in done.rows if row_class not in (Home, SensorReading, HomeAlert)] == []
