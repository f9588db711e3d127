"""Count the plans that the app's batches cost a server: each pair of a text and its parameters' types is a plan.

The driver is Microsoft's, and the server is tests/fakes/tds_server.py: it sees the types that the driver declares.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from random import Random

import pytest

from core.ingest.ingest import Ingestion, ingest_batch
from core.letters.listing import FIRST_PAGE, LetterChoice, LetterListing
from core.model.events import Event, EventBatch, PartitionId, SequenceNumber
from core.model.transforms import Transform
from core.store.database import OneStream
from core.store.memory import Memory
from core.store.sqlserver.database import SqlServerDatabase
from examples.home_security import transform as home_security
from local.feed.businesses import HOMES
from local.feed.planned_events import FIRST_INSTANT
from tests.fakes.builders import STREAM, FakeClock, stamps
from tests.fakes.store import Store
from tests.fakes.tds_server import PREPARE_AND_EXECUTE, TdsServer
from tests.sql.values import EPOCH

HOMES_OF_THE_FEED, SEED = 100, 7
TRANSFORM = Transform(home_security.VERSION, home_security.transform, home_security.references)
FAR_NUMBER = 2**31 - 400  # the partition's numbers outgrow an int on the way


@pytest.fixture
def server() -> Iterator[TdsServer]:
    serving = TdsServer()
    serving.state.stream_id = 1
    yield serving
    serving.close()


@pytest.fixture
def store(server: TdsServer, driver_name: str) -> Iterator[Store]:
    opened = Store(SqlServerDatabase(server.connection_string(driver_name)), Memory(timedelta(seconds=600)))
    yield opened
    opened.close()


def fed() -> Iterator[tuple[str | None, bytes]]:
    """Yield the partition keys and the bodies of the feed's events, without end."""
    for minute in HOMES.story(HOMES_OF_THE_FEED, None, SEED, FIRST_INSTANT, None):
        yield from [(minute.partition_key, one.body) for one in minute.events]


def batches(count: int, longest: int) -> Iterator[EventBatch]:
    """Yield batches of the feed of varied sizes, of two partitions."""
    chance, bodies, numbers = Random(SEED), fed(), {"0": 0, "1": FAR_NUMBER}
    for at in range(count):
        place, size = chance.choice("01"), chance.randint(1, longest)
        events = []
        for key, body in islice(bodies, size):
            number = SequenceNumber(numbers[place])
            events.append(Event(number, str(448 * number), EPOCH, key, {}, body))
            numbers[place] += 1
        yield EventBatch(STREAM.partition(PartitionId(place)), tuple(events), f"invocation {at}")


@pytest.mark.slow
def test_a_thousand_batches_of_the_feed_have_one_declaration_a_text_and_one_text_for_each_set_of_tables(
    store: Store, server: TdsServer
) -> None:
    """The time goes into 1,000 answers of the server."""
    server.state.anchors["1"] = FAR_NUMBER
    homes = [(f"home-{number:06}", "Etc/UTC", 1) for number in range(HOMES_OF_THE_FEED)]
    server.state.answers["INNER JOIN hubledger.home AS t"] = homes
    for batch in batches(1_000, 40):
        ingest_batch(batch, Ingestion(store, TRANSFORM, stamps()))
    sent = [one for one in server.prepared if "INSERT INTO hubledger.batch_ledger" in one[0]]
    texts = {text for text, _ in sent}
    tables = {" ".join(re.findall(r"(?:INTO|UPDATE) hubledger\.\w+", text)) for text in texts}
    assert len(sent) == 1_000
    assert len(set(server.prepared)) == len({text for text, _ in server.prepared})
    assert len(texts) == len(tables) <= 2 * 2**3 + 2  # three tables, with and without letters; the first of a partition


FILTERS = {
    "none": LetterChoice(),
    "a status": LetterChoice(status="waiting"),
    "a cause": LetterChoice(fingerprint="0123456789abcdef"),
    "all": LetterChoice(
        fingerprint="0123456789abcdef",
        status="waiting",
        error_class="poison",
        partition_id=PartitionId("0"),
        partition_key="a key",
    ),
}


@pytest.mark.parametrize("case", FILTERS)
def test_a_listing_is_one_request_and_filters_by_the_given_fields_only(
    store: Store, server: TdsServer, case: str
) -> None:
    listing, wanted = LetterListing(OneStream(store.database, STREAM)), FILTERS[case]
    listing.list_letters(wanted, FIRST_PAGE, 50)
    before = len(server.calls)
    listing.list_letters(wanted, FIRST_PAGE, 50)
    listing.count_matching(wanted, ["waiting"])
    assert server.calls[before:] == [PREPARE_AND_EXECUTE] * 2
    fields = ("fingerprint", "status", "error_class", "partition_id", "partition_key")
    given = [name for name in fields if getattr(wanted, name) is not None]
    for text, _ in server.prepared[-2:]:
        asked = [name for name in fields if re.search(rf"AND (?:d\.{name}(?: \+ N'\.')? = )?@{name}\b", text)]
        assert asked == given


def test_a_round_of_an_idle_keeper_is_one_request_however_long_the_stream_is_known(
    store: Store, server: TdsServer
) -> None:
    server.state.answers["MIN(d.due_at)"], clock = [(None,)], FakeClock()
    keeper = store.remembering(timedelta(seconds=60), clock.monotonic)
    assert keeper.next_due_at(STREAM, EPOCH) is None
    clock.advance(3_600)
    before = len(server.calls)
    assert keeper.next_due_at(STREAM, EPOCH) is None
    assert server.calls[before:] == [PREPARE_AND_EXECUTE]
