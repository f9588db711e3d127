"""local/feed/publisher.py"""

import logging
from collections.abc import Iterator

import pytest
from azure.eventhub import EventDataBatch
from azure.eventhub.exceptions import (
    AuthenticationError,
    ConnectError,
    ConnectionLostError,
    EventDataSendError,
    EventHubError,
)

from local.feed.publisher import TRIES, HubSilent, Publisher, Resends
from local.feed.record import Copies
from tests.local.feed.builders import minute, send


def busy() -> EventHubError:
    error = EventDataSendError("the hub is too busy")
    error.error = "server-busy"
    return error


class Hub:
    """Take batches, and meet each send with the next given fault."""

    def __init__(self, *faults: EventHubError) -> None:
        self._faults = list(faults)
        self.taken: list[EventDataBatch] = []
        self.asked: list[str] = []

    def create_batch(self, *, partition_id: str) -> EventDataBatch:
        self.asked.append(partition_id)
        return EventDataBatch(partition_id=partition_id)

    def send_batch(self, event_data_batch: EventDataBatch, *, timeout: float) -> None:
        if self._faults:
            raise self._faults.pop(0)
        self.taken.append(event_data_batch)


@pytest.fixture
def resends() -> Iterator[Resends]:
    counter = Resends()
    yield counter
    counter.close()


def go_on(seconds: float) -> bool:
    return False


def stop(seconds: float) -> bool:
    return True


def test_a_send_that_the_client_repeats_by_itself_leaves_a_doubt_unless_the_hub_was_busy(resends: Resends) -> None:
    class Repeating(Hub):
        def __init__(self, fault: EventHubError) -> None:
            super().__init__()
            self._fault = fault

        def send_batch(self, event_data_batch: EventDataBatch, *, timeout: float) -> None:
            log = logging.getLogger("azure.eventhub._producer_client")
            log.debug("Producer for partition ID %s not available: %s.", "all", self._fault)

    lost, refused = Repeating(ConnectionLostError("gone")), Repeating(busy())
    assert Publisher(lost, go_on, resends).publish(send(minute())) == Copies(1, 2)
    assert Publisher(refused, go_on, resends).publish(send(minute())) == Copies(1, 1)


def test_a_connection_lost_before_the_send_is_tried_again_without_a_doubt_and_refused_credentials_are_not(
    resends: Resends,
) -> None:
    class Closed(Hub):
        def __init__(self, *refusals: EventHubError) -> None:
            super().__init__()
            self._refusals = list(refusals)

        def create_batch(self, *, partition_id: str) -> EventDataBatch:
            batch = super().create_batch(partition_id=partition_id)
            if self._refusals:
                raise self._refusals.pop(0)
            return batch

    hub = Closed(ConnectError("gone"), ConnectError("gone"))
    assert Publisher(hub, go_on, resends).publish(send(minute())) == Copies(1, 1)
    assert (len(hub.asked), len(hub.taken)) == (3, 1)
    hub = Closed(AuthenticationError("who are you"))
    with pytest.raises(AuthenticationError):
        Publisher(hub, go_on, resends).publish(send(minute()))
    assert len(hub.asked) == 1


def test_a_hub_that_accepts_no_send_is_reported_as_silent(resends: Resends) -> None:
    with pytest.raises(HubSilent, match="accepted no send in 90 tries: the hub is too busy"):
        Publisher(Hub(*[busy()] * TRIES), go_on, resends).publish(send(minute()))


def test_a_refused_send_that_is_given_up_is_not_in_the_hub_and_an_unanswered_one_may_be(resends: Resends) -> None:
    refused, unanswered = Hub(busy()), Hub(ConnectionLostError("gone"))
    assert Publisher(refused, stop, resends).publish(send(minute())) == Copies(0, 0)
    assert Publisher(unanswered, stop, resends).publish(send(minute())) == Copies(0, 1)
