"""The sessions of AMQP 1.0 (part 2.5): the links on a channel, the numbering of their deliveries, their outcomes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from local.event_hubs.codec import Array, Raw, Symbol, UByte, UInt, ULong, UShort
from local.event_hubs.errors import AmqpError, SessionError
from local.event_hubs.frames import (
    ATTACH,
    BEGIN,
    DETACH,
    DISPOSITION,
    END,
    FLOW,
    SERIAL,
    TRANSFER,
    TRANSFER_OVERHEAD,
    Attach,
    Begin,
    Fields,
    Flow,
    Transfer,
    composite,
    describe,
    difference,
    read_flow,
    read_transfer,
    transfer_frame,
)
from local.event_hubs.links import MAX_MESSAGE, IncomingLink, Link, OutgoingLink
from local.event_hubs.outcomes import Outcome, Outcomes

_WINDOW = 65_536
_HANDLE_MAX = 4999


class Wire(Protocol):
    """The connection, as its sessions see it."""

    @property
    def can_write(self) -> bool: ...

    @property
    def peer_max_frame(self) -> int: ...

    def write(self, data: bytes) -> None: ...

    def send(self, performative: bytes, channel: int) -> None: ...

    def complain(self, action: str, reason: object) -> None: ...


@dataclass(slots=True)
class _CutDelivery:
    """A delivery that the window stopped after some of its frames: its payload from `at` on is still to send."""

    handle: int
    delivery_id: int
    payload: bytes
    at: int = 0


class Session:
    """A session: the links on a channel of a connection, and the numbering of their deliveries.

    `failure` is the fault that ends it, once there is one; from then on its frames are ignored.
    """

    def __init__(self, wire: Wire, channel: int, begin: Begin) -> None:
        self.wire, self.channel = wire, channel
        self.links: dict[int, Link] = {}
        self._next_incoming, self._peer_window = begin.next_outgoing, begin.incoming_window
        self._next_outgoing = self._next_delivery = 0
        self._window = _WINDOW
        self._cut: _CutDelivery | None = None
        self._outcomes = Outcomes(self.send)
        self._farewells: dict[int, tuple[Link, AmqpError]] = {}
        self._left: set[int] = set()  # handles that this side has detached; frames for them may be on their way
        self.failure: SessionError | None = None
        window = UInt(_WINDOW)
        self.send(composite(BEGIN, UShort(channel), UInt(0), window, window, UInt(_HANDLE_MAX)))

    def send(self, performative: bytes) -> None:
        self.wire.send(performative, self.channel)

    @property
    def room(self) -> int:
        """The number of frames that may be sent now."""
        return self._peer_window if self._cut is None and self.wire.can_write else 0

    def is_cut(self, handle: int) -> bool:
        """Return True while a delivery of this link waits for the window with a part of its frames."""
        return self._cut is not None and self._cut.handle == handle

    def deliver(self, handle: int, payloads: list[bytes]) -> int:
        """Send payloads as settled deliveries, as far as the window allows; return the number of those begun.

        The rest of a delivery that the window cuts follows when the peer opens the window.
        """
        largest = self.wire.peer_max_frame - TRANSFER_OVERHEAD
        begun = 0
        frames: list[bytes] = []
        for payload in payloads[: self._peer_window]:
            if len(payload) <= largest:
                frames += (transfer_frame(self.channel, handle, self._next_delivery, payload, False), payload)
                self._peer_window -= 1
            else:
                self._cut = _CutDelivery(handle, self._next_delivery, payload)
                self._continue(frames, largest)
            self._next_delivery = (self._next_delivery + 1) & SERIAL
            begun += 1
            if self._peer_window <= 0:
                break
        self._write(frames)
        return begun

    def _continue(self, frames: list[bytes], largest: int) -> None:
        """Add the next frames of the cut delivery, as far as the window allows."""
        cut = self._cut
        while cut is not None and self._peer_window > 0:
            part = cut.payload[cut.at : cut.at + largest]
            cut.at += largest
            more = cut.at < len(cut.payload)
            frames += (transfer_frame(self.channel, cut.handle, cut.delivery_id, part, more), part)
            self._peer_window -= 1
            if not more:
                self._cut = cut = None

    def _write(self, frames: list[bytes]) -> None:
        self._next_outgoing = (self._next_outgoing + len(frames) // 2) & SERIAL
        self.wire.write(b"".join(frames))

    def flow(self, link: Link | None = None) -> None:
        """Send the peer the state of the session, and that of a link."""
        self._window = _WINDOW
        window = UInt(_WINDOW)
        state: tuple[object, ...] = (UInt(self._next_incoming), window, UInt(self._next_outgoing), window)
        if link is not None:
            credit = UInt(max(0, link.credit))
            state += (UInt(link.handle), UInt(link.delivery_count), credit, None, link.is_draining)
        self.send(composite(FLOW, *state))

    def settle_later(self, outcome: Outcome) -> None:
        """Store the outcome of a delivery until the broker has committed."""
        self._outcomes.add(outcome)

    def settle(self, failure: AmqpError | None) -> None:
        """Send the peer the outcomes so far, and then the ends of links and session that had to wait for them.

        After a failed commit, reject the deliveries that were accepted.
        """
        self._outcomes.settle(failure)
        farewells, self._farewells = self._farewells, {}
        for handle, (link, error) in farewells.items():
            self._outcomes.release(link)
            self.send(composite(DETACH, UInt(handle), True, describe(error)))

    def link(self, attach: Attach) -> Link:
        """Make the link that an attach requests. Raises AmqpError when its handle cannot be used."""
        if attach.handle > _HANDLE_MAX:
            description = f"handle {attach.handle} is above the agreed {_HANDLE_MAX}"
            raise AmqpError("amqp:connection:framing-error", description)
        if attach.handle in self.links or attach.handle in self._farewells:
            raise SessionError("handle-in-use", f"handle {attach.handle} belongs to a different link")
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
        self.detach(link, error)

    def _answer(self, link: Link, source: Raw | None, target: Raw | None) -> None:
        outgoing = isinstance(link, OutgoingLink)
        offered = Array(map(Symbol, link.offered)) if link.offered else None
        wanted = link.attach  # a client ends a link on which it sends when the answer does not repeat its modes
        modes = (UByte(outgoing or wanted.sender_settles), UByte(wanted.receiver_settles))  # deliveries out are settled
        first_count = UInt(0) if outgoing else None
        role = not outgoing
        largest = None if outgoing else ULong(MAX_MESSAGE)  # a stamped event may exceed it, and .NET would drop it
        ends = (source, target, None, None, first_count, largest, offered, None, link.properties or None)
        self.send(composite(ATTACH, link.name, UInt(link.handle), role, *modes, *ends))

    def act(self, code: int, fields: Fields, body: tuple[bytes, int]) -> None:
        """Act on a performative in a frame's body, whose payload begins at the given byte.

        Raises SessionError to end the session, AmqpError to close the connection.
        """
        if code == TRANSFER:
            self._on_transfer(read_transfer(fields, body[0][body[1] :]))
        elif code == FLOW:
            self._on_flow(read_flow(fields))
        elif code == DETACH:
            self._on_detach(fields.number(0))
        elif code != DISPOSITION:  # deliveries are sent settled, so a receiver's disposition changes nothing
            raise AmqpError("amqp:not-implemented", f"performative {code:#x} is not emulated")

    def _on_flow(self, flow: Flow) -> None:
        """Apply a flow, send the payloads that it allows, and answer it."""
        self._peer_window = max(0, flow.incoming_window + difference(flow.next_incoming, self._next_outgoing))
        link = None if flow.handle is None else self._attached(flow.handle)
        if link is not None:
            link.on_flow(flow)
        self.pump()
        if flow.echo and (link is not None or flow.handle is None):
            self.flow(link)

    def _on_transfer(self, transfer: Transfer) -> None:
        self._next_incoming = (self._next_incoming + 1) & SERIAL
        self._window -= 1
        if self._window <= _WINDOW // 2:
            self.flow()
        if (link := self._attached(transfer.handle)) is not None:
            link.receive(transfer)

    def _attached(self, handle: int) -> Link | None:
        """Return the link of a handle, None for one that this side has detached; SessionError when there was none."""
        link = self.links.get(handle)
        if link is None and handle not in self._left:
            raise SessionError("unattached-handle", f"no link is attached with handle {handle}")
        return link

    def _on_detach(self, handle: int) -> None:
        if link := self.links.get(handle):
            self.detach(link)
        self._left.discard(handle)

    def detach(self, link: Link, error: AmqpError | None = None) -> None:
        """Detach a link and send the peer the reason."""
        self._outcomes.release(link)
        self.send(composite(DETACH, UInt(link.handle), True, describe(error)))
        self._leave(link)

    def detach_later(self, link: Link, error: AmqpError) -> None:
        """Detach a link for a fault of its peer, and send the reason after the outcomes of the deliveries so far."""
        self.wire.complain("detach", error)
        self._farewells[link.handle] = link, error
        self._leave(link)

    def _leave(self, link: Link) -> None:
        self._left.add(link.handle)
        if self.links.get(link.handle) is link:
            del self.links[link.handle]
            link.on_closed()
        if self.is_cut(link.handle):
            self._cut = None

    def pump(self) -> None:
        """Send the rest of a cut delivery, and then the next payloads of every outgoing link."""
        if self._cut is not None and self.wire.can_write:
            frames: list[bytes] = []
            self._continue(frames, self.wire.peer_max_frame - TRANSFER_OVERHEAD)
            self._write(frames)
        for link in list(self.links.values()):
            if isinstance(link, OutgoingLink):
                link.pump()

    def pump_soon(self, link: OutgoingLink) -> None:
        """Give a link its next turn after the other work that is due, if it is still attached then."""
        asyncio.get_running_loop().call_soon(self._pump_attached, link)

    def _pump_attached(self, link: OutgoingLink) -> None:
        if self.links.get(link.handle) is link:
            link.take_turn()

    def end(self, error: AmqpError | None = None) -> None:
        """Send an end and close every link."""
        self._outcomes.release()
        self.send(composite(END, describe(error)))
        self.close()

    def close(self) -> None:
        """Close every link without a detach."""
        self._outcomes.drop()
        for link in list(self.links.values()):
            self._leave(link)
