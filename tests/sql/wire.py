"""A proxy between the driver and a T-SQL server, which counts the requests on the wire and can cut the line.

A request is a TDS message (type 0x01, 0x03 or 0x0E, ended by the bit of its last packet, [MS-TDS] 2.2.3.1). Where TLS
hides the messages, a request is all that the client sends between two answers.
"""

import re
import socket
import struct
import threading
from contextlib import suppress
from enum import Enum, auto

REQUESTS = {0x01, 0x03, 0x0E}  # a batch, a remote procedure call, a transaction request
HEADER, LAST, TLS_DATA, TLS_HEADER = 8, 0x01, 0x17, 5
DEFAULT_PORT = 1433
_SERVER = re.compile(r"(?<![^;])\s*server\s*=\s*(?:tcp:)?([^,;{}\\]+?)\s*(?:,\s*(\d+))?\s*(?=;|$)", re.I)
_UNVERIFIED = re.compile(r"encrypt\s*=\s*(no|optional)|trustservercertificate\s*=\s*(yes|true|1)", re.I)


class Cut(Enum):
    """The place of a cut around the next request."""

    BEFORE = auto()  # the server never sees it
    AFTER = auto()  # the server answers, and the client never sees that


class Requests:
    """A counter of the requests in a client's stream, which arrives piece by piece."""

    def __init__(self) -> None:
        self._rest = b""
        self._answered = True

    def feed(self, piece: bytes) -> tuple[bool, int]:
        """Return true when this piece holds a request or a part of one, and the number of requests that end in it."""
        self._rest += piece
        seen, ended = False, 0
        while len(self._rest) >= HEADER:
            seen = seen or self._hidden() or self._rest[0] in REQUESTS
            if len(self._rest) < (length := self._length()):
                break
            ended += self._ends_request()
            self._rest = self._rest[length:]
        return seen, ended

    def answered(self) -> None:
        self._answered = True

    def _length(self) -> int:
        at, before = (3, TLS_HEADER) if self._hidden() else (2, 0)
        return max(HEADER, before + int(struct.unpack(">H", self._rest[at : at + 2])[0]))

    def _ends_request(self) -> bool:
        if not self._hidden():
            return self._rest[0] in REQUESTS and bool(self._rest[1] & LAST)
        first, self._answered = self._answered, False
        return first

    def _hidden(self) -> bool:
        return self._rest[0] == TLS_DATA and self._rest[1] == 3


class Wire:
    """A proxy that listens on a free port of 127.0.0.1 and passes all bytes on."""

    def __init__(self, host: str, port: int) -> None:
        self.requests = self.sent = 0  # sent: bytes of clients
        self.server = (host, port)
        self._cut: Cut | None = None
        self._lock = threading.Lock()
        self._lines: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    @staticmethod
    def before(connection_string: str) -> "tuple[Wire, str]":
        found = _SERVER.search(connection_string)
        if found is None:
            raise ValueError("the connection string names no server as SERVER=HOST or SERVER=HOST,PORT")
        wire = Wire(found[1], int(found[2] or DEFAULT_PORT))
        rest = connection_string[: found.start()] + connection_string[found.end() :].lstrip(";")
        name = "" if _UNVERIFIED.search(rest) else f";HostNameInCertificate={found[1]}"
        return wire, f"{rest.rstrip('; ')};SERVER=127.0.0.1,{wire.port}{name}"

    def cut(self, where: Cut) -> None:
        """Cut the line around the next request. The request after it, on a new line, goes through.

        Under TLS a sign-in looks like a request: call this after the sign-in.
        """
        self._cut = where

    def close(self) -> None:
        """Cut every line and stop listening."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            lines, self._lines = self._lines, []
        for line in lines:
            _hang_up(line)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.server)
            except OSError:
                _hang_up(client)
                continue
            with self._lock:
                self._lines += [client, server]
            line = _Line(self, client, server)
            for pump in (line.send, line.answer):
                threading.Thread(target=pump, daemon=True).start()

    def _take_cut(self, where: Cut) -> bool:
        with self._lock:
            taken = self._cut is where
            if taken:
                self._cut = None
        return taken

    def _count(self, ended: int, sent: int) -> None:
        with self._lock:
            self.requests += ended
            self.sent += sent


class _Line:
    """One connection of the proxy: requests go to the server, answers to the client."""

    def __init__(self, wire: Wire, client: socket.socket, server: socket.socket) -> None:
        self._wire, self._client, self._server = wire, client, server
        self._requests = Requests()
        self._cutting = False

    def send(self) -> None:
        with suppress(OSError):
            while piece := self._client.recv(65_536):
                seen, ended = self._requests.feed(piece)
                self._wire._count(ended, len(piece))
                if seen and self._wire._take_cut(Cut.BEFORE):
                    break
                if ended and self._wire._take_cut(Cut.AFTER):
                    self._cutting = True
                self._server.sendall(piece)
        self._hang_up()

    def answer(self) -> None:
        with suppress(OSError):
            while piece := self._server.recv(65_536):
                self._requests.answered()
                if self._cutting:
                    break
                self._client.sendall(piece)
        self._hang_up()

    def _hang_up(self) -> None:
        _hang_up(self._client)
        _hang_up(self._server)


def _hang_up(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
    line.close()
