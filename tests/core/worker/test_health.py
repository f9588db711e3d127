import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from core.errors import SettingsRefused
from core.worker.health import Pulse, answering, main, parts
from tests.fakes.builders import FakeClock

ASK = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
STOPPED = "no balancing of partitions began in the last 600 s"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def own(clock: FakeClock) -> Pulse:
    return Pulse(timedelta(seconds=600), clock.monotonic)


def test_a_worker_lives_while_its_rounds_begin(own: Pulse, clock: FakeClock) -> None:
    for _ in range(3):
        clock.advance(600)
        assert own.fault() is None
        own.beat()
    clock.advance(601)
    assert own.fault() == STOPPED


def test_work_that_outlasts_the_limit_hangs_although_rounds_begin(own: Pulse, clock: FakeClock) -> None:
    with own.over("telemetry/$Default/3"), own.over("telemetry/$Default/4"):
        clock.advance(300)
        with pytest.raises(KeyError), own.over("telemetry/$Default/5"):
            clock.advance(301)
            own.beat()
            assert own.fault() == "telemetry/$Default/3 has been in hand for more than 600 s"
            raise KeyError
    clock.advance(600)
    assert own.fault() is None, "work that fails is no longer in hand"


async def sent(address: str, request: bytes) -> str:
    reader, writer = await asyncio.open_connection(*parts(address))
    writer.write(request)
    writer.write_eof()
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return answer.decode()


def served(own: Pulse, use: Callable[[str], Awaitable[Any]]) -> Any:
    async def serving() -> Any:
        async with answering("127.0.0.1:0", own) as address:
            assert address is not None
            return await use(address)

    return asyncio.run(serving())


@pytest.mark.parametrize("line", [b"GET / HTTP/1.1", b"POST /health HTTP/1.1", b"GET /healthy HTTP/1.1", b"\xff"])
def test_nothing_else_than_health_is_answered(own: Pulse, line: bytes) -> None:
    assert "HTTP/1.1 404 " in served(own, lambda address: sent(address, line + b"\r\n\r\n"))


@pytest.mark.parametrize("garbage", [b"", b"GET /health", b"x" * 200_000])
def test_garbage_ends_its_connection_and_not_the_port(own: Pulse, clock: FakeClock, garbage: bytes) -> None:
    async def after_garbage(address: str) -> str:
        with suppress(ConnectionError):  # it was cut off while it still sent
            assert await sent(address, garbage) == ""
        return await sent(address, ASK)

    assert "HTTP/1.1 200 OK\r\n" in served(own, after_garbage)
    clock.advance(601)
    answer = served(own, after_garbage)
    assert answer.startswith("HTTP/1.1 503 ") and answer.endswith(f"\r\n\r\n{STOPPED}\n")


def test_the_command_ends_with_0_for_a_worker_that_lives_and_with_1_for_one_that_does_not(
    own: Pulse, clock: FakeClock, capsys: pytest.CaptureFixture[str]
) -> None:
    def ask(address: str) -> Awaitable[object]:
        return asyncio.to_thread(main, [address])

    assert served(own, ask) == 0
    clock.advance(601)
    assert served(own, ask) == 1
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = "{}:{}".format(*closed.getsockname())
    assert main([address]) == 1
    alive, hangs, silent = capsys.readouterr().out.splitlines()
    assert (alive, hangs) == ("alive", STOPPED)
    assert silent.startswith(f"{address} does not answer: ")


@pytest.mark.parametrize("arguments", [[], ["8080"], ["localhost:http"], ["a:1", "b:2"], ["localhost:70000"]])
def test_the_command_wants_one_address(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == "usage: python -m core.worker.health HOST:PORT\n"


def test_an_address_that_is_taken_is_refused_with_the_option_and_without_one_no_port_is_opened(own: Pulse) -> None:
    async def opened(address: str | None) -> str | None:
        async with answering(address, own) as at:
            return at

    with pytest.raises(SettingsRefused, match=r"--health 127\.0\.0\.1:\d+ cannot be used: "):
        served(own, opened)
    assert asyncio.run(opened(None)) is None
