"""core/remote/hub/reader.py: an offset that the hub does not accept is a fault of the request, not of the hub."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from core.errors import HubUnreachable
from core.model.events import Partition, PartitionId
from core.model.ports import OffsetRefused
from core.remote.hub.reader import SdkHubReader
from core.settings import read_settings
from local.event_hubs import Emulator
from tests.acceptance.event_hubs.clients import HUB, publish

GROUP = "hubledger"
P = Partition(f"localhost/{HUB}", GROUP, PartitionId("0"))
NOWHERE = "Endpoint=sb://localhost:1;SharedAccessKeyName=n;SharedAccessKey=azE=;UseDevelopmentEmulator=true"


def reader_of(connection: str) -> SdkHubReader:
    given = {"EVENTHUB": connection, "EVENTHUB_NAME": HUB, "EVENTHUB_CONSUMER_GROUP": GROUP}
    return SdkHubReader(read_settings({**given, "STORE_CONNECTION": "sqlite:unused"}))


@pytest.fixture
def hub(emulator: Emulator) -> Iterator[SdkHubReader]:
    publish(emulator, range(10))
    with closing(reader_of(emulator.connection_string)) as reader:
        yield reader


@pytest.mark.parametrize("offset", ["abc", "99999999", "9:9:9", "-7-", "1.5", "9" * 64])
def test_an_offset_that_the_hub_refuses_is_named(hub: SdkHubReader, offset: str) -> None:
    with pytest.raises(OffsetRefused) as caught:
        hub.first_at(P, offset)
    assert caught.value.offset == offset
    assert offset in str(caught.value)


def test_an_offset_of_an_event_finds_it_although_another_one_was_refused(hub: SdkHubReader) -> None:
    with pytest.raises(OffsetRefused):
        hub.first_at(P, "abc")
    found = hub.first_at(P, "0")
    assert found is not None
    assert found.offset == "0"


def test_a_hub_that_does_not_answer_is_unreachable_whatever_the_offset() -> None:
    with closing(reader_of(NOWHERE)) as hub, pytest.raises(HubUnreachable):
        hub.first_at(P, "abc")
