"""The sessions of AMQP 1.0 (parts 2.5 and 2.6): links, credit, the numbering of deliveries, and their outcomes.

The broker decides what a link serves. An outcome waits for the commit, and then until its publisher's lead is short.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from local.event_hubs import frames
from local.event_hubs.codec import Array, Raw, Symbol, UByte, UInt, ULong, UShort
from local.event_hubs.errors import AmqpError, MalformedMessage, NotEmulated, SessionError
from local.event_hubs.frames import SERIAL, Attach, Fields, Flow, Transfer, composite, describe, difference

ACCEPTED_STATE = composite(frames.ACCEPTED)
MAX_MESSAGE = 1_048_576  # bytes: the limit of the Standard tier
CHUNK = 262_144  # bytes that a link passes to the socket at once; the last event may exceed it
TURN = 4  # takes of a link before the other links have their turns
_CREDIT = 1_000
_OVERRUN = 10_000  # deliveries without credit: azure-eventhub takes this credit for granted, whatever it is given
_WINDOW = 65_536
_HANDLE_MAX = 4999


class Gate(Protocol):
    """The reason for which an outcome waits after the commit."""

    @property
    def is_too_long(self) -> bool: ...

    def wait(self, resume: Callable[[], None]) -> None:
        """Call `resume` once, at the end of the wait."""


@dataclass(slots=True, eq=False)
class Outcome:
    """The state of a range of deliveries of a link. The sender of those that are settled gets no word of it."""

    link: "IncomingLink"
    first: int
    last: int
    state: Raw
    gate: Gate | None = None
    is_settled: bool = False

    def takes(self, later: "Outcome") -> bool:
        """Return True, and take the place of a later outcome, when it goes on where this one ends."""
        alike = later.state is self.state and later.gate is self.gate and later.link is self.link
        if not alike or later.is_settled is not self.is_settled or later.first != (self.last + 1) & SERIAL:
            return False
        self.last = later.last
        return True


class Outcomes:
    """The outcomes of one session. `send` takes each performative."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._new: list[Outcome] = []
        self._held: dict[Outcome, None] = {}

    def add(self, outcome: Outcome) -> None:
        """Store an outcome until the broker has committed."""
        if not self._new or not self._new[-1].takes(outcome):
            self._new.append(outcome)

    def settle(self, failure: AmqpError | None) -> None:
        """Send the outcomes after a commit, or hold them. After a failed one reject what was accepted."""
        outcomes, self._new = self._new, []
        for each in outcomes:
            if failure is not None and each.state is ACCEPTED_STATE:
                each.state, each.gate = composite(frames.REJECTED, describe(failure)), None
            if each.gate is not None and each.gate.is_too_long:
                self._held[each] = None
                each.link.hold()
                each.gate.wait(partial(self._resume, each))
            else:
                self._answer(each)

    def release(self, link: object | None = None) -> None:
        """Send the outcomes that are held, of a link that ends or of all."""
        for each in list(self._held):
            if link is None or each.link is link:
                del self._held[each]
                self._answer(each)

    def drop(self) -> None:
        """Forget every outcome: the peer is gone."""
        self._held.clear()

    def _resume(self, each: Outcome) -> None:
        """Give credit first: a peer that gets an outcome may send at once."""
        if each in self._held:
            del self._held[each]
            each.link.resume()
            self._answer(each)

    def _answer(self, each: Outcome) -> None:
        if not each.is_settled:
            self._send(composite(frames.DISPOSITION, True, UInt(each.first), UInt(each.last), True, each.state))


class Link:
    """One end of a link. `on_closed` is called once, when it is detached or its connection ends."""

    def __init__(self, session: "Session", attach: Attach) -> None:
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
            if terminus.kind not in (None, frames.SOURCE, frames.TARGET):
                raise NotEmulated(f"a link to a terminus of kind {terminus.kind!r}")

    def on_flow(self, flow: Flow) -> None:
        """Apply a flow of the peer to this link. The flow of a sender changes nothing."""

    def receive(self, transfer: Transfer) -> None:
        """Detach the link, because the peer may not send on a link on which it receives."""
        self.detach(AmqpError("amqp:not-allowed", "a transfer came over a link on which the peer receives"))

    def detach(self, error: AmqpError | None = None) -> None:
        self.session.detach(self, error)


