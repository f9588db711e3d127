"""core/worker/health.py: a working worker answers 200, a hanging one names the part that hangs; on a fake clock."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta

import pytest

from core.errors import SettingsRefused
from core.worker.health import Pulse, answering, main, parts
from tests.fakes.builders import FakeClock

LIMIT = timedelta(seconds=600)
ASK = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"


def pulse() -> tuple[Pulse, FakeClock]:
    clock = FakeClock()
    return Pulse(LIMIT, clock.monotonic), clock


def test_a_worker_lives_while_its_rounds_begin() -> None:
    own, clock = pulse()
    for _ in range(3):
        clock.advance(600)
        assert own.fault() is None
        own.beat()


def test_a_worker_whose_rounds_have_stopped_hangs() -> None:
    own, clock = pulse()
    clock.advance(601)
    assert own.fault() == "no balancing of partitions began in the last 600 s"


def test_work_that_outlasts_the_limit_hangs_although_rounds_begin() -> None:
    own, clock = pulse()
    with own.over("telemetry/$Default/3"), own.over("telemetry/$Default/4"):
        clock.advance(300)
        with own.over("telemetry/$Default/5"):
            clock.advance(301)
            own.beat()
            assert own.fault() == "telemetry/$Default/3 has been in hand for more than 600 s"
    assert own.fault() is None


def test_work_that_fails_is_no_longer_in_hand() -> None:
    own, clock = pulse()
    with pytest.raises(KeyError), own.over("a batch"):
        raise KeyError
    clock.advance(601)
    own.beat()
    assert own.fault() is None


async def sent(address: str, request: bytes) -> str:
    reader, writer = await asyncio.open_connection(*parts(address))
    writer.write(request)
    writer.write_eof()
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return answer.decode()


def served(own: Pulse, use: Callable[[str], Awaitable[object]]) -> object:
    async def serving() -> object:
        async with answering("127.0.0.1:0", own) as address:
            assert address is not None
            return await use(address)

    return asyncio.run(serving())


def test_the_port_answers_with_the_fault() -> None:
    own, clock = pulse()
    assert "HTTP/1.1 200 OK\r\n" in str(served(own, lambda address: sent(address, ASK)))
    clock.advance(601)
    answer = str(served(own, lambda address: sent(address, ASK)))
    assert answer.startswith("HTTP/1.1 503 ") and answer.endswith(
        "\r\n\r\nno balancing of partitions began in the last 600 s\n"
    )


@pytest.mark.parametrize(
    "request_line", [b"GET / HTTP/1.1", b"POST /health HTTP/1.1", b"GET /healthy HTTP/1.1", b"\xff"]
)
def test_nothing_else_is_answered(request_line: bytes) -> None:
    own, _ = pulse()
    assert "HTTP/1.1 404 " in str(served(own, lambda address: sent(address, request_line + b"\r\n\r\n")))


@pytest.mark.parametrize("garbage", [b"", b"GET /health", b"x" * 200_000])
def test_garbage_ends_its_connection_and_not_the_port(garbage: bytes) -> None:
    async def after_garbage(address: str) -> str:
        with suppress(ConnectionError):  # it was cut off while it still sent
            assert await sent(address, garbage) == ""
        return await sent(address, ASK)

    own, _ = pulse()
    assert "HTTP/1.1 200 " in str(served(own, after_garbage))


def test_the_command_ends_with_0_for_a_worker_that_lives_and_with_1_for_one_that_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    own, clock = pulse()

    def ask(address: str) -> Awaitable[object]:
        return asyncio.to_thread(main, [address])

    assert served(own, ask) == 0
    clock.advance(601)
    assert served(own, ask) == 1
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = "{}:{}".format(*closed.getsockname())
    assert main([address]) == 1
    alive, hangs, silent = capsys.readouterr().out.splitlines()
    assert (alive, hangs) == ("alive", "no balancing of partitions began in the last 600 s")
    assert silent.startswith(f"{address} does not answer: ")


@pytest.mark.parametrize("arguments", [[], ["8080"], ["localhost:http"], ["a:1", "b:2"], ["localhost:70000"]])
def test_the_command_wants_one_address(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == "usage: python -m core.worker.health HOST:PORT\n"


def test_an_address_that_is_taken_is_refused_with_the_option() -> None:
    own, _ = pulse()

    async def twice(address: str) -> None:
        async with answering(address, own):
            pass

    with pytest.raises(SettingsRefused, match=r"--health 127\.0\.0\.1:\d+ cannot be used: "):
        served(own, twice)


def test_without_an_address_no_port_is_opened() -> None:
    async def nowhere() -> str | None:
        async with answering(None, pulse()[0]) as address:
            return address

    assert asyncio.run(nowhere()) is None
