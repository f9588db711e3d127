"""`make run`: emulator, store, functions host and feed until Ctrl-C, with a line of progress every other second."""

import argparse
import errno
import os
import socket
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from core.errors import HubledgerError
from core.settings import read_settings
from core.transforms.loading import check_transform
from local.feed.businesses import sample_of
from local.feed.options import add_domain, choose_domain, choose_senders, port, rate_word, seed
from local.programs import Interrupted, Interruption, Parser, asked_as
from local.stack.app_totals import Watch, count_accounted
from local.stack.folders import LOCAL_RUN, FolderRefused, kept_folder
from local.stack.processes import Child, ChildFailed, Children
from local.stack.sql_server import RUNS, ServerRefused, add_store, prepared
from local.stack.stack import FeedOrder, Place, Stack, app_settings

PROGRESS_EVERY = 2.0  # seconds


class PortInUse(Exception):
    """A different process uses a port of the run."""


def main(arguments: list[str] | None = None) -> int:
    """Return 0 after a signal. Return 1, with one line on stderr, when it cannot start or when a process died."""
    interruption = Interruption()
    try:
        options = _options(arguments)
        place = Place(options.folder.resolve(), options.hub_port, options.port, options.store)
        refuse_port_in_use(options.hub_port, asked_as("--hub-port"))
        refuse_port_in_use(options.port, asked_as("--port"))
        transform = options.transform.transform
        settings = read_settings({**os.environ, **app_settings("Endpoint=sb://unknown-yet/", place, transform)})
        check_transform(settings.transform)
        interruption.listen()
        with (
            kept_folder(place.folder),
            prepared(place.server, RUNS, interruption.pause),
            Children(place.folder) as children,
        ):
            _run(options, Stack(place, children, interruption.pause))
    except Interrupted as stopped:
        print(f"run: {stopped}; its state stays in {options.folder}", flush=True)
        return 0
    except (PortInUse, FolderRefused, ChildFailed, ServerRefused, HubledgerError) as error:
        print(f"run: {error}", file=sys.stderr)
        return 1
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = Parser(
        prog="python -m local.run",
        description="Run emulator, store, functions host and feed on this machine until Ctrl-C. The state stays in "
        ".local-run, and the next run continues from it.",
    )
    add_domain(parser)
    add_store(parser)
    parser.add_argument(
        "--rate", type=rate_word, default="1000", metavar="R|full", help="events a second; default: 1000"
    )
    parser.add_argument("--seed", type=seed, default=1, metavar="S", help="of the events; default: 1")
    parser.add_argument("--hub-port", type=port, default=5672, metavar="P", help="of the emulator; default: 5672")
    parser.add_argument("--port", type=port, default=7071, metavar="P", help="of the functions host; default: 7071")
    parser.add_argument(
        "--folder", type=Path, metavar="DIR", help="default: .local-run/run, and a folder of the transform"
    )
    options = parser.parse_args(arguments)
    choose_domain(parser, options, sample_of)
    choose_senders(parser, options)
    options.folder = options.folder or LOCAL_RUN / "run" / options.transform.transform
    return options


def size_of(folder: Path) -> str:
    return f"{sum(one.stat().st_size for one in folder.rglob('*') if one.is_file()) / 1e6:,.0f} MB"


def refuse_port_in_use(port: int, option: str) -> None:
    """Raise PortInUse when no process could listen on a port."""
    try:
        with socket.socket() as candidate:
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            candidate.bind(("127.0.0.1", port))
    except OSError as error:
        taken = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
        raise PortInUse(f"port {port} {taken}: choose another with {option}") from error


def _run(options: argparse.Namespace, stack: Stack) -> None:
    print(f"starting an Event Hubs emulator on port {options.hub_port}, the store in {stack.place.live},")
    source = f"{options.transform.source(options.senders)}, at {options.rate} events/s"
    print(f"the functions host on port {options.port}, and a feed of {source}")
    print(f"its files lie in {stack.place.folder} ({size_of(stack.place.folder)})")
    print(f"pages: http://localhost:{options.port}/api/ops   (Ctrl-C ends all)", flush=True)
    children = [stack.start_emulator()]
    stack.migrate(options.transform.transform)
    host, address = stack.start_host(options.transform.transform)
    start = datetime.now(UTC).isoformat(timespec="seconds")
    order = FeedOrder(options.transform, options.senders, "endless", options.rate, options.seed, ("--start", start))
    children += [host, stack.start_feed(order)]
    _print_until_stopped(address, children, stack)


def _print_until_stopped(address: str, children: list[Child], stack: Stack) -> None:
    """Print the progress until Interrupted or ChildFailed is raised."""
    printed, printed_at = count_accounted(stack.place.live), time.monotonic()
    with Watch(address) as watch:
        while True:
            stack.pause(PROGRESS_EVERY)
            for child in children:
                child.refuse_dead()
            accounted, now = count_accounted(stack.place.live), time.monotonic()
            print(_line(watch, accounted, (accounted - printed) / (now - printed_at)), flush=True)
            printed, printed_at = accounted, now


def _line(watch: Watch, accounted: int, events_per_second: float) -> str:
    books = watch.books
    if books is None:
        return f"accounted {accounted:,}  waiting for the app's books {watch.silence}"
    published = "?" if books.in_hub is None else f"{max(books.in_hub, accounted):,}"
    lag = "?" if books.in_hub is None else f"{max(books.in_hub - accounted, 0):,}"
    balanced = "balanced" if books.balanced else "NOT BALANCED"
    return (
        f"published {published}  accounted {accounted:,}  lag {lag}  letters {books.dead_lettered:,}"
        f"  {events_per_second:,.0f} events/s  ledger {balanced}{books.stopped}"
    )


if __name__ == "__main__":
    sys.exit(main())
