"""The command line: `python -m local.functions_host --app DIR`."""

import argparse
import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from core.worker.__main__ import ignore_signals, stop_at_signal
from local.functions_host.errors import REFUSED, HostError
from local.functions_host.host import FunctionsHost, HostOptions
from local.functions_host.logs import configure_logs
from local.functions_host.partition_pump import REOPEN_AFTER
from local.functions_host.supervisor import WITH_PARENT, Supervisor, command_of, free_port


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT. Return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    chosen = _parser().parse_args(given)
    try:
        configure_logs(chosen.log and chosen.log.resolve(), verbose=chosen.verbose)
        if chosen.like_azure and not chosen.ends_with_parent:
            return Supervisor(command_of(given, free_port(chosen.port)), time.monotonic).run()
        if chosen.ends_with_parent:
            threading.Thread(target=_end_with_parent, daemon=True).start()
        asyncio.run(_run(chosen))
    except (HostError, OSError) as error:
        print(f"functions host: {error}", file=sys.stderr)
        return REFUSED if chosen.ends_with_parent else 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m local.functions_host",
        description="Run the function_app.py of a folder on this machine: HTTP, timer, Event Hubs and Durable.",
        epilog="SIGTERM or Ctrl-C drains: triggers stop, running functions finish, host checkpoints are written. "
        "A second Ctrl-C ends at once. Keys are not checked; it listens on loopback only.",
    )
    parser.add_argument(
        "--app", type=Path, default=Path(), metavar="DIR", help="folder of host.json and function_app.py"
    )
    parser.add_argument("--port", type=_port, default=7071, help="HTTP port, 0 for any free one (default 7071)")
    parser.add_argument(
        "--state", type=Path, metavar="PATH", help="SQLite file for host checkpoints, timers and Durable"
    )
    parser.add_argument(
        "--storage",
        metavar="CONNECTION",
        help="connection string of a storage account for host checkpoints, UseDevelopmentStorage=true for Azurite",
    )
    parser.add_argument(
        "--reopen-after",
        type=_seconds,
        default=REOPEN_AFTER,
        metavar="SECONDS",
        help="until a reader that stopped on an event is opened again; default: 30, as in Azure",
    )
    parser.add_argument(
        "--longest-pause",
        type=_seconds,
        metavar="SECONDS",
        help="between two tries of a function; default: as its retry policy says, as in Azure",
    )
    parser.add_argument(
        "--like-azure",
        action="store_true",
        help="start again after a death, as Azure's host does with its worker, and end at the third in half an hour",
    )
    parser.add_argument(WITH_PARENT, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, metavar="PATH", help="append one JSON object per log record")
    parser.add_argument("--verbose", action="store_true", help="show all records on the terminal, not only warnings")
    return parser


def _end_with_parent() -> None:
    """Wait until the other end of standard input closes, which it does whenever the parent ends."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"must be 0 to 65535, not {text!r}")
    return int(text)


def _seconds(text: str) -> timedelta:
    try:
        return timedelta(seconds=float(text))
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"must be a number of seconds, not {text!r}") from None


async def _run(chosen: argparse.Namespace) -> None:
    state = chosen.state and chosen.state.resolve()
    waits = {"reopen_after": chosen.reopen_after, "longest_pause": chosen.longest_pause}
    options = HostOptions(port=chosen.port, state=state, storage=chosen.storage, **waits)
    host = FunctionsHost(chosen.app, options)
    stopping = asyncio.Event()
    stop_at_signal(stopping.set)
    try:
        await host.start()
        for line in host.routes:
            print(f"  {line}")
        print(f"functions host ready on {host.base_url}", flush=True)
        await stopping.wait()
        signal.signal(signal.SIGINT, lambda *_: os._exit(1))
        await host.stop()
    finally:
        ignore_signals()


if __name__ == "__main__":
    sys.exit(main())
