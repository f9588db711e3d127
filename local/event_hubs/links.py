"""The links of AMQP 1.0 (part 2.6): credit, deliveries and their outcomes. The broker decides what a link serves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from local.event_hubs.codec import Symbol
from local.event_hubs.errors import AmqpError, MalformedMessage, NotEmulated
from local.event_hubs.frames import (
    REJECTED,
    SERIAL,
    SOURCE,
    TARGET,
    Attach,
    Flow,
    Transfer,
    composite,
    describe,
    difference,
)
from local.event_hubs.outcomes import ACCEPTED_STATE, Gate, Outcome

MAX_MESSAGE = 1_048_576  # bytes: the limit of the Standard tier
CHUNK = 262_144  # bytes that a link passes to the socket at once; the last event may exceed it
TURN = 4  # takes of a link before the other links have their turns
_CREDIT = 1_000
_OVERRUN = 10_000  # deliveries without credit: azure-eventhub takes this credit for granted, whatever it is given


class Carrier(Protocol):
    """The session, as its links see it."""

    @property
    def room(self) -> int:
        """The number of frames that may be sent now."""

    def deliver(self, handle: int, payloads: list[bytes]) -> int:
        """Send payloads as far as the window allows, and return the number of deliveries begun."""

    def is_cut(self, handle: int) -> bool: ...

    def settle_later(self, outcome: Outcome) -> None: ...

    def pump_soon(self, link: OutgoingLink) -> None: ...

    def flow(self, link: Link) -> None: ...

    def detach(self, link: Link, error: AmqpError | None = None) -> None: ...

    def detach_later(self, link: Link, error: AmqpError) -> None: ...


class Link:
    """One end of a link; `on_closed` is called once, when it is detached or its connection ends."""

    def __init__(self, session: Carrier, attach: Attach) -> None:
        self.session = session
        self.attach = attach
        self.name, self.handle = attach.name, attach.handle
        self.delivery_count = self.credit = 0
        self.is_draining = False
        self.offered: tuple[str, ...] = ()  # capabilities, in the answer to the attach
        self.properties: dict[Symbol, Any] = {}  # in the same answer
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

    def receive(self, transfer: Transfer) -> None:
        """Detach the link, because the peer may not send on a link on which it receives."""
        self.detach(AmqpError("amqp:not-allowed", "a transfer came over a link on which the peer receives"))

    def detach(self, error: AmqpError | None = None) -> None:
        """Detach the link and send the peer the reason."""
        self.session.detach(self, error)


class OutgoingLink(Link):
    """A link over which the peer receives.

    `take` returns the next payloads, up to the given number and about CHUNK bytes of them.
    """

    def __init__(self, session: Carrier, attach: Attach) -> None:
        super().__init__(session, attach)
        self.take: Callable[[int], list[bytes]] = lambda count: []
        self._next: list[bytes] = []  # taken, but not begun
        self._owes_drain = self._has_turn = False

    @property
    def waiting(self) -> int:
        """The bytes of the payloads that were taken and are not sent yet."""
        return sum(map(len, self._next))

    def pump(self) -> None:
        """Send the payloads of one turn, as far as credit, the session's window and the socket allow.

        Ask for a next turn when more could be sent; otherwise answer a drain. Do nothing before a turn that is due.
        """
        if self._has_turn:
            return
        for _ in range(TURN):
            if self.credit <= 0 or not self._has_next() or (room := min(self.credit, self.session.room)) <= 0:
                break
            self._deliver(room)
        else:
            self._has_turn = True
            self.session.pump_soon(self)
        if self._owes_drain and not self._has_turn:
            self._drain()

    def take_turn(self) -> None:
        """Take the turn that is due."""
        self._has_turn = False
        self.pump()

    def _deliver(self, room: int) -> None:
        begun = self.session.deliver(self.handle, self._next[:room])
        del self._next[:begun]
        self.credit -= begun
        self.delivery_count = (self.delivery_count + begun) & SERIAL

    def _has_next(self) -> bool:
        """Return True when a payload waits. Look even while the window is closed, because a drain has to know."""
        if not self._next:
            self._next = self.take(max(1, min(self.credit, self.session.room)))
        return bool(self._next)

    def _drain(self) -> None:
        """Give the rest of the credit back and report this to the peer, unless a payload within the credit waits."""
        if (self.credit > 0 and self._next) or self.session.is_cut(self.handle):
            return
        self._owes_drain = False
        self.delivery_count = (self.delivery_count + self.credit) & SERIAL
        self.credit = 0
        self.session.flow(self)

    def on_flow(self, flow: Flow) -> None:
        if flow.credit is not None:
            credit = flow.credit + difference(flow.delivery_count, self.delivery_count)
            self.credit = min(max(0, credit), SERIAL)
        self.is_draining = self._owes_drain = flow.drain


class IncomingLink(Link):
    """A link over which the peer sends.

    `accept` takes each message and its format, and returns the reason for which its outcome may have to wait; an
    AmqpError from it rejects the message.
    """

    def __init__(self, session: Carrier, attach: Attach) -> None:
        super().__init__(session, attach)
        self.accept: Callable[[bytes, int], Gate | None] = lambda message, message_format: None
        self._first: Transfer | None = None
        self._is_settled = False
        self._parts: list[bytes] = []
        self._size = self._holds = 0

    def grant(self) -> None:
        """Let the peer send the next thousand messages."""
        self.credit = _CREDIT
        self.session.flow(self)

    def hold(self) -> None:
        """Let the peer send nothing more, until each `hold` has had its `resume`."""
        self._holds += 1
        if self._holds == 1:
            self.credit = 0
            self.session.flow(self)

    def resume(self) -> None:
        self._holds -= 1
        if self._holds == 0:
            self.grant()

    def receive(self, transfer: Transfer) -> None:
        """Collect a part of a delivery, and accept the delivery when it is whole."""
        first = self._first = self._first or transfer
        if first.delivery_id is None or transfer.delivery_id not in (None, first.delivery_id):
            return self._end("amqp:invalid-field", "a transfer without a delivery id, or with a different one, came")
        self._is_settled |= transfer.settled
        if transfer.aborted:
            self._count()
            return self._start_over()
        self._add(transfer.payload)
        if not transfer.more:
            self._take(first.delivery_id, first.message_format)
        return None

    def _add(self, part: bytes) -> None:
        """Add a part of the message, or forget the parts once it is too large."""
        self._size += len(part)
        if self._size > MAX_MESSAGE:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _start_over(self) -> None:
        self._first, self._is_settled, self._parts, self._size = None, False, [], 0

    def _end(self, condition: str, description: str) -> None:
        self.session.detach_later(self, AmqpError(condition, description))

    def _take(self, delivery_id: int, message_format: int) -> None:
        """Accept the message that is whole now, and store its outcome."""
        state, failure, gate = ACCEPTED_STATE, None, None
        try:
            self._refuse_too_large(delivery_id)
            gate = self.accept(b"".join(self._parts), message_format)
        except AmqpError as error:
            failure, state = error, composite(REJECTED, describe(error))
        self.session.settle_later(Outcome(self, delivery_id, delivery_id, state, gate, self._is_settled))
        self._start_over()
        if isinstance(failure, MalformedMessage):
            self.session.detach_later(self, failure)
        else:
            self._count()

    def _refuse_too_large(self, delivery_id: int) -> None:
        """Raise AmqpError, in the service's words, for a message over the limit."""
        if self._size > MAX_MESSAGE:
            raise AmqpError(
                "amqp:link:message-size-exceeded",
                f"The received message (delivery-id:{delivery_id}, size:{self._size} bytes) exceeds the limit "
                f"({MAX_MESSAGE} bytes) currently allowed on the link.",
            )

    def _count(self) -> None:
        """Count a delivery, and let the peer send more when half of its credit is used.

        A peer that is held may still send what was on its way, but not without end.
        """
        self.delivery_count = (self.delivery_count + 1) & SERIAL
        self.credit -= 1
        if self._holds == 0 and self.credit <= _CREDIT // 2:
            self.grant()
        elif self.credit < -_OVERRUN:
            self._end("amqp:link:transfer-limit-exceeded", f"{_OVERRUN} messages came without credit")
