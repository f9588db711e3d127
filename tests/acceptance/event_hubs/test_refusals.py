"""Every refusal, as the SDK reports it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from urllib.parse import quote_plus

import pytest
from azure.core.credentials import AzureSasCredential
from azure.eventhub import EventData, EventHubProducerClient
from azure.eventhub.exceptions import AuthenticationError, ConnectionLostError, EventHubError

from local.event_hubs import Emulator, HubSettings, SharedAccessKey
from tests.acceptance.event_hubs.clients import (
    DEADLINE,
    HUB,
    Readings,
    producer,
    publish,
    reading,
    reading_aio,
    wait_until,
)
from tests.acceptance.event_hubs.conftest import MovableClock


def refusal(emulator: Emulator, group: str = "$Default", **options: Any) -> str:
    """What a sync consumer of partition 0 says; the aio one retries a refused link for ever in silence."""
    with reading(emulator, group, **{"retry_total": 0, "partition_id": "0", **options}) as seen:
        seen.wait(lambda now: bool(now.errors))
    return f"{type(seen.errors[0]).__name__}: {seen.errors[0]}"


def test_a_hub_that_is_not_there(emulator: Emulator) -> None:
    with producer(emulator, "nowhere", retry_total=0) as client:
        with pytest.raises(EventHubError, match="'nowhere' could not be found"):
            client.create_batch()
        with pytest.raises(EventHubError, match="404"):
            client.get_eventhub_properties()


def test_a_consumer_group_that_is_not_there(emulator: Emulator) -> None:
    assert "no consumer group 'nobody'" in refusal(emulator, "nobody")


def test_a_partition_that_is_not_there(emulator: Emulator) -> None:
    with producer(emulator, retry_total=0) as client:
        with pytest.raises(EventHubError, match="Invalid partition 9"):
            client.send_event(EventData("x"), partition_id="9")
        with pytest.raises(EventHubError, match="400"):
            client.get_partition_properties("9")


@pytest.mark.parametrize(
    ("position", "complaint"),
    [
        (71181, "The supplied sequence number '71181' is invalid. The last sequence number in the system is '4'"),
        ("99999", "The supplied offset '99999' is invalid"),
    ],
)
def test_a_position_past_the_end(emulator: Emulator, position: object, complaint: str) -> None:
    publish(emulator, range(5))
    assert complaint in refusal(emulator, starting_position=position)


def test_a_lower_epoch_or_none_beside_a_reader_with_one(emulator: Emulator) -> None:
    publish(emulator, range(1))
    with reading_aio(emulator, partition_id="0", owner_level=5) as owner:
        owner.wait_for_events(1)
        assert "higher epoch of 5 already exists" in refusal(emulator, owner_level=4)
        assert "higher epoch of 5 already exists" in refusal(emulator)
        assert not owner.errors


def test_the_sixth_reader_without_an_epoch(emulator: Emulator) -> None:
    publish(emulator, range(1))
    enough = threading.Event()

    def read() -> list[Exception]:
        with reading_aio(emulator, partition_id="0") as seen:
            enough.wait(DEADLINE)
        return seen.errors

    with ThreadPoolExecutor(5) as pool:
        readers = [pool.submit(read) for _ in range(5)]
        wait_until(lambda: emulator.reader_count(HUB) == 5)
        assert "there are 5 receivers on partition 0 in consumer group $default already" in refusal(emulator)
        enough.set()
        assert [reader.result() for reader in readers] == [[]] * 5


def test_a_wrong_key(emulator: Emulator) -> None:
    wrong = emulator.connection_string.replace("SAS_KEY_VALUE", "wrong")
    client = EventHubProducerClient.from_connection_string(wrong, eventhub_name=HUB, retry_total=0)
    with client, pytest.raises(AuthenticationError, match="the signature does not match"):
        client.get_eventhub_properties()


def sas(emulator: Emulator, expires_in: timedelta) -> str:
    resource = quote_plus(f"sb://localhost:{emulator.port}/{HUB}")
    expiry = int(time.time() + expires_in.total_seconds())
    signed = hmac.new(b"SAS_KEY_VALUE", f"{resource}\n{expiry}".encode(), hashlib.sha256).digest()
    signature = quote_plus(base64.b64encode(signed))
    return f"SharedAccessSignature sr={resource}&sig={signature}&se={expiry}&skn=RootManageSharedAccessKey"


def with_token(emulator: Emulator, expires_in: timedelta) -> EventHubProducerClient:
    credential = AzureSasCredential(sas(emulator, expires_in))
    return EventHubProducerClient(f"localhost:{emulator.port}", HUB, credential, use_tls=False, retry_total=0)


def test_a_token_that_has_expired(emulator: Emulator) -> None:
    with with_token(emulator, timedelta(seconds=-5)) as client, pytest.raises(AuthenticationError, match="expired"):
        client.send_event(EventData("x"), partition_id="0")


def test_a_token_that_expires_detaches_its_links(emulator: Emulator, clock: MovableClock) -> None:
    with with_token(emulator, timedelta(hours=1)) as client:
        client.send_event(EventData("x"), partition_id="0")
        assert emulator.link_count(HUB) == 1
        clock.ahead = timedelta(hours=2)
        emulator.let_time_pass()
        assert emulator.link_count(HUB) == 0
        with pytest.raises((AuthenticationError, ConnectionLostError), match=r"expired|unauthorized"):
            client.send_event(EventData("y"), partition_id="0")
    assert emulator.end_of(HUB)["0"] == 0


@pytest.mark.parametrize(("right", "may_send"), [("Send", True), ("Listen", False)])
def test_a_key_without_the_right(right: str, may_send: bool) -> None:
    keys = (SharedAccessKey("limited", "limited-value", frozenset({right})),)
    with Emulator([HubSettings(HUB)], keys=keys).running() as emulator, producer(emulator, retry_total=0) as client:
        assert client.get_partition_ids() == ["0", "1", "2", "3"]
        if may_send:
            client.send_event(EventData("x"), partition_id="0")
            assert "'Listen' claim is required" in refusal(emulator)
        else:
            with pytest.raises(EventHubError, match="'Send' claim is required"):
                client.send_event(EventData("x"), partition_id="0")
            with reading(emulator, partition_id="0") as seen:
                wait_until(lambda: emulator.reader_count(HUB) == 1)
            assert seen.errors == Readings().errors