class OutgoingLink(Link):
    """A link over which the peer receives.

    `take` returns the next payloads, up to the given number and about CHUNK bytes of them.
    """

    def __init__(self, session: "Session", attach: Attach) -> None:
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

        Ask for a next turn when more could be sent. Otherwise answer a drain. Do nothing before a turn that is due.
        """
        if self._has_turn:
            return
        for _ in range(TURN):
            if self.credit > 0 and not self._next:  # look even while the window is closed: a drain has to know
                self._next = self.take(max(1, min(self.credit, self.session.room)))
            room = min(self.credit, self.session.room)
            if not self._next or room <= 0:
                break
            begun = self.session.deliver(self.handle, self._next[:room])
            del self._next[:begun]
            self.credit -= begun
            self.delivery_count = (self.delivery_count + begun) & SERIAL
        else:
            self._has_turn = True
            self.session.pump_soon(self)
        if self._owes_drain and not self._has_turn:
            self._drain()

    def take_turn(self) -> None:
        self._has_turn = False
        self.pump()

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

    `accept` takes each message and its format, and returns the reason for which its outcome may have to wait. An
    AmqpError from it rejects the message.
    """

    def __init__(self, session: "Session", attach: Attach) -> None:
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
        self._size += len(transfer.payload)
        if self._size > MAX_MESSAGE:
            self._parts.clear()
        elif transfer.payload:
            self._parts.append(transfer.payload)
        if not transfer.more:
            self._take(first.delivery_id, first.message_format)
        return None

    def _start_over(self) -> None:
        self._first, self._is_settled, self._parts, self._size = None, False, [], 0

    def _end(self, condition: str, description: str) -> None:
        self.session.detach_later(self, AmqpError(condition, description))

    def _take(self, delivery_id: int, message_format: int) -> None:
        """Accept the message that is whole now, and store its outcome."""
        state, failure, gate = ACCEPTED_STATE, None, None
        try:
            if self._size > MAX_MESSAGE:  # in the service's words
                raise AmqpError(
                    "amqp:link:message-size-exceeded",
                    f"The received message (delivery-id:{delivery_id}, size:{self._size} bytes) exceeds the limit "
                    f"({MAX_MESSAGE} bytes) currently allowed on the link.",
                )
            gate = self.accept(b"".join(self._parts), message_format)
        except AmqpError as error:
            failure, state = error, composite(frames.REJECTED, describe(error))
        self.session.settle_later(Outcome(self, delivery_id, delivery_id, state, gate, self._is_settled))
        self._start_over()
        if isinstance(failure, MalformedMessage):
            self.session.detach_later(self, failure)
        else:
            self._count()

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

    `failure` is the fault that ends it, once there is one. From then on its frames are ignored.
    """

    def __init__(self, wire: Wire, channel: int, begin: frames.Begin) -> None:
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
        self.send(composite(frames.BEGIN, UShort(channel), UInt(0), window, window, UInt(_HANDLE_MAX)))

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
        """Send payloads as settled deliveries, as far as the window allows. Return the number of those begun.

        The rest of a delivery that the window cuts follows when the peer opens the window.
        """
        largest = self.wire.peer_max_frame - frames.TRANSFER_OVERHEAD
        begun = 0
        parts: list[bytes] = []
        for payload in payloads[: self._peer_window]:
            if len(payload) <= largest:
                parts += (frames.transfer_frame(self.channel, handle, self._next_delivery, payload, False), payload)
                self._peer_window -= 1
            else:
                self._cut = _CutDelivery(handle, self._next_delivery, payload)
                self._continue(parts, largest)
            self._next_delivery = (self._next_delivery + 1) & SERIAL
            begun += 1
            if self._peer_window <= 0:
                break
        self._write(parts)
        return begun

    def _continue(self, parts: list[bytes], largest: int) -> None:
        """Add the next frames of the cut delivery, as far as the window allows."""
        cut = self._cut
        while cut is not None and self._peer_window > 0:
            part = cut.payload[cut.at : cut.at + largest]
            cut.at += largest
            more = cut.at < len(cut.payload)
            parts += (frames.transfer_frame(self.channel, cut.handle, cut.delivery_id, part, more), part)
            self._peer_window -= 1
            if not more:
                self._cut = cut = None

    def _write(self, parts: list[bytes]) -> None:
        self._next_outgoing = (self._next_outgoing + len(parts) // 2) & SERIAL
        self.wire.write(b"".join(parts))

    def flow(self, link: Link | None = None) -> None:
        """Send the peer the state of the session, and the state of a link."""
        self._window = _WINDOW
        window = UInt(_WINDOW)
        state: tuple[object, ...] = (UInt(self._next_incoming), window, UInt(self._next_outgoing), window)
        if link is not None:
            credit = UInt(max(0, link.credit))
            state += (UInt(link.handle), UInt(link.delivery_count), credit, None, link.is_draining)
        self.send(composite(frames.FLOW, *state))

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
            self.send(composite(frames.DETACH, UInt(handle), True, describe(error)))

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
        self.send(composite(frames.ATTACH, link.name, UInt(link.handle), role, *modes, *ends))

    def act(self, code: int, fields: Fields, body: tuple[bytes, int]) -> None:
        """Act on a performative in a frame's body, whose payload begins at the given byte.

        Raises SessionError to end the session, AmqpError to close the connection.
        """
        if code == frames.TRANSFER:
            self._on_transfer(frames.read_transfer(fields, body[0][body[1] :]))
        elif code == frames.FLOW:
            self._on_flow(frames.read_flow(fields))
        elif code == frames.DETACH:
            handle = fields.number(0)
            if link := self.links.get(handle):
                self.detach(link)
            self._left.discard(handle)
        elif code != frames.DISPOSITION:  # deliveries are sent settled, so a receiver's disposition changes nothing
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
        """Return the link of a handle, None for one that this side has detached.

        Raises SessionError when there was none.
        """
        link = self.links.get(handle)
        if link is None and handle not in self._left:
            raise SessionError("unattached-handle", f"no link is attached with handle {handle}")
        return link

    def detach(self, link: Link, error: AmqpError | None = None) -> None:
        self._outcomes.release(link)
        self.send(composite(frames.DETACH, UInt(link.handle), True, describe(error)))
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
            parts: list[bytes] = []
            self._continue(parts, self.wire.peer_max_frame - frames.TRANSFER_OVERHEAD)
            self._write(parts)
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
        self._outcomes.release()
        self.send(composite(frames.END, describe(error)))
        self.close()

    def close(self) -> None:
        """Close every link without a detach."""
        self._outcomes.drop()
        for link in list(self.links.values()):
            self._leave(link)
