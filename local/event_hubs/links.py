"""The links of AMQP 1.0 (part 2.6): credit, deliveries and their outcomes. The broker decides what a link serves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from local.event_hubs.codec import Raw, UInt
from local.event_hubs.errors import AmqpError, NotEmulated
from local.event_hubs.frames import (
    ACCEPTED,
    DETACH,
    REJECTED,
    SOURCE,
    TARGET,
    Attach,
    Flow,
    Transfer,
    composite,
    describe,
)

MAX_MESSAGE = 1_048_576  # bytes: the limit of the Standard tier
CHUNK = 262_144  # bytes that a link passes to the socket at once; the last event may exceed it
SERIAL = 0xFFFFFFFF  # delivery ids and counts are serial numbers of 32 bits
ACCEPTED_STATE = composite(ACCEPTED)
_CREDIT = 1_000


class Carrier(Protocol):
    """The session, as its links see it."""

    @property
    def room(self) -> int:
        """The number of frames that may be sent now."""

    def send(self, performative: bytes) -> None: ...

    def deliver(self, handle: int, payloads: list[bytes]) -> None: ...

    def settle_later(self, delivery_id: int, state: Raw) -> None: ...

    def flow(self, link: Link) -> None: ...

    def forget(self, link: Link) -> None: ...


class Link:
    """One end of a link; `on_closed` is called once, when it is detached or its connection ends."""

    def __init__(self, session: Carrier, attach: Attach) -> None:
        self.session = session
        self.attach = attach
        self.name, self.handle = attach.name, attach.handle
        self.delivery_count = self.credit = 0
        self.on_closed: Callable[[], None] = lambda: None

    @property
    def address(self) -> str:
        """The address of the node that the peer wants to reach through this link."""
        return (self.attach.source if self.attach.peer_receives else self.attach.target).address

    def refuse_other_nodes(self) -> None:
        """Raise NotEmulated when an end of the link is neither source nor target, for example a coordinator."""
        for terminus in (self.attach.source, self.attach.target):
            if terminus.kind not in (None, SOURCE, TARGET):
                raise NotEmulated(f"a link to a terminus of kind {terminus.kind!r}")

    def on_flow(self, flow: Flow) -> None:
        """Apply a flow of the peer to this link; the flow of a sender changes nothing."""

    def detach(self, error: AmqpError | None = None) -> None:
        """Detach the link and send the peer the reason."""
        self.session.send(composite(DETACH, UInt(self.handle), True, describe(error)))
        self.session.forget(self)


class OutgoingLink(Link):
    """A link over which the peer receives.

    `take` returns the next payloads, up to the given number and about CHUNK bytes of them.
    """

    def __init__(self, session: Carrier, attach: Attach) -> None:
        super().__init__(session, attach)
        self.take: Callable[[int], list[bytes]] = lambda count: []
        self.offered: tuple[str, ...] = ()

    def pump(self) -> None:
        """Send the next payloads, as far as credit, the session's window and the socket allow."""
        while (room := min(self.credit, self.session.room)) > 0:
            payloads = self.take(room)
            if not payloads:
                return
            self.credit -= len(payloads)
            self.delivery_count = (self.delivery_count + len(payloads)) & SERIAL
            self.session.deliver(self.handle, payloads)

    def on_flow(self, flow: Flow) -> None:
        if flow.credit is not None:
            self.credit = (flow.delivery_count + flow.credit - self.delivery_count) & SERIAL
            if self.credit > SERIAL // 2:  # the new limit is below the number sent already
                self.credit = 0
        self.pump()
        if flow.drain:
            self.delivery_count = (self.delivery_count + self.credit) & SERIAL
            self.credit = 0


class IncomingLink(Link):
    """A link over which the peer sends.

    `accept` takes each message and its format; an AmqpError from it rejects the message.
    """

    def __init__(self, session: Carrier, attach: Attach) -> None:
        super().__init__(session, attach)
        self.accept: Callable[[bytes, int], None] = lambda message, message_format: None
        self._first: Transfer | None = None
        self._parts: list[bytes] = []
        self._size = 0

    def grant(self) -> None:
        """Let the peer send the next thousand messages; a peer that sends more is not refused."""
        self.credit = _CREDIT
        self.session.flow(self)

    def receive(self, transfer: Transfer) -> None:
        """Collect a part of a delivery, and accept the delivery when it is whole."""
        first = self._first = self._first or transfer
        if transfer.aborted:
            return self._start_over()
        self._parts.append(transfer.payload)
        self._size += len(transfer.payload)
        if self._size > MAX_MESSAGE:
            too_large = f"the message is larger than the limit of {MAX_MESSAGE} bytes"
            return self.detach(AmqpError("amqp:link:message-size-exceeded", too_large))
        if not transfer.more:
            message = b"".join(self._parts)
            self._start_over()
            self._take(first, message)
        return None

    def _start_over(self) -> None:
        self._first, self._parts, self._size = None, [], 0

    def _take(self, first: Transfer, message: bytes) -> None:
        self.delivery_count = (self.delivery_count + 1) & SERIAL
        self.credit -= 1
        state = ACCEPTED_STATE
        try:
            self.accept(message, first.message_format)
        except AmqpError as error:
            state = composite(REJECTED, describe(error))
        if not first.settled:
            self.session.settle_later(first.delivery_id or 0, state)
        if self.credit <= _CREDIT // 2:
            self.grant()
