"""A peer that speaks AMQP to a connection without a socket, for tests of traffic that the SDK never causes."""

import asyncio
from collections.abc import Sequence
from typing import Any, Self

from local.event_hubs import frames as event_hubs_frames
from local.event_hubs.amqp import Connection
from local.event_hubs.broker import HubBroker
from local.event_hubs.codec import Described, Symbol, UInt, ULong, decode
from local.event_hubs.frames import ACCEPTED, ATTACH, BEGIN, DETACH, FLOW, OPEN, SOURCE, TARGET, TRANSFER, frame
from local.event_hubs.hubs import Hubs, HubSettings
from local.event_hubs.readers import Faults
from local.event_hubs.server import unix_milliseconds
from local.event_hubs.tokens import MANAGE, ROOT_KEY, Grant, SharedAccessKey
from tests.local.event_hubs.messages import attach_sender, message, transfer

EVERYTHING = Grant((), frozenset({MANAGE}), 2**62)
SELECTOR = Symbol("apache.org:selector-filter:string")
PARTITION = "telemetry/ConsumerGroups/hubledger/Partitions/0"


class Clock:
    """A clock that stands still until it is moved, in Unix milliseconds."""

    def __init__(self, now: int = 0) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


class FakeTransport(asyncio.Transport):
    """Stores the written bytes. Ends the connection as soon as it is closed, as a socket that drains at once."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(extra={"peername": ("127.0.0.1", 4711)})
        self.written = bytearray()
        self.waiting = 0
        self.is_read = True
        self._connection = connection
        self._closing = False

    def write(self, data: Any) -> None:
        self.written += data
        self.waiting += 0 if self.is_read else len(data)

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def pause_reading(self) -> None:
        """Do nothing: the tests send nothing to a frozen connection."""

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            asyncio.get_running_loop().call_soon(self._connection.connection_lost, None)

    abort = close


class Peer:
    """A connection to a broker of the hub `telemetry`. Its grants are for everything unless `grant` is None."""

    def __init__(self, broker: HubBroker, grant: Grant | None = EVERYTHING) -> None:
        self.connection = Connection(broker)
        self.transport = FakeTransport(self.connection)
        self.connection.connection_made(self.transport)
        self._read = 0
        if grant:
            broker.connections[self.connection].add(grant)

    @property
    def is_closed(self) -> bool:
        return self.transport.is_closing()

    def begin(self, window: int = 1_000_000, max_frame: int = 65_536) -> Self:
        self.connection.data_received(event_hubs_frames.AMQP_HEADER)
        self.send(OPEN, "peer", None, UInt(max_frame))
        self.begin_session(window)
        return self

    def begin_session(self, window: int = 1_000_000) -> None:
        self.send(BEGIN, None, UInt(0), UInt(window), UInt(1000))
        self.frames()

    def send(self, code: int, *fields: Any, channel: int = 0) -> None:
        self.put(event_hubs_frames.composite(code, *fields), channel=channel)

    def put(self, *performatives: bytes, channel: int = 0) -> None:
        self.connection.data_received(b"".join(frame(each, channel) for each in performatives))

    def attach_sender(self, address: str = "telemetry", handle: int = 0) -> None:
        self.put(attach_sender(address, handle))

    def attach_reader(
        self,
        address: str = PARTITION,
        handle: int = 1,
        filters: dict[Symbol, Any] | None = None,
        epoch: int | None = None,
    ) -> None:
        properties = {} if epoch is None else {Symbol("com.microsoft:epoch"): epoch}
        ends = (Described(ULong(SOURCE), [address, *[None] * 6, filters]), Described(ULong(TARGET), ["here"]))
        self.send(ATTACH, f"r{handle}", UInt(handle), True, None, None, *ends, *[None] * 6, properties)

    def publish(self, *bodies: bytes) -> None:
        self.put(*(transfer(message(body), number) for number, body in enumerate(bodies)))
        self.frames()

    def grant(self, credit: int, handle: int = 1, received: int = 0, drain: bool = False) -> None:
        self.flow((0, 1_000_000), (handle, received, credit), drain)

    def flow(
        self, window: tuple[int, int], link: tuple[int, ...] = (), drain: bool = False, echo: bool = False
    ) -> None:
        ends: list[UInt | None] = [UInt(each) for each in link] or [None] * 3
        self.send(FLOW, *map(UInt, window), UInt(0), UInt(1000), *ends, None, drain, echo)

    def frames(self) -> list[tuple[int, Sequence[Any], bytes]]:
        """Return the performatives received since the last call, with their fields and payloads."""
        found = []
        written = bytes(self.transport.written)
        while self._read < len(written):
            if written[self._read : self._read + 4] == b"AMQP":
                self._read += 8
                continue
            size = event_hubs_frames.FRAME_HEADER.unpack_from(written, self._read)[0]
            body = written[self._read + 8 : self._read + size]
            self._read += size
            if body:
                (code, fields), end = decode(body)
                found.append((code, fields, body[end:]))
        return found

    def codes(self) -> list[int]:
        return [code for code, _, _ in self.frames()]

    def fields(self, wanted: int) -> list[Sequence[Any]]:
        """Return the fields of the performatives of one kind that were received since the last call."""
        return [fields for code, fields, _ in self.frames() if code == wanted]

    def payloads(self) -> list[bytes]:
        return [payload for code, _, payload in self.frames() if code == TRANSFER]

    def outcomes(self) -> list[tuple[int, int, bool]]:
        return [
            (fields[1], fields[2], fields[4].descriptor == ACCEPTED)
            for fields in self.fields(event_hubs_frames.DISPOSITION)
        ]

    def refusals(self, code: int = DETACH) -> list[str]:
        at = 2 if code == DETACH else 0
        return [fields[at].value[0] for fields in self.fields(code) if fields[at]]


def make_broker(
    *settings: HubSettings,
    kind: type[HubBroker] = HubBroker,
    faults: Faults | None = None,
    clock: Clock | None = None,
    keys: Sequence[SharedAccessKey] = (ROOT_KEY,),
) -> HubBroker:
    hubs, now = settings or (HubSettings("telemetry", 4, ("hubledger",)),), clock or unix_milliseconds
    return kind(Hubs(hubs, now), [*keys], now, faults or Faults())


def publisher(broker: HubBroker, *bodies: bytes) -> Peer:
    peer = Peer(broker).begin()
    peer.attach_sender("telemetry/Partitions/0")
    peer.publish(*bodies)
    return peer


def reader(broker: HubBroker, window: int = 1_000_000, max_frame: int = 65_536) -> Peer:
    """Attach a reader to partition 0, without credit."""
    peer = Peer(broker).begin(window, max_frame)
    peer.attach_reader()
    peer.frames()
    return peer
