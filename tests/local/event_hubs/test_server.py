import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from local.event_hubs import Emulator, HubSettings
from local.event_hubs.__main__ import main
from local.event_hubs.frames import AMQP_HEADER, SASL_HEADER
from tests.patience import allowed


def make(database: Path | None = None) -> Emulator:
    return Emulator([HubSettings("telemetry", 2)], database)


def connect(emulator: Emulator) -> socket.socket:
    return socket.create_connection(("127.0.0.1", emulator.port), timeout=allowed(5))


def greeted(emulator: Emulator) -> bool:
    with connect(emulator) as connection:
        connection.sendall(AMQP_HEADER)
        return connection.recv(8) == AMQP_HEADER


def test_it_listens_while_the_block_runs_and_again_on_its_port_after_an_error(tmp_path: Path, taken_port: int) -> None:
    emulator = make(tmp_path / "hubs.db")
    with pytest.raises(OSError, match="in use"), emulator.running(port=taken_port):
        pass
    with pytest.raises(ZeroDivisionError), emulator.running():
        assert greeted(emulator)
        raise ZeroDivisionError
    with pytest.raises(ConnectionRefusedError):
        connect(emulator)
    for _ in range(2):
        with emulator.running(port=emulator.port):
            assert greeted(emulator)


READY = re.compile(r"event hubs emulator ready on 127\.0\.0\.1:(\d+)\n")


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[subprocess.Popen, int]]:
    command = [sys.executable, "-m", "local.event_hubs", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready = READY.fullmatch(process.stdout.readline())
            assert ready, "the first line says that it is ready"
            yield process, int(ready.group(1))
        finally:
            process.kill()


def greet(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=allowed(5))
    connection.sendall(SASL_HEADER)
    assert connection.recv(8) == SASL_HEADER
    return connection


def test_a_signal_cuts_every_connection_and_the_next_is_accepted_and_another_recreates_every_hub() -> None:
    with serving("--hub", "telemetry:2", "--hub", "alarms") as (process, port):
        assert process.stdout is not None
        with greet(port) as cut:
            process.send_signal(signal.SIGUSR1)
            with suppress(ConnectionResetError):
                while cut.recv(1_000):
                    pass
        assert process.stdout.readline() == "cutting 1 connections\n"
        greet(port).close()
        process.send_signal(signal.SIGUSR2)
        assert process.stdout.readline() == "recreating telemetry, alarms\n"


def test_a_port_in_use_or_a_broken_database_is_one_line_and_exit_code_1(
    tmp_path: Path, taken_port: int, capsys: pytest.CaptureFixture
) -> None:
    assert main(["--port", str(taken_port)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(f".*127.0.0.1:{taken_port}.*in use\n", printed.err)
    (tmp_path / "hubs.db").write_text("not a database, but long enough to be read as one" * 50)
    assert main(["--port", "0", "--database", str(tmp_path / "hubs.db")]) == 1
    assert re.fullmatch(".*not a database\n", capsys.readouterr().err)


def test_a_bad_argument_is_one_line_and_exit_code_2(capsys: pytest.CaptureFixture) -> None:
    complaints = {
        "--hub telemetry:many": "'telemetry:many' is not NAME:PARTITIONS",
        "--hub telemetry:0": "has 0 partitions",
        "--hub a/b:2": "'a/b' is not a name",
        "--hub a --hub A": "two hubs have the same name",
        "--port x": "invalid int value",
        "--port 70000": "is not between 0 and 65535",
        "--host 0.0.0.0": "invalid choice: '0.0.0.0'",
        "--retain 0": "retains 0 events",
        "--lead -1": "lets publishers lead by -1 events",
        "--colour": "unrecognized arguments",
    }
    for arguments, complaint in complaints.items():
        with pytest.raises(SystemExit, match=r"^2$"):
            main(arguments.split())
        assert re.fullmatch(f".*{complaint}.*\n", capsys.readouterr().err), arguments
