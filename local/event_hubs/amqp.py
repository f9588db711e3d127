"""One AMQP 1.0 server connection: bytes in, SASL, frames to their sessions, bytes out."""

import asyncio
from typing import Any, Protocol

from local.event_hubs import frames, tokens
from local.event_hubs.codec import DecodeError, UInt, UShort
from local.event_hubs.errors import AmqpError, SessionError
from local.event_hubs.frames import Fields, composite, describe
from local.event_hubs.peers import UnreadBytes, described, refuse_foreign
from local.event_hubs.sessions import Link, Session

_CHANNEL_MAX = 4999
_CLOSING_TIME = 2.0  # seconds that a closing connection has to send its last frames
_SHORTEST_BEAT = 0.05  # seconds between heartbeats, for a peer that requests a shorter time
_HEADER_SIZE = 8


class Broker(Protocol):
    """The services that a connection needs."""

    container: str

    def connected(self, connection: "Connection") -> None: ...

    def disconnected(self, connection: "Connection") -> None: ...

    def complain(self, connection: "Connection", action: str, reason: str) -> None: ...

    def sign_in(self, connection: "Connection", name: str, value: str) -> None:
        """Give a connection the rights of a key, or raise AmqpError to refuse it."""

    def attach(self, connection: "Connection", link: Link) -> None:
        """Connect a link to the node at its address, or raise AmqpError to refuse the link."""

    def commit(self) -> None:
        """Make the messages accepted since the last commit durable, or undo them all and raise AmqpError."""


