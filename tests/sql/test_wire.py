"""tests/sql/wire.py: requests counted as they pass, and a line that is cut before or after one, on loopback."""

import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from tests.offenders import holds_for
from tests.patience import allowed
from tests.sql.wire import Cut, Requests, Wire

BATCH, CALL, TRANSACTION, ATTENTION, SIGN_IN, PRELOGIN = 0x01, 0x03, 0x0E, 0x06, 0x10, 0x12


def packet(kind: int, body: bytes = b"body", *, last: bool = True) -> bytes:
    return struct.pack(">BBHHBB", kind, last, 8 + len(body), 0, 1, 0) + body


def hidden(body: bytes) -> bytes:
    """A record of TLS 1.2 that carries data."""
    return struct.pack(">BHH", 0x17, 0x0303, len(body)) + body


@holds_for([BATCH, CALL, TRANSACTION])
def test_a_message_is_a_request_and_ends_with_its_last_packet(kind: int) -> None:
    requests = Requests()
    assert requests.feed(packet(kind, last=False) + packet(kind, last=False)) == (True, 0)
    assert requests.feed(packet(kind)) == (True, 1)


@holds_for([ATTENTION, SIGN_IN, PRELOGIN])
def test_signing_in_and_giving_up_are_no_requests(kind: int) -> None:
    assert Requests().feed(packet(kind)) == (False, 0)


def test_two_requests_may_come_in_one_piece() -> None:
    assert Requests().feed(packet(CALL) + packet(BATCH)) == (True, 2)


@holds_for([1, 3, 7, 8, 9, 13])
def test_a_request_counts_once_however_it_is_cut_into_pieces(size: int) -> None:
    requests, sent = Requests(), packet(PRELOGIN) + packet(CALL, b"x" * 50, last=False) + packet(CALL) + packet(BATCH)
    assert sum(requests.feed(sent[at : at + size])[1] for at in range(0, len(sent), size)) == 2


def test_behind_tls_a_request_is_what_is_sent_between_two_answers() -> None:
    requests = Requests()
    assert requests.feed(hidden(b"x" * 400) + hidden(b"y" * 90)) == (True, 1)
    assert requests.feed(hidden(b"z")) == (False, 0)
    requests.answered()
    assert requests.feed(hidden(b"x" * 9)) == (True, 1)


def test_a_sign_in_behind_tls_may_be_followed_by_open_requests() -> None:
    requests = Requests()
    requests.feed(packet(PRELOGIN) + hidden(b"x" * 300))
    requests.answered()
    assert requests.feed(packet(CALL)) == (True, 1)


class Peer:
    """Answers each message with its own body, and knows what it has seen."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while True:
            try:
                line, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(line,), daemon=True).start()

    def serve(self, line: socket.socket) -> None:
        with line, line.makefile("rb") as stream:
            while header := stream.read(8):
                body = stream.read(struct.unpack(">H", header[2:4])[0] - 8)
                self.seen.append(body)
                line.sendall(packet(0x04, body))


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer()
    yield made
    made.listener.shutdown(socket.SHUT_RDWR)
    made.listener.close()


@pytest.fixture
def wire(peer: Peer) -> Iterator[Wire]:
    made = Wire(*peer.listener.getsockname())
    yield made
    made.close()


def ask(line: socket.socket, kind: int, body: bytes) -> bytes:
    """The answer to a message, nothing when the line is cut."""
    try:
        line.sendall(packet(kind, body))
        answer = line.recv(1_000)
    except OSError:
        return b""
    return answer[8:]


def test_what_passes_is_passed_on_and_requests_and_the_bytes_of_clients_are_counted(wire: Wire) -> None:
    with socket.create_connection(("127.0.0.1", wire.port), timeout=allowed(10)) as line:
        assert ask(line, PRELOGIN, b"hello") == b"hello"
        assert wire.requests == 0
        assert [ask(line, CALL, b"%d" % number) for number in range(3)] == [b"0", b"1", b"2"]
    assert (wire.requests, wire.sent) == (3, len(packet(PRELOGIN, b"hello")) + 3 * len(packet(CALL, b"0")))


def test_a_request_that_is_cut_before_never_arrives(wire: Wire, peer: Peer) -> None:
    wire.cut(Cut.BEFORE)
    with socket.create_connection(("127.0.0.1", wire.port), timeout=allowed(10)) as line:
        assert ask(line, PRELOGIN, b"hello") == b"hello"
        assert ask(line, CALL, b"lost") == b""
    assert peer.seen == [b"hello"]


def test_a_request_that_is_cut_after_arrives_and_is_not_answered(wire: Wire, peer: Peer) -> None:
    wire.cut(Cut.AFTER)
    with socket.create_connection(("127.0.0.1", wire.port), timeout=allowed(10)) as line:
        assert ask(line, PRELOGIN, b"hello") == b"hello"
        assert ask(line, CALL, b"done") == b""
    assert peer.seen == [b"hello", b"done"]


@pytest.mark.parametrize("where", list(Cut))
def test_the_next_line_goes_through_again(wire: Wire, where: Cut) -> None:
    wire.cut(where)
    for expected in (b"", b"again"):
        with socket.create_connection(("127.0.0.1", wire.port), timeout=allowed(10)) as line:
            assert ask(line, CALL, b"again") == expected


def test_a_server_that_is_not_there_is_a_line_that_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    wire = Wire("127.0.0.1", port)
    with socket.create_connection(("127.0.0.1", wire.port), timeout=allowed(10)) as line:
        assert ask(line, CALL, b"anyone") == b""
    wire.close()


@pytest.mark.parametrize(
    ("given", "server", "rest"),
    [
        ("DRIVER={x};SERVER=host,1500;UID=a;Encrypt=no", ("host", 1500), "DRIVER={x};UID=a;Encrypt=no"),
        ("Server=tcp:host.example;Database=d;Encrypt=optional;", ("host.example", 1433), "Database=d;Encrypt=optional"),
        ("UID=a;Encrypt=no;server = 10.0.0.1 , 99", ("10.0.0.1", 99), "UID=a;Encrypt=no"),
        ("SERVER=h;TrustServerCertificate=yes", ("h", 1433), "TrustServerCertificate=yes"),
    ],
)
def test_the_string_leads_through_the_wire(given: str, server: tuple[str, int], rest: str) -> None:
    wire, through = Wire.before(given)
    wire.close()
    assert wire.server == server
    assert through == f"{rest};SERVER=127.0.0.1,{wire.port}"


def test_a_certificate_is_still_that_of_the_server() -> None:
    wire, through = Wire.before("SERVER=host;UID=a")
    wire.close()
    assert through.endswith(f";SERVER=127.0.0.1,{wire.port};HostNameInCertificate=host")


def test_a_string_that_names_no_server_is_refused() -> None:
    with pytest.raises(ValueError, match="names no server"):
        Wire.before("DSN=x;UID=server=a")
