"""Every refusal, as the SDK reports it."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from azure.core.credentials import AzureSasCredential
from azure.eventhub import EventData, EventHubProducerClient
from azure.eventhub.exceptions import AuthenticationError, ConnectionLostError, EventHubError

from local.event_hubs import Emulator, HubSettings, SharedAccessKey
from tests.acceptance.event_hubs.clients import (
    HUB,
    join_consumers,
    producer,
    publish,
    reading,
    reading_aio,
    sas,
    wait_until,
)
from tests.acceptance.event_hubs.conftest import MovableClock


def refusal(emulator: Emulator, group: str = "$Default", **options: Any) -> str:
    """Return the error of a sync consumer of partition 0; the aio one retries a refused link for ever in silence."""
    with reading(emulator, group, **{"retry_total": 0, "partition_id": "0", **options}) as seen:
        seen.wait(lambda now: bool(now.errors))
    return f"{type(seen.errors[0]).__name__}: {seen.errors[0]}"


def refusals(emulator: Emulator, *readers: dict[str, Any]) -> list[str]:
    """Return the errors of sync consumers that start together."""
    with ThreadPoolExecutor(len(readers)) as pool:
        return list(pool.map(lambda options: refusal(emulator, **options), readers))


def with_token(emulator: Emulator, expires_in: timedelta) -> EventHubProducerClient:
    credential = AzureSasCredential(sas(emulator, expires_in))
    return EventHubProducerClient(f"localhost:{emulator.port}", HUB, credential, use_tls=False, retry_total=0)


def send(client: EventHubProducerClient, partition_id: str = "0") -> None:
    client.send_event(EventData("x"), partition_id=partition_id)


def test_a_producer_is_refused_with_the_reason(emulator: Emulator) -> None:
    here, nowhere = partial(producer, emulator, retry_total=0), partial(producer, emulator, "nowhere", retry_total=0)
    wrong = emulator.connection_string.replace("SAS_KEY_VALUE", "wrong")
    wrong_key = EventHubProducerClient.from_connection_string(wrong, eventhub_name=HUB, retry_total=0)
    expired = with_token(emulator, timedelta(seconds=-5))
    cases: list[tuple[EventHubProducerClient, Callable[[EventHubProducerClient], object], type[Exception], str]] = [
        (nowhere(), lambda client: client.create_batch(), EventHubError, "/nowhere' could not be found"),
        (nowhere(), lambda client: client.get_eventhub_properties(), EventHubError, "404"),
        (here(), lambda client: send(client, "9"), EventHubError, "Invalid partition 9"),
        (here(), lambda client: client.get_partition_properties("9"), EventHubError, "400"),
        (wrong_key, lambda client: client.get_eventhub_properties(), AuthenticationError, "signature does not match"),
        (expired, send, AuthenticationError, "expired"),
    ]

    def refuse(client: EventHubProducerClient, ask: Callable, error: type[Exception], complaint: str) -> None:
        with client, pytest.raises(error, match=complaint):
            ask(client)

    with ThreadPoolExecutor(len(cases)) as pool:
        for each in [pool.submit(refuse, *case) for case in cases]:
            each.result()


def test_a_reader_of_an_unknown_group_or_of_a_position_past_the_end_is_refused_with_the_reason(
    emulator: Emulator,
) -> None:
    publish(emulator, range(5))
    positions = ({"starting_position": 71181}, {"starting_position": "99999"})
    group, number, offset = refusals(emulator, {"group": "nobody"}, *positions)
    assert "The messaging entity 'localhost:eventhub:telemetry~32766|nobody' could not be found." in group
    assert "sequence number '71181' is invalid. The last sequence number in the system is '4'" in number
    assert "The supplied offset '99999' is invalid" in offset


def test_a_lower_epoch_or_none_beside_a_reader_with_one(emulator: Emulator) -> None:
    publish(emulator, range(1))
    with reading_aio(emulator, partition_id="0", owner_level=5) as owner:
        owner.wait_for_events(1)
        found = refusals(emulator, {"owner_level": 4}, {})
        assert "Receiver 'nil' with a higher epoch '5' already exists" in found[0], found
        assert "with epoch of '5', and so non-epoch receiver is not allowed" in found[1], found
        assert not owner.errors


def test_a_token_that_expires_detaches_its_links(emulator: Emulator, clock: MovableClock) -> None:
    with with_token(emulator, timedelta(hours=1)) as client:
        send(client)
        assert emulator.link_count(HUB) == 1
        clock.ahead = timedelta(hours=2)
        emulator.let_time_pass()
        assert emulator.link_count(HUB) == 0
        with pytest.raises((AuthenticationError, ConnectionLostError), match=r"expired|unauthorized"):
            send(client)
    assert emulator.end_of(HUB)["0"] == 0


@pytest.mark.parametrize("right", ["Send", "Listen"])
def test_a_key_gives_its_right_alone(right: str) -> None:
    keys = (SharedAccessKey("limited", "limited-value", frozenset({right})),)
    with Emulator([HubSettings(HUB)], keys=keys).running() as emulator, producer(emulator, retry_total=0) as client:
        assert client.get_partition_ids() == ["0", "1", "2", "3"]
        if right == "Send":
            send(client)
            assert "'Listen' claim is required" in refusal(emulator)
            return
        with reading(emulator, partition_id="0") as seen:
            with pytest.raises(EventHubError, match=re.escape("'Send' claim is required")):
                send(client)
            wait_until(lambda: emulator.reader_count(HUB) == 1)
        join_consumers()
        assert seen.errors == []
