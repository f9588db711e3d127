"""The event of the smoke tests: its body, and the hub that takes it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.hooks.errors import HookRefused
from infra.hooks.patience import Pending
from infra.hooks.rest import Token
from infra.hooks.room import name_of, sample_of, transform_in
from local.feed.event_file import ENVELOPE, FileEvent, events_in

SCOPE = "https://eventhubs.azure.net/.default"
TOKEN_LIFE = 300  # seconds: longer than one sending
FILE = "SMOKE_EVENT"
UNKNOWN = (
    "events.jsonl of your room has no event that becomes a row alone; add one, or name a file of one body:"
    f" azd env set {FILE} <file>"
)
BODIES = {  # of the examples: events of a home and of a flight that nobody else has
    "examples.home_security": (b'{"kind":"registration","home_id":"H-smoke","time_zone":"Europe/Paris","armed":false}'),
    "examples.flight_info": (
        b'{"carrier":"ZZ","flight_number":1,"departure_date":"2026-01-01","status":"scheduled",'
        b'"changed_at":"2026-01-01T00:00:00Z"}'
    ),
}


class HubRefused(Pending):
    """The hub does not let this identity send."""


@dataclass(frozen=True, slots=True)
class Hub:
    """A hub by its namespace, or by a connection string, and by its name. `token` signs in to a namespace."""

    address: str
    name: str
    token: Token

    def send(self, event: FileEvent, partition_id: str) -> None:
        """Send one event with its properties to a partition. Raises Pending when the hub does not answer, and
        HubRefused when the identity lacks a right."""
        from azure.eventhub.exceptions import AuthenticationError, EventHubError

        from local.feed.publisher import message_with, parts_of

        try:
            with self._producer() as producer:
                batch = producer.create_batch(partition_id=partition_id)
                batch.add(message_with(event.body, *parts_of(event)))
                producer.send_batch(batch)
        except AuthenticationError as error:
            raise HubRefused(f"{self.name} refuses: {error}") from error
        except (EventHubError, OSError) as error:
            raise Pending(f"{self.name} takes no event: {error}") from error
        except ValueError as error:
            raise HookRefused(f"{FILE}: {self.name} takes no event of {len(event.body):,} bytes: {error}") from error

    def _producer(self) -> Any:
        from azure.eventhub import EventHubProducerClient

        once = {"retry_total": 0}  # the hook has its own deadline
        if "=" in self.address:
            return EventHubProducerClient.from_connection_string(self.address, eventhub_name=self.name, **once)
        return EventHubProducerClient(self.address, self.name, _Credential(self.token(SCOPE)), **once)


class _Credential:
    """A credential with one token. The hook fetches it first, because the SDK would repeat a refused sign-in."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *_scopes: str, **_more: Any) -> Any:
        """Return the token, as azure-core's TokenCredential does."""
        from azure.core.credentials import AccessToken

        return AccessToken(self._token, int(time.time()) + TOKEN_LIFE)


def event_to_send(root: Path, environment: Mapping[str, str]) -> FileEvent | None:
    """Return the event to send, and print where a sample event comes from. None without one.

    It is the one in the file of SMOKE_EVENT, a body or an envelope, else the event for an example, else the first
    sample event of the room that becomes a row without any other event.
    """
    if path := environment.get(FILE):
        try:
            given = (root / path).read_bytes()
            return next(events_in(root / path)) if given.startswith(ENVELOPE) else FileEvent(1, given)
        except OSError as error:
            raise HookRefused(f"{FILE} names no file that can be read: {root / path}: {error.strerror}") from error
    if body := BODIES.get(name_of(environment)):
        return FileEvent(1, body)
    found = sample_of(transform_in(environment))
    if found is None:
        return None
    sample, place = found
    print(f"the event of the proof is {place}; {FILE} names a different one")
    return sample
