"""The sessions of AMQP 1.0 (part 2.5): the links on a channel, the numbering of their deliveries, their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from local.event_hubs.codec import Array, Raw, Symbol, UByte, UInt, ULong, UShort
from local.event_hubs.errors import AmqpError
from local.event_hubs.frames import (
    ATTACH,
    BEGIN,
    DETACH,
    DISPOSITION,
    FLOW,
    REJECTED,
    TRANSFER_OVERHEAD,
    Attach,
    Begin,
    Flow,
    Transfer,
    composite,
    describe,
    transfer_frame,
)
from local.event_hubs.links import ACCEPTED_STATE, MAX_MESSAGE, SERIAL, IncomingLink, Link, OutgoingLink

_WINDOW = 65_536
_HANDLE_MAX = 0xFFFFFFFF


class Wire(Protocol):
    """The connection, as its sessions see it."""

    @property
    def can_write(self) -> bool: ...

    @property
    def peer_max_frame(self) -> int: ...

    def write(self, data: bytes) -> None: ...

    def send(self, performative: bytes, channel: int) -> None: ...


@dataclass(slots=True)
class _Outcome:
    """The state of a range of deliveries."""

    first: int
    last: int
    state: Raw


class Session:
    """A session: the links on a channel of a connection, and the numbering of their deliveries."""

    def __init__(self, wire: Wire, channel: int, begin: Begin) -> None:
        self.wire, self.channel = wire, channel
        self.links: dict[int, Link] = {}
        self._next_incoming, self._peer_window = begin.next_outgoing, begin.incoming_window
        self._next_outgoing = self._next_delivery = 0
        self._outcomes: list[_Outcome] = []
        window = UInt(_WINDOW)
        self.send(composite(BEGIN, UShort(channel), UInt(0), window, window, UInt(_HANDLE_MAX)))

    def send(self, performative: bytes) -> None:
        self.wire.send(performative, self.channel)

    @property
    def room(self) -> int:
        """The number of frames that may be sent now."""
        return self._peer_window if self.wire.can_write else 0

    def deliver(self, handle: int, payloads: list[bytes]) -> None:
        """Send payloads as settled deliveries; the last may overrun the window by the rest of its frames."""
        frames: list[bytes] = []
        for payload in payloads:
            self._frame(handle, payload, frames)
            self._next_delivery = (self._next_delivery + 1) & SERIAL
        sent = len(frames) // 2
        self._next_outgoing = (self._next_outgoing + sent) & SERIAL
        self._peer_window -= sent
        self.wire.write(b"".join(frames))

    def _frame(self, handle: int, payload: bytes, frames: list[bytes]) -> None:
        largest = self.wire.peer_max_frame - TRANSFER_OVERHEAD
        while len(payload) > largest:
            part, payload = payload[:largest], payload[largest:]
            frames += (transfer_frame(self.channel, handle, self._next_delivery, part, True), part)
        frames += (transfer_frame(self.channel, handle, self._next_delivery, payload, False), payload)

    def flow(self, link: Link) -> None:
        """Send the peer the state of a link and of the session."""
        window = UInt(_WINDOW)
        session = (UInt(self._next_incoming), window, UInt(self._next_outgoing), window)
        self.send(composite(FLOW, *session, UInt(link.handle), UInt(link.delivery_count), UInt(max(0, link.credit))))

    def settle_later(self, delivery_id: int, state: Raw) -> None:
        """Store the outcome of a delivery until the broker has committed."""
        last = self._outcomes[-1] if self._outcomes else None
        if last is not None and last.state is state and delivery_id == (last.last + 1) & SERIAL:
            last.last = delivery_id
        else:
            self._outcomes.append(_Outcome(delivery_id, delivery_id, state))

    def settle(self, failure: AmqpError | None) -> None:
        """Send the peer the outcomes so far; after a failed commit, reject the deliveries that were accepted."""
        outcomes, self._outcomes = self._outcomes, []
        for each in outcomes:
            lost = failure is not None and each.state is ACCEPTED_STATE
            state = composite(REJECTED, describe(failure)) if lost else each.state
            self.send(composite(DISPOSITION, True, UInt(each.first), UInt(each.last), True, state))

    def link(self, attach: Attach) -> Link:
        """Make the link that an attach requests. Raises AmqpError when its handle is in use."""
        if attach.handle in self.links:
            raise AmqpError("amqp:session:handle-in-use", f"handle {attach.handle} belongs to a different link")
        return OutgoingLink(self, attach) if attach.peer_receives else IncomingLink(self, attach)

    def attached(self, link: Link) -> None:
        """Add a link, answer its attach, and let the peer use it."""
        self.links[link.handle] = link
        self._answer(link, link.attach.source.encoded, link.attach.target.encoded)
        if isinstance(link, IncomingLink):
            link.grant()

    def refused(self, link: Link, error: AmqpError) -> None:
        """Refuse a link as AMQP does: answer its attach without the requested node, and detach it with the reason."""
        wanted = link.attach
        if wanted.peer_receives:
            self._answer(link, None, wanted.target.encoded)
        else:
            self._answer(link, wanted.source.encoded, None)
        self.send(composite(DETACH, UInt(link.handle), True, describe(error)))

    def _answer(self, link: Link, source: Raw | None, target: Raw | None) -> None:
        outgoing = isinstance(link, OutgoingLink)
        offered = Array(map(Symbol, link.offered)) if isinstance(link, OutgoingLink) and link.offered else None
        modes = (UByte(outgoing), UByte(0))  # deliveries out are settled, deliveries in are not
        first_count = UInt(0) if outgoing else None
        role = not outgoing
        ends = (source, target, None, None, first_count, ULong(MAX_MESSAGE), offered)
        self.send(composite(ATTACH, link.name, UInt(link.handle), role, *modes, *ends))

    def on_flow(self, flow: Flow) -> None:
        self._peer_window = max(0, (flow.next_incoming + flow.incoming_window - self._next_outgoing) & SERIAL)
        link = None if flow.handle is None else self.links.get(flow.handle)
        if link is None:
            return self.pump()
        link.on_flow(flow)
        if flow.echo or flow.drain:
            self.flow(link)
        return None

    def on_transfer(self, transfer: Transfer) -> None:
        """Pass a transfer to its link; ignore one that was on its way to a link when the link was detached."""
        self._next_incoming = (self._next_incoming + 1) & SERIAL
        link = self.links.get(transfer.handle)
        if isinstance(link, IncomingLink):
            link.receive(transfer)

    def on_detach(self, handle: int) -> None:
        if link := self.links.get(handle):
            link.detach()

    def pump(self) -> None:
        """Send the next payloads of every outgoing link."""
        for link in list(self.links.values()):
            if isinstance(link, OutgoingLink):
                link.pump()

    def forget(self, link: Link) -> None:
        if self.links.get(link.handle) is link:
            del self.links[link.handle]
            link.on_closed()

    def close(self) -> None:
        """Close every link without a detach."""
        for link in list(self.links.values()):
            self.forget(link)
