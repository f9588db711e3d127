"""A peer that speaks AMQP to a connection without a socket, for tests of what the SDK never does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from local.event_hubs.amqp import Connection
from local.event_hubs.broker import HubBroker
from local.event_hubs.codec import Described, Symbol, UInt, ULong, decode
from local.event_hubs.frames import (
    AMQP_HEADER,
    ATTACH,
    BEGIN,
    FLOW,
    FRAME_HEADER,
    OPEN,
    SOURCE,
    TARGET,
    TRANSFER,
    composite,
    frame,
)
from local.event_hubs.hubs import Hubs, HubSettings
from local.event_hubs.readers import Faults
from local.event_hubs.server import unix_milliseconds
from local.event_hubs.tokens import MANAGE, ROOT_KEY, Grant

EVERYTHING = Grant((), frozenset({MANAGE}), 2**62)
SELECTOR = Symbol("apache.org:selector-filter:string")


class FakeTransport(asyncio.Transport):
    """Keeps what is written; ends the connection as soon as it is closed, as a socket that drains at once."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self.written = bytearray()
        self.largest_write = 0
        self._connection = connection
        self._closing = False

    def write(self, data: Any) -> None:
        self.written += data
        self.largest_write = max(self.largest_write, len(data))

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            asyncio.get_running_loop().call_soon(self._connection.connection_lost, None)

    abort = close


class Peer:
    """One connection to a broker of the hub `telemetry`; its grants are for everything unless `grant` is None."""

    def __init__(self, broker: HubBroker, grant: Grant | None = EVERYTHING) -> None:
        self.connection = Connection(broker)
        self.transport = FakeTransport(self.connection)
        self.connection.connection_made(self.transport)
        self._read = 0
        if grant:
            broker.connections[self.connection].add(grant)

    def begin(self, window: int = 1_000_000, max_frame: int = 65_536) -> None:
        """Open the connection and a session on channel 0."""
        self.connection.data_received(AMQP_HEADER)
        self.send(OPEN, "peer", None, UInt(max_frame))
        self.send(BEGIN, None, UInt(0), UInt(window), UInt(1000))
        self.frames()

    def send(self, code: int, *fields: Any, payload: bytes = b"", channel: int = 0) -> None:
        self.connection.data_received(frame(composite(code, *fields) + payload, channel))

    def attach_sender(self, address: str = "telemetry", handle: int = 0, capabilities: Any = None) -> None:
        target = Described(ULong(TARGET), [address])
        source = Described(ULong(SOURCE), ["here"])
        self.send(ATTACH, f"s{handle}", UInt(handle), False, None, None, source, target, *[None] * 5, capabilities)

    def attach_reader(
        self, address: str, handle: int = 1, selector: str | None = None, properties: Any = None, **more: Any
    ) -> None:
        filters = {SELECTOR: Described(SELECTOR, selector)} if selector else more.get("filters")
        source = Described(ULong(SOURCE), [address, *[None] * 6, filters])
        target = Described(ULong(TARGET), ["here"])
        fields = (f"r{handle}", UInt(handle), True, None, None, source, target, *[None] * 6, properties)
        self.send(ATTACH, *fields)

    def grant(self, credit: int, handle: int = 1, received: int = 0, drain: bool = False) -> None:
        session = (UInt(0), UInt(1_000_000), UInt(0), UInt(1000))
        self.send(FLOW, *session, UInt(handle), UInt(received), UInt(credit), None, drain)

    def transfer(self, message: bytes, delivery: int, handle: int = 0, message_format: int = 0) -> None:
        head = (UInt(handle), UInt(delivery), b"tag", UInt(message_format), False, False)
        self.send(TRANSFER, *head, payload=message)

    def frames(self) -> list[tuple[int, Sequence[Any], bytes]]:
        """What was received since the last call: performatives, their fields and payloads."""
        found = []
        written = bytes(self.transport.written)
        while self._read < len(written):
            if written[self._read : self._read + 4] == b"AMQP":
                self._read += 8
                continue
            size = FRAME_HEADER.unpack_from(written, self._read)[0]
            body = written[self._read + 8 : self._read + size]
            self._read += size
            if body:
                (code, fields), end = decode(body)
                found.append((code, fields, body[end:]))
        return found

    def codes(self) -> list[int]:
        return [code for code, _, _ in self.frames()]


def make_broker(*settings: HubSettings, kind: type[HubBroker] = HubBroker, faults: Faults | None = None) -> HubBroker:
    hubs = settings or (HubSettings("telemetry", 4, ("hubledger",)),)
    return kind(Hubs(hubs, unix_milliseconds), [ROOT_KEY], unix_milliseconds, faults or Faults())
