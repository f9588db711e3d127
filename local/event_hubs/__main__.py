"""The emulator as a command: it serves hubs until a signal ends it."""

import argparse
import asyncio
import logging
import signal
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from local.event_hubs.hubs import DEFAULT_RETAINED_EVENTS, HubSettings
from local.event_hubs.lead import DEFAULT_LEAD
from local.event_hubs.server import Emulator
from local.programs import ShortForm

_FAILED = 1
LOOPBACK = ("127.0.0.1", "localhost", "::1")  # no other machine, because the key is public
_EPILOG = """
examples:
  python -m local.event_hubs
  python -m local.event_hubs --hub telemetry:16 --hub alarms:4 --consumer-group hubledger --database hubs.db

The connection string is
  Endpoint=sb://localhost:PORT;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true

SIGTERM or Ctrl-C ends the emulator. SIGUSR1 cuts every connection without notice, as a failing network would.
SIGUSR2 deletes every hub and creates it again: same name, no events, a new time of creation.
"""


class _Parser(argparse.ArgumentParser):
    """A parser that reports a bad argument in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m local.event_hubs",
        description="A local Azure Event Hubs that the SDKs talk to over AMQP.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--hub", dest="hubs", action="append", metavar="NAME[:PARTITIONS]", help="repeatable; default telemetry:4")
    add(
        "--consumer-group",
        dest="groups",
        action="append",
        default=[],
        metavar="NAME",
        help="a group of every hub; repeatable",
    )
    add("--host", default="127.0.0.1", choices=LOOPBACK, help="address to listen on (default: %(default)s)")
    add("--port", type=int, default=5672, help="port to listen on, 0 for a free one (default: %(default)s)")
    add("--database", type=Path, metavar="PATH", help="store the events in this SQLite file (default: in memory)")
    add(
        "--retain",
        type=int,
        default=DEFAULT_RETAINED_EVENTS,
        metavar="N",
        help="retain the last N events of each partition (default: %(default)s)",
    )
    add(
        "--lead",
        type=int,
        default=DEFAULT_LEAD,
        metavar="N",
        help="publishers wait once they are N events ahead of a partition's owner; 0: they never wait "
        "(default: %(default)s)",
    )
    return parser


def _hub(text: str, options: argparse.Namespace) -> HubSettings:
    name, colon, partitions = text.partition(":")
    if colon and not partitions.isdecimal():
        raise ValueError(f"'{text}' is not NAME:PARTITIONS: give a number after the colon")
    return HubSettings(name, int(partitions or 4), tuple(options.groups), options.retain, lead=options.lead or None)


async def _serve(emulator: Emulator, host: str, port: int) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)

    def cut() -> None:
        print(f"cutting {emulator.connection_count} connections", flush=True)
        emulator.drop_connections()

    def recreate() -> None:
        print(f"recreating {', '.join(emulator.hub_names)}", flush=True)
        for hub in emulator.hub_names:
            emulator.recreate(hub)

    loop.add_signal_handler(signal.SIGUSR1, cut)
    loop.add_signal_handler(signal.SIGUSR2, recreate)
    await emulator.start(host, port)
    print(f"event hubs emulator ready on {host}:{emulator.port}", flush=True)
    await ended.wait()
    await emulator.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT. Return the exit code: 1 when it cannot start, 2 for a bad argument."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not 0 <= options.port <= 65_535:
        parser.error(f"port {options.port} is not between 0 and 65535")
    try:
        emulator = Emulator([_hub(text, options) for text in options.hubs or ["telemetry"]], options.database)
    except ValueError as error:
        parser.error(str(error))
    log = logging.StreamHandler(sys.stderr)
    log.setFormatter(ShortForm())
    logging.basicConfig(level=logging.WARNING, handlers=[log])
    try:
        asyncio.run(_serve(emulator, options.host, options.port))
    except (OSError, sqlite3.Error, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        print(f"{parser.prog}: cannot start on {options.host}:{options.port}: {reason}", file=sys.stderr)
        return _FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
