"""`make real-host`: the acceptance on Microsoft's host where `func` is installed, else on ours, else at an address."""

import argparse
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from local.acceptance.hosts import AnyHost, Func, Somewhere
from local.acceptance.steps import Acceptance, StepFailed, Target
from local.feed.businesses import HOMES
from local.feed.dangers import DEADLY
from local.feed.options import positive
from local.programs import Interrupted, Interruption, Parser
from local.stack import azurite
from local.stack.consumers import Host
from local.stack.folders import LOCAL_RUN, FolderRefused, fresh_folder
from local.stack.processes import Child, ChildFailed, Children, Command, Pause
from local.stack.stack import HUB, FeedOrder, Place, Stack, words_of

DANGEROUS = "local.feed.dangers"
RATE = "1000"


def main(arguments: list[str] | None = None) -> int:
    """Return 0 when every step was taken, 1 with one line on stderr for the step that failed."""
    options = _options(arguments)
    interruption = Interruption()
    interruption.listen()
    try:
        with fresh_folder(options.folder) as folder, Children(folder) as children:
            with _target(options, folder, children, interruption.pause) as (kind, target):
                acceptance = Acceptance(
                    target, folder / "record.db", interruption.pause, options.patience, options.undeliverable
                )
                figures = acceptance.run(partial(_feed, options, acceptance, children))
            print(json.dumps({"host": kind, **figures}), flush=True)
    except (FolderRefused, StepFailed, ChildFailed, azurite.AzuriteFailed) as error:
        print(f"real-host: {error}", file=sys.stderr)
        return 1
    except Interrupted as stopped:
        print(f"real-host: {stopped}", file=sys.stderr)
        return 128 + stopped.signal_number
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = Parser(
        prog="python -m local.acceptance",
        description="Publish events, one that the trigger cannot deliver and one that kills the process; then redrive, "
        "replay and recount. The last line of the output is one JSON object.",
        epilog=f"An app at an address needs TRANSFORM={DANGEROUS}, an empty store and an empty hub.",
    )
    parser.add_argument("--base", metavar="URL", help="of a running app; without it, a host is started")
    parser.add_argument("--hub", metavar="TEXT", help="the connection string of that app's hub")
    parser.add_argument("--store", metavar="sqlite:PATH", help="the SQLite file of that app's store")
    parser.add_argument("--host", choices=("func", "local"), help="default: func where it is installed")
    parser.add_argument("--events", type=positive, default=5_000, metavar="N", help="default: 5000")
    parser.add_argument(
        "--undeliverable",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="publish an event that the trigger cannot deliver; default: yes",
    )
    parser.add_argument("--patience", type=positive, default=300, metavar="S", help="seconds without progress; 300")
    parser.add_argument("--folder", type=Path, default=LOCAL_RUN / "real-host", metavar="DIR")
    options = parser.parse_args(arguments)
    if len({options.base is None, options.hub is None, options.store is None}) > 1:
        parser.error("--base, --hub and --store go together")
    return options


@contextmanager
def _target(
    options: argparse.Namespace, folder: Path, children: Children, pause: Pause
) -> Iterator[tuple[str, Target]]:
    """Yield the kind of the host, and the target. What was started ends with the block."""
    if options.base:
        yield "address", Target(Somewhere(options.base), options.hub, Path(options.store.removeprefix("sqlite:")))
        return
    kind = options.host or ("func" if shutil.which("func") else "local")
    stack = Stack(Place(folder), children, pause)
    stack.start_emulator("--retain", str(max(100_000, options.events)))
    stack.create_store(DANGEROUS)
    with ExitStack() as opened:
        host: AnyHost
        if kind == "func":
            host = Func(stack, children, opened.enter_context(azurite.running(folder)), DANGEROUS)
        else:
            host = Host(stack, DANGEROUS, (DEADLY,))
        print(f"the host is {kind}, at {host.address}", flush=True)
        yield kind, Target(host, stack.connection, stack.place.store)


def _feed(options: argparse.Namespace, acceptance: Acceptance, children: Children) -> Child:
    """Start the feed, connected and about to publish."""
    more = ["--record", str(acceptance.record), "--dangers", "1"]
    more += ["--undeliverable", "1"] if options.undeliverable else []
    order = FeedOrder(HOMES, HOMES.senders_for(options.events), str(options.events), RATE, 1, tuple(more))
    words = ["--connection", acceptance.target.connection, "--hub", HUB, *words_of(order)]
    feed = children.start(Command("feed", "local.feed", words))
    feed.wait_ready("feed ready for ", acceptance.pause)
    return feed


if __name__ == "__main__":
    sys.exit(main())
