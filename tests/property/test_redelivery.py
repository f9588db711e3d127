"""Whatever order batches come in, and however often: each event has one outcome, and rows are those of one pass."""

from dataclasses import dataclass
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InfrastructureFault
from core.events import Event
from core.ingest import ingest_batch
from core.rows import References
from core.settle import settle
from core.store.remembered import RememberingStore
from core.transforms.home_security import Home, HomeAlert, SensorReading
from tests.fakes.builders import FakeClock, batch, event, stamps
from tests.fakes.faulty_store import Fault, FaultyStore
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
    """How many events of the log are committed."""
    checkpoint = store.read_partition(batch(log).partition).checkpoint
    return 0 if checkpoint is None else checkpoint.sequence_number + 1


@given(LOGS, DELIVERIES, st.lists(st.sampled_from(COMMIT_FAULTS), max_size=30))
@settings(max_examples=250)
def test_any_redelivery_with_any_fault_ends_as_one_pass_would(
    log: list[Event], deliveries: list[Delivery], faults: list[Fault | None]
) -> None:
    store = MemoryStore()
    faulty = FaultyStore(store, on_commit=faults)
    owners = [RememberingStore(faulty, timedelta(days=1), FakeClock().monotonic) for _ in range(2)]
    own = stamps()
    for delivery in [*deliveries, *[Delivery(0, len(log), 0)] * 40]:
        first = max(0, committed(store, log) - delivery.back)
        given = log[first : first + delivery.length]
        if not given:
            continue
        try:
            ingest_batch(batch(given), owners[delivery.owner], PLAIN, own)
        except InfrastructureFault:
            continue  # the host hands it over again
    assert_equals_one_pass(store, {"0": log})


@given(st.permutations(range(6)), st.integers(1, 5), st.data())
@settings(max_examples=100)
def test_overlapping_batches_in_any_order_never_give_an_event_twice(
    order: list[int], length: int, data: st.DataObject
) -> None:
    log = [event(number, data.draw(st.sampled_from(BODIES))) for number in range(6 + length)]
    store = MemoryStore()
    for first in order:
        ingest_batch(batch(log[first : first + length]), store, PLAIN, stamps(first))
    outcomes = [number for kept in store.ledger() for number in range(kept.first, kept.last + 1)]
    assert outcomes == sorted(set(outcomes))
    rows = [kept for each in (SensorReading, HomeAlert) for kept in store.rows(each)]
    assert len({(type(kept.row), kept.sequence_number) for kept in rows}) == len(rows)


@given(LOGS, st.sets(st.integers(0, 24)))
@settings(max_examples=100)
def test_a_batch_with_any_holes_accounts_for_exactly_what_it_holds(log: list[Event], holes: set[int]) -> None:
    present = [each for each in log if each.sequence_number not in holes]
    if not present:
        return
    store = MemoryStore()
    report = ingest_batch(batch(present), store, PLAIN, stamps())
    numbers = [each.sequence_number for each in present]
    assert [number for kept in store.ledger() for number in range(kept.first, kept.last + 1)] == numbers
    missing = {number for gap in report.gaps for number in range(gap.first, gap.last + 1)}
    assert missing == set(range(numbers[0], numbers[-1] + 1)) - set(numbers)
    (books,) = store.read_ledgers()
    assert books.balanced == (not missing)


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
