"""`make serve`: emulator and functions host over the files of a demo, until Ctrl-C, for its pages."""

import argparse
import sys
from pathlib import Path

from local.feed.options import port
from local.programs import Interrupted, Interruption, Parser, asked_as
from local.run import PortInUse, refuse_port_in_use
from local.stack.app_totals import reading
from local.stack.folders import LOCAL_RUN, FolderRefused, kept_folder
from local.stack.processes import ChildFailed, Children
from local.stack.stack import Place, Stack

CHECK_EVERY = 1.0  # seconds
RETAINED = 1_000_000_000  # events of a partition: more than any demo publishes


class NothingToServe(Exception):
    """The folder holds no demo."""


def main(arguments: list[str] | None = None) -> int:
    """Return 0 after a signal. Return 1, with one line on stderr, when it cannot start or when a process died."""
    options = _options(arguments)
    interruption = Interruption()
    try:
        folder = _folder(options.folder)
        with reading(folder / "record.db") as record:
            transform = str(record.execute("SELECT transform FROM feed").fetchone()[0])
        refuse_port_in_use(options.port, asked_as("--port"))
        interruption.listen()
        with kept_folder(folder), Children(folder) as children:
            _serve(Stack(Place(folder, host_port=options.port), children, interruption.pause), transform)
    except Interrupted as stopped:
        print(f"serve: {stopped}; make serve starts it again, with the transform as it is then", flush=True)
        return 0
    except (NothingToServe, PortInUse, FolderRefused, ChildFailed) as error:
        print(f"serve: {error}", file=sys.stderr)
        return 1
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = Parser(prog="python -m local.serve", description=__doc__)
    parser.add_argument("--folder", type=Path, metavar="DIR", help="of a demo; default: the newest one")
    parser.add_argument("--port", type=port, default=7071, metavar="P", help="of the functions host; default: 7071")
    return parser.parse_args(arguments)


def _folder(given: Path | None) -> Path:
    folders = [given] if given else sorted((LOCAL_RUN / "demo").glob("run-*"), key=lambda path: path.stat().st_mtime)
    if not folders or not (folders[-1] / "record.db").exists():
        place = given or LOCAL_RUN / "demo"
        raise NothingToServe(f"{place} holds no demo: run make demo first")
    return folders[-1].resolve()


def _serve(stack: Stack, transform: str) -> None:
    """Serve until Interrupted or ChildFailed is raised."""
    emulator = stack.start_emulator("--retain", str(RETAINED))
    stack.migrate(transform)
    host, address = stack.start_host(transform)
    print(f"ready: {address}/api/ops   (Ctrl-C ends it)", flush=True)
    while True:
        stack.pause(CHECK_EVERY)
        for child in (emulator, host):
            child.refuse_dead()


if __name__ == "__main__":
    sys.exit(main())
