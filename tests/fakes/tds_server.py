"""A server that speaks enough TDS 7.4 for Microsoft's driver to sign in and run the store's batches against it.

Its answers come from the Server of tests/fakes/odbc_driver.py. Here are only the bytes ([MS-TDS]): PRELOGIN and LOGIN7
are answered without encryption, batches and the calls of prepared statements with rows or errors.
"""

import io
import re
import select
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime
from typing import Any, BinaryIO

from tests.fakes.odbc_driver import COMMIT, DECLARED, Error, Server, When

BATCH, CALL, ATTENTION, LOGIN, PRELOGIN, RESPONSE = 0x01, 0x03, 0x06, 0x10, 0x12, 0x04
PREPARE_AND_EXECUTE, UNPREPARE = 13, 15
INT, BIGINT_LENGTH, NVARCHAR, DATETIME2 = 0x26, 8, 0xE7, 0x2A
COLLATION = b"\x09\x04\xd0\x00\x34"
MORE, FAULTY, COUNTED, ATTENDED = 0x01, 0x02, 0x10, 0x20
ENDING = re.compile(r"\](?P<text>[^]]*) \((?P<number>\d+)\) \(\w+\)$", re.DOTALL)


class TdsServer:
    """Serves on a free port until it is closed.

    `calls` has the name or number of each procedure called, `prepared` the text of each prepared batch with the types
    of its parameters: a server makes a plan for each pair. `logins` has each sign-in. A batch that
    has the text `holds` is answered after `release`, or not at all when the driver gives it up: `attentions` counts
    that.
    """

    def __init__(self, state: Server | None = None) -> None:
        self.state = state or Server()
        self.calls: list[str | int] = []
        self.prepared: list[tuple[str, str]] = []
        self.logins: list[str] = []
        self.holds: str | None = None
        self.holding = threading.Event()
        self.attentions = 0
        self._released, self._release = socket.socketpair()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._lines: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def connection_string(self, driver: str) -> str:
        return f"DRIVER={{{driver}}};SERVER=127.0.0.1,{self.port};UID=app;PWD=secret;Encrypt=no"

    def release(self) -> None:
        self._release.close()

    def close(self) -> None:
        self.release()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for line in self._lines:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()
        self._released.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                line, _ = self._listener.accept()
                self._lines.append(line)
                threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        with line, line.makefile("rb") as incoming, suppress(OSError, struct.error):  # the line ends amid a message
            while True:
                kind, message = receive(incoming)
                if self._is_given_up(line, message):
                    continue
                answer = self._answer(kind, message)
                if answer is None:
                    break
                send(line, answer)

    def _is_given_up(self, line: socket.socket, message: bytes) -> bool:
        """Hold a batch back as long as `release` or the driver's attention lets it wait."""
        if self.holds is None or self.holds.encode("utf-16-le") not in message:
            return False
        self.holding.set()
        ready, _, _ = select.select([line, self._released], [], [], 60)
        return line in ready

    def _answer(self, kind: int, message: bytes) -> bytes | None:
        if kind == PRELOGIN:
            return prelogin()
        if kind == ATTENTION:
            self.attentions += 1
            return done(0xFD, ATTENDED)
        if kind == LOGIN:
            self.logins.append(message.decode("utf-16-le", "replace"))
            return environment(1, "master") + environment(4, "4096") + sign_in() + done(0xFD)
        body = io.BytesIO(message)
        body.seek(read(body, "I"))  # after the headers
        if kind == BATCH:
            return self._batch(body.read().decode("utf-16-le"))
        if kind != CALL:
            return done(0xFD)
        length = read(body, "H")
        procedure: str | int = read(body, "H") if length == 0xFFFF else body.read(2 * length).decode("utf-16-le")
        body.read(2)
        self.calls.append(procedure)
        if procedure == PREPARE_AND_EXECUTE:
            return self._prepared(list(parameters(body)))
        return ended_call() if procedure == UNPREPARE else types_known() + ended_call()

    def _batch(self, text: str) -> bytes:
        self.state.executed.append((text, []))
        try:
            return results(self.state.answer(text, {})) + done(0xFD)
        except Error as error:
            return fault(error) + done(0xFD, FAULTY)

    def _prepared(self, given: list[Any]) -> bytes | None:
        self.prepared.append((given[2], given[1]))
        text, values = re.sub(r"@P\d+\b", "?", given[2]), given[3:]
        names = DECLARED.findall(text)
        assert len(names) == len(values), (names, values)
        self.state.executed.append((text, values))
        planned = self.state.faults.pop(0) if self.state.faults and COMMIT in text else None
        when = planned[0] if planned else None
        try:
            if planned and when is not When.AFTER:
                raise planned[1]
            answer = self.state.answer(text, dict(zip(names, values, strict=True)))
        except Error as error:
            if error.args[0].startswith("08"):
                return None
            first = result([(0,)]) + done(0xFF, MORE | COUNTED, 1) if when is When.LATE else b""
            return first + fault(error) + done(0xFF, MORE | FAULTY) + handle() + done(0xFE, FAULTY)
        if when is When.AFTER:
            return None
        return results(answer) + ended_call(handle())


def receive(line: BinaryIO) -> tuple[int, bytes]:
    body, status = b"", 0
    while not status & 0x01:
        kind, status, length = struct.unpack(">BBH4x", line.read(8))
        body += line.read(length - 8)
    return kind, body