class Connection(asyncio.Protocol):
    """A peer's connection, from its first byte to its last."""

    def __init__(self, broker: Broker) -> None:
        self.peer_max_frame = 512
        self.peer: tuple[Any, ...] = ("unknown", 0)  # its address and port
        self.sessions: dict[int, Session] = {}
        self._broker = broker
        self._transport: asyncio.Transport
        self._heartbeat: asyncio.TimerHandle | None = None
        self._buffer = bytearray()
        self._needed, self._frames = _HEADER_SIZE, 0
        self._negotiating, self._opened, self._full, self._frozen = True, False, False, False
        self._unread: UnreadBytes

    # called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not isinstance(transport, asyncio.Transport):
            raise TypeError(f"a connection needs an asyncio.Transport, not a {type(transport).__name__}")
        self._transport, self._unread = transport, UnreadBytes(transport)
        self.peer = transport.get_extra_info("peername") or self.peer
        self._broker.connected(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._heartbeat:
            self._heartbeat.cancel()
        for session in self.sessions.values():
            session.close()
        self._broker.disconnected(self)

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._pump()

    def data_received(self, data: bytes) -> None:
        """Act on the whole frames, commit once for all of them, and only then answer the senders."""
        self._buffer += data
        if len(self._buffer) < self._needed:
            return
        try:
            del self._buffer[: self._consume(bytes(self._buffer))]
        except DecodeError as error:
            self.fail(AmqpError("amqp:decode-error", str(error)))
        except AmqpError as error:
            self.fail(error)
        self._settle()

    # called by sessions, the broker and the emulator

    @property
    def unfinished(self) -> int | None:
        """The number of the frame that has not come whole (0 for the greeting), or None."""
        return None if self._frozen or (self._opened and not self._buffer) else self._frames

    @property
    def can_write(self) -> bool:
        return not (self._full or self._frozen or self._transport.is_closing())

    def write(self, data: bytes) -> None:
        """Write bytes. Close a connection whose peer lets too many of them wait."""
        if self._transport.is_closing():
            return
        self._transport.write(data)
        try:
            if self._full:
                self._unread.add(len(data))
        except AmqpError as error:
            self._full = False  # so that the close can be written
            self.fail(error)

    def send(self, performative: bytes, channel: int = 0) -> None:
        self.write(frames.frame(performative, channel))

    def close(self, error: AmqpError | None = None) -> None:
        """Send a close and end the connection, even when the peer no longer reads."""
        self.send(composite(frames.CLOSE, describe(error)))
        self._transport.close()
        asyncio.get_running_loop().call_later(_CLOSING_TIME, self._transport.abort)

    def complain(self, action: str, reason: object) -> None:
        self._broker.complain(self, action, str(reason))

    def fail(self, error: AmqpError) -> None:
        """Close the connection for a fault of its peer, and log the fault."""
        self.complain("close", error)
        self.close(error)

    def drop(self) -> None:
        """Cut the connection without a close, as a failing network would."""
        self._transport.abort()

    def freeze(self) -> None:
        """Stop reading and sending, like a server that hangs."""
        if not self._frozen:
            self._frozen = True
            self._transport.pause_reading()

    def thaw(self) -> None:
        """Resume reading and sending after `freeze`."""
        if self._frozen and not self._transport.is_closing():
            self._frozen = False
            self._transport.resume_reading()
            self._pump()

    # bytes

    def _settle(self) -> None:
        failure = None
        try:
            self._broker.commit()
        except AmqpError as error:
            failure = error
        for session in list(self.sessions.values()):
            session.settle(failure)
            if session.failure is not None:
                self._end(session, session.failure)

    def _pump(self) -> None:
        for session in self.sessions.values():
            session.pump()

    def _consume(self, data: bytes) -> int:
        """Act on the whole frames in `data` and return their size in bytes."""
        at = 0
        while not self._transport.is_closing():
            is_fixed = self._negotiating or len(data) - at < _HEADER_SIZE
            self._needed = _HEADER_SIZE if is_fixed else frames.frame_size(data, at)
            if len(data) - at < self._needed:
                break
            if self._negotiating:
                self._negotiate(data[at : at + self._needed])
            else:
                self._read_frame(data[at : at + self._needed])
            at += self._needed
        return at

    def _negotiate(self, header: bytes) -> None:
        self._negotiating = False
        self.write(frames.SASL_HEADER if header == frames.SASL_HEADER else frames.AMQP_HEADER)
        if header == frames.SASL_HEADER:
            self.write(tokens.sasl_mechanisms())
        elif header != frames.AMQP_HEADER:
            self.complain("greet", described(header))
            self._transport.close()  # AMQP 1.0 part 2.2: answer an unknown header with a supported one, and end

    def _read_frame(self, data: bytes) -> None:
        self._frames += self._opened
        size, offset, kind, channel = frames.FRAME_HEADER.unpack_from(data)
        start = 4 * offset
        if not _HEADER_SIZE <= start <= size or kind not in (frames.AMQP_FRAME, frames.SASL_FRAME):
            raise AmqpError("amqp:connection:framing-error", f"a frame of kind {kind} has its body at byte {start}")
        if start == size:  # a heartbeat
            return
        body = data[start:]
        code, fields, end = frames.read_performative(body)
        if kind == frames.SASL_FRAME:
            self._on_sasl(code, fields)
        elif code in (frames.OPEN, frames.BEGIN, frames.CLOSE):
            self._on_connection_frame(code, fields, channel)
        elif (session := self.sessions.get(channel)) and session.failure is None:  # the SDK detaches after an end
            self._on_session_frame(session, code, fields, (body, end))

    # frames

    def _on_sasl(self, code: int, fields: Fields) -> None:
        if self._opened or code != frames.SASL_INIT:
            raise AmqpError("amqp:illegal-state", "SASL has ended")
        try:
            if (key := tokens.read_sasl_choice(fields)) is not None:
                self._broker.sign_in(self, *key)
        except AmqpError as error:
            self.write(tokens.sasl_outcome(is_welcome=False))
            self.complain("sign_in", error)
            self._transport.close()
        else:
            self.write(tokens.sasl_outcome(is_welcome=True))
            self._negotiating = True

    def _on_connection_frame(self, code: int, fields: Fields, channel: int) -> None:
        if (code == frames.OPEN) == self._opened:
            raise AmqpError("amqp:illegal-state", "open must come once, as the first performative")
        if code == frames.OPEN:
            self._on_open(fields)
        elif code == frames.CLOSE:
            self.close()
        elif channel in self.sessions or channel > _CHANNEL_MAX:
            raise AmqpError("amqp:illegal-state", f"no session can begin on channel {channel}")
        else:
            self.sessions[channel] = Session(self, channel, frames.read_begin(fields))

    def _on_open(self, fields: Fields) -> None:
        peer = frames.read_open(fields)
        refuse_foreign(peer.hostname)
        self._opened, self.peer_max_frame = True, min(peer.max_frame, frames.MAX_FRAME)
        self.send(composite(frames.OPEN, self._broker.container, None, UInt(frames.MAX_FRAME), UShort(_CHANNEL_MAX)))
        if peer.idle_timeout:
            self._beat(max(_SHORTEST_BEAT, peer.idle_timeout / 2000))

    def _beat(self, seconds: float) -> None:
        if not self._frozen:
            self.write(frames.HEARTBEAT)
        self._heartbeat = asyncio.get_running_loop().call_later(seconds, self._beat, seconds)

    def _on_session_frame(self, session: Session, code: int, fields: Fields, body: tuple[bytes, int]) -> None:
        try:
            if code == frames.ATTACH:
                self._on_attach(session, fields, body[0])
            elif code == frames.END:
                self._end(session)
            else:
                session.act(code, fields, body)
        except SessionError as error:
            self.complain("end", error)
            session.failure = error  # the end goes out after the outcomes of the deliveries so far

    def _on_attach(self, session: Session, fields: Fields, body: bytes) -> None:
        link = session.link(frames.read_attach(fields, body))
        try:
            link.refuse_other_nodes()
            self._broker.attach(self, link)
        except AmqpError as error:
            self.complain("attach", f"{error} (the link is to '{link.address[:200]}')")
            session.refused(link, error)
        else:
            session.attached(link)

    def _end(self, session: Session, error: AmqpError | None = None) -> None:
        del self.sessions[session.channel]
        session.end(error)
