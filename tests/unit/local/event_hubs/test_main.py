"""The emulator as a command."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

READY = re.compile(r"event hubs emulator ready on 127\.0\.0\.1:(\d+)\n")
COMMAND = (sys.executable, "-m", "local.event_hubs")


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[subprocess.Popen, int]]:
    process = subprocess.Popen(
        [*COMMAND, "--port", "0", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        try:
            assert process.stdout is not None
            ready = READY.fullmatch(process.stdout.readline())
            assert ready, "the first line says that it is ready"
            yield process, int(ready.group(1))
        finally:
            process.kill()


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=20, check=False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_one_line_when_ready_and_ends_cleanly_when_told(number: signal.Signals) -> None:
    with serving("--hub", "telemetry:16", "--consumer-group", "hubledger") as (process, port):
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        process.send_signal(number)
        rest, complaints = process.communicate(timeout=10)
        assert (process.returncode, rest, complaints) == (0, "", "")


def test_a_signal_cuts_every_connection_and_the_next_is_let_in() -> None:
    with serving() as (process, port):
        with socket.create_connection(("127.0.0.1", port), timeout=5) as cut:
            cut.sendall(b"AMQP\x03\x01\x00\x00")
            assert cut.recv(8) == b"AMQP\x03\x01\x00\x00"
            process.send_signal(signal.SIGUSR1)
            with suppress(ConnectionResetError):
                while cut.recv(1_000):
                    pass
        assert process.stdout is not None
        assert process.stdout.readline() == "cutting 1 connections\n"
        with socket.create_connection(("127.0.0.1", port), timeout=5) as other:
            other.sendall(b"AMQP\x03\x01\x00\x00")
            assert other.recv(8) == b"AMQP\x03\x01\x00\x00"


def test_a_port_in_use_is_one_line_and_exit_code_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        failed = run("--port", str(port))
    assert failed.returncode == 1
    assert failed.stdout == ""
    [line] = failed.stderr.splitlines()
    assert f"127.0.0.1:{port}" in line
    assert "in use" in line


def test_a_database_that_is_none_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "hubs.db").write_text("not a database, but long enough to be looked at" * 50)
    failed = run("--port", "0", "--database", str(tmp_path / "hubs.db"))
    assert failed.returncode == 1
    [line] = failed.stderr.splitlines()
    assert "not a database" in line


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--hub", "telemetry:many"), "'telemetry:many' is not NAME:PARTITIONS"),
        (("--hub", "telemetry:0"), "has 0 partitions"),
        (("--hub", "a", "--hub", "A"), "two hubs have the same name"),
        (("--port", "x"), "invalid int value"),
        (("--port", "70000"), "is not between 0 and 65535"),
        (("--retain", "0"), "retains 0 events"),
        (("--colour",), "unrecognized arguments"),
    ],
)
def test_a_bad_argument_is_one_line_and_exit_code_2(arguments: tuple[str, ...], complaint: str) -> None:
    failed = run(*arguments)
    assert failed.returncode == 2
    [line] = failed.stderr.splitlines()
    assert complaint in line


def test_help_names_every_option() -> None:
    shown = run("--help")
    assert shown.returncode == 0
    for option in ("--hub", "--consumer-group", "--host", "--port", "--database", "--retain"):
        assert option in shown.stdout
