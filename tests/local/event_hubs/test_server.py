"""Starting, stopping, and calls from other threads."""

import asyncio
import gc
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from local.event_hubs import Emulator, HubSettings
from local.event_hubs.frames import AMQP_HEADER
from tests.patience import allowed


def make(database: Path | None = None) -> Emulator:
    return Emulator([HubSettings("telemetry", 2)], database)


def connect(emulator: Emulator) -> socket.socket:
    return socket.create_connection(("127.0.0.1", emulator.port), timeout=allowed(5))


def greeted(emulator: Emulator) -> bool:
    with connect(emulator) as connection:
        connection.sendall(AMQP_HEADER)
        return connection.recv(8) == AMQP_HEADER


def test_it_listens_while_the_block_runs_and_again_on_its_port_even_after_an_error(tmp_path: Path) -> None:
    emulator = make(tmp_path / "hubs.db")
    with pytest.raises(ZeroDivisionError), emulator.running():
        assert greeted(emulator)
        raise ZeroDivisionError
    with pytest.raises(ConnectionRefusedError):
        connect(emulator)
    for _ in range(2):
        with emulator.running(port=emulator.port):
            assert greeted(emulator)


def test_a_port_in_use_leaves_the_database_closed(tmp_path: Path, taken_port: int) -> None:
    with pytest.raises(OSError, match="in use"), make(tmp_path / "hubs.db").running(port=taken_port):
        pass
    with make(tmp_path / "hubs.db").running():
        pass


@pytest.mark.asyncio
async def test_it_runs_on_the_callers_loop_and_may_be_called_from_there() -> None:
    emulator = make()
    await emulator.start()
    with pytest.raises(RuntimeError, match="running already"):
        await emulator.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", emulator.port)
    writer.write(AMQP_HEADER)
    assert await reader.readexactly(8) == AMQP_HEADER
    assert emulator.connection_count == 1
    emulator.drop_connections()
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await reader.readexactly(1)
    writer.close()
    await emulator.stop()


def test_connections_that_say_nothing_or_only_just_came_do_not_outlive_the_stop() -> None:
    for _ in range(30):
        emulator = make()
        with emulator.running():
            connection = connect(emulator)
        with connection, suppress(ConnectionResetError):
            while connection.recv(1024):  # until the server hangs up; a timeout fails
                pass
    gc.collect()  # a transport that was left would warn, and a warning is an error


def test_what_cannot_be_is_refused() -> None:
    emulator = make()
    assert emulator.end_of("telemetry") == {"0": -1, "1": -1}
    with pytest.raises(KeyError):
        emulator.end_of("nowhere")
    with pytest.raises(RuntimeError, match="not running"):
        emulator.let_time_pass()
    with pytest.raises(ValueError, match="an emulator needs a key"):
        Emulator([HubSettings("telemetry")], keys=())