def send(line: socket.socket, body: bytes) -> None:
    pieces = [body[at : at + 4_088] for at in range(0, len(body), 4_088)]
    for number, piece in enumerate(pieces, 1):
        line.sendall(struct.pack(">BBHHBB", RESPONSE, number == len(pieces), len(piece) + 8, 0, 1, 0) + piece)


def read(body: BinaryIO, form: str) -> int:
    return int(struct.unpack(f"<{form}", body.read(struct.calcsize(f"<{form}")))[0])


def parameters(body: BinaryIO) -> Iterator[Any]:
    """The values of a call: texts and integers are all that the store sends."""
    while length := body.read(1):
        body.read(2 * length[0] + 1)  # its name and how it is passed
        kind = read(body, "B")
        if kind == INT:
            body.read(1)
            value = body.read(read(body, "B"))
            yield int.from_bytes(value, "little", signed=True) if value else None
        elif kind == NVARCHAR:
            yield _text(body, read(body, "H"))
        else:
            raise AssertionError(f"a parameter of type {kind:#x}")


def _text(body: BinaryIO, longest: int) -> str | None:
    body.read(len(COLLATION))
    if longest != 0xFFFF:
        length = read(body, "H")
        return None if length == 0xFFFF else body.read(length).decode("utf-16-le")
    body.read(8)  # the length of all pieces, if it is known
    return b"".join(iter(lambda: body.read(read(body, "I")), b"")).decode("utf-16-le")


def results(answer: list[list[tuple[Any, ...]]]) -> bytes:
    """Return the results of a batch. Nothing at all when it selects nothing."""
    return b"".join(result(rows) + done(0xFF, MORE | COUNTED, len(rows)) for rows in answer)


def result(rows: list[tuple[Any, ...]]) -> bytes:
    columns = b"".join(struct.pack("<IH", 0, 1) + _type(value) + short_text("column") for value in rows[0])
    values = b"".join(b"\xd1" + b"".join(map(_value, row)) for row in rows)
    return struct.pack("<BH", 0x81, len(rows[0])) + columns + values


def _type(value: Any) -> bytes:
    if isinstance(value, datetime):
        return struct.pack("<BB", DATETIME2, 7)
    if isinstance(value, str):
        return struct.pack("<BH", NVARCHAR, 8_000) + COLLATION
    return struct.pack("<BB", INT, BIGINT_LENGTH)


def _value(value: Any) -> bytes:
    if value is None:
        return b"\x00"
    if isinstance(value, datetime):
        midnight = value.replace(hour=0, minute=0, second=0, microsecond=0)
        ticks = (value - midnight).seconds * 10**7 + value.microsecond * 10
        return b"\x08" + ticks.to_bytes(5, "little") + (value.date() - date(1, 1, 1)).days.to_bytes(3, "little")
    if isinstance(value, str):
        return struct.pack("<H", 2 * len(value)) + value.encode("utf-16-le")
    return struct.pack("<Bq", BIGINT_LENGTH, value)


def fault(error: Error) -> bytes:
    """The token of an error that tests/fakes/odbc_driver.py made in the driver's words."""
    found = ENDING.search(error.args[-1])
    assert found, error
    text = found["text"]
    body = struct.pack("<IBBH", int(found["number"]), 1, 16, len(text)) + text.encode("utf-16-le")
    body += short_text("fake") + short_text("") + struct.pack("<I", 1)
    return struct.pack("<BH", 0xAA, len(body)) + body


def short_text(text: str) -> bytes:
    return bytes([len(text)]) + text.encode("utf-16-le")


def done(token: int, status: int = 0, rows: int = 0) -> bytes:
    return struct.pack("<BHHQ", token, status, 0, rows)


def handle() -> bytes:
    return struct.pack("<BI", 0x79, 0) + struct.pack("<BHBBIHBBBi", 0xAC, 0, 0, 1, 0, 0, INT, 4, 4, 1)


def ended_call(status: bytes = struct.pack("<BI", 0x79, 0)) -> bytes:
    return status + done(0xFE)


def types_known() -> bytes:
    """The types that pyodbc asks each new connection for, with the longest text of each."""
    columns = ((NVARCHAR, "TYPE_NAME"), (INT, "DATA_TYPE"), (INT, "PRECISION"))
    forms = {NVARCHAR: struct.pack("<BH", NVARCHAR, 256) + COLLATION, INT: struct.pack("<BB", INT, BIGINT_LENGTH)}
    described = b"".join(struct.pack("<IH", 0, 1) + forms[kind] + short_text(name) for kind, name in columns)
    row = b"\xd1" + b"".join(map(_value, ("nvarchar", -9, 4_000)))
    return struct.pack("<BH", 0x81, 3) + described + row + done(0xFF, MORE | COUNTED, 1)


def environment(kind: int, value: str) -> bytes:
    body = bytes([kind]) + short_text(value) + short_text("")
    return struct.pack("<BH", 0xE3, len(body)) + body


def sign_in() -> bytes:
    body = b"\x01\x74\x00\x00\x04" + short_text("fake") + b"\x10\x00\x03\xe8"
    return struct.pack("<BH", 0xAD, len(body)) + body


def prelogin() -> bytes:
    options = ((0, b"\x10\x00\x03\xe8\x00\x00"), (1, b"\x02"), (2, b"\x00"), (3, b""), (4, b"\x00"))
    at, table, values = 5 * len(options) + 1, b"", b""
    for option, value in options:
        table += struct.pack(">BHH", option, at + len(values), len(value))
        values += value
    return table + b"\xff" + values
