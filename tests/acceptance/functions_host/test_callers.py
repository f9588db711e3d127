"""Attacks on the host by a stranger's page in a browser of this machine, and by a client that is slow on purpose.

They are raw bytes on a socket, because an HTTP client would mend or refuse most of them.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from local.functions_host import HostOptions
from tests.acceptance.functions_host.sample import Hubs, Sample, seen, serving_sample
from tests.local.functions_host.doubles import eventually
from tests.patience import allowed

pytestmark = pytest.mark.asyncio

PATIENCE, DEADLINE, DRIP = timedelta(seconds=0.3), 10, 0.02
JSON = "Content-Type: application/json"
FAULTS = '{"skip":1}'
ADDRESSES = (
    "/admin/host/ping",
    "/admin/functions",
    "/api/nothing",
    "/nowhere",
    "/runtime/webhooks/durabletask/instances",
)
FOREIGN_HOSTS = (
    "Host: evil.example",
    "Host: localhost.evil.example:7071",
    "Host: evil.example:7071/localhost",
    "Host: localhost@evil.example",
    "Host: evil@localhost",
    "Host: 127.0.0.1.nip.io",
    "Host: localhost.",
    "Host: 0.0.0.0:7071",
    "Host: 192.168.0.7:7071",
    "Host: localhost:80:80",
    "Host: localhost evil.example",
    "Host: [::1]evil.example",
    "Host: [::ffff:127.0.0.1]",
    "Host:",
    "X-Forwarded-Host: localhost",
)
FOREIGN_ORIGINS = (
    "https://evil.example",
    "http://localhost.evil.example",
    "http://127.0.0.1.nip.io:7071",
    "http://evil.example:7071#http://localhost",
    "http://localhost@evil.example",
    "https://localhost:7071/",
    "file://localhost",
    "chrome-extension://localhost",
    "localhost",
    "null",
    "",
)


@pytest.fixture
def options() -> HostOptions:
    return HostOptions(patience=PATIENCE)


@pytest_asyncio.fixture
async def sample(app: Path, options: HostOptions) -> AsyncIterator[Sample]:
    async with serving_sample(app, options, Hubs()) as sample:
        yield sample


def request(line: str, *headers: str, body: str = "") -> bytes:
    length = (f"Content-Length: {len(body)}",) if body else ()
    return "\r\n".join((f"{line} HTTP/1.1", *headers, *length, "Connection: close", "", body)).encode()


@asynccontextmanager
async def connected(sample: Sample) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a connection, and fail when its use does not end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", sample.host.port)
    try:
        async with asyncio.timeout(allowed(DEADLINE)):
            yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def status_of(sample: Sample, sent: bytes) -> int:
    """Send the bytes, and return the status of the answer."""
    async with connected(sample) as (reader, writer):
        writer.write(sent)
        line = await reader.readline()
    return int(line.split()[1])


async def test_a_foreign_host_is_refused_at_every_address(sample: Sample) -> None:
    for host in FOREIGN_HOSTS:
        for address in ADDRESSES:
            assert await status_of(sample, request(f"GET {address}", host)) in (400, 421), (host, address)
    twice = request("GET /admin/host/ping", "Host: localhost", "Host: evil.example")
    assert await status_of(sample, twice) in (400, 421)


async def test_every_name_of_loopback_is_answered_at_every_port(sample: Sample) -> None:
    for host in ("localhost", "LOCALHOST:7071", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:65535"):
        own = (f"Host: {host}", f"Origin: http://{host}")
        assert await status_of(sample, request("GET /admin/host/ping", *own)) == 200, host


async def test_a_foreign_origin_is_refused_whatever_the_request_is(sample: Sample) -> None:
    for origin in FOREIGN_ORIGINS:
        caller = ("Host: localhost", f"Origin: {origin}")
        orders = (
            request("POST /admin/functions/tick", *caller, JSON, body="{}"),
            request("OPTIONS /admin/faults", *caller, "Access-Control-Request-Method: POST"),
            request("PUT /api/echo", *caller, body="x"),
            request("GET /api/nothing", *caller),
        )
        assert [await status_of(sample, each) for each in orders] == [403] * 4, origin
    own, foreign = "Origin: http://localhost:7071", "Origin: https://evil.example"
    assert await status_of(sample, request("GET /api/nothing", "Host: localhost", own, foreign)) in (400, 403)
    assert not seen("tick")
    assert not seen("echo")


async def test_a_form_of_any_page_gives_admin_no_order(sample: Sample) -> None:
    forms = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp")
    for address in ("/admin/faults", "/ADMIN/host/drain", "/admin/host/drain", "/admin/functions/tick"):
        for kind in forms:
            order = request(f"POST {address}", "Host: localhost", f"Content-Type: {kind}", body=FAULTS)
            assert await status_of(sample, order) == 415, (address, kind)
        assert await status_of(sample, request(f"POST {address}", "Host: localhost")) == 415, address
    assert sample.host.state == "Running"
    order = request("POST /admin/functions/tick", "Host: localhost", JSON + "; charset=utf-8", body="{}")
    assert await status_of(sample, order) == 202
    await eventually(lambda: seen("tick"))


async def drip(sample: Sample, start: bytes, endless: bytes) -> bytes:
    """Send a start, and the rest again and again; return all that the host answered before it closed."""
    answer = bytearray()
    async with connected(sample) as (reader, writer):
        writer.write(start)
        with suppress(ConnectionError):
            while not reader.at_eof():
                writer.write(endless)
                with suppress(TimeoutError):
                    answer += await asyncio.wait_for(reader.read(1000), DRIP)
    return bytes(answer)


async def test_headers_that_trickle_end_their_connection(sample: Sample) -> None:
    assert await drip(sample, b"", b"") == b""
    assert await drip(sample, b"GET /api/no", b"o") == b""
    assert await drip(sample, b"GET /api/nothing HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", b"x") == b""
    second = request("GET /api/nothing", "Host: localhost").replace(b"Connection: close\r\n", b"")
    answer = await drip(sample, second + b"GET /api/no", b"o")
    assert answer.count(b"HTTP/1.1") == 1


async def test_a_body_that_trickles_ends_its_connection_before_a_function_runs(sample: Sample) -> None:
    bodies = (("Content-Length: 100000", b"x"), ("Transfer-Encoding: chunked", b"1\r\nx\r\n"))
    lines = ("PUT /api/echo", "POST /admin/faults", "GET /nowhere")
    starts = [
        (request(line, "Host: localhost", JSON, length).replace(b"Connection: close\r\n", b""), endless)
        for line in lines
        for length, endless in bodies
    ]
    answers = await asyncio.gather(*(drip(sample, *each) for each in starts))
    assert [(answer[:13], answer.count(b"HTTP/1.1")) for answer in answers] == [(b"HTTP/1.1 408 ", 1)] * len(starts)
    assert not seen("echo")


async def test_many_slow_connections_leave_the_host_answering(sample: Sample) -> None:
    slow = [asyncio.create_task(drip(sample, b"POST /api/echo HTTP/1.1\r\n", b"")) for _ in range(100)]
    assert await sample.request("GET", "/api/nothing") == (204, b"")
    assert set(await asyncio.gather(*slow)) == {b""}
