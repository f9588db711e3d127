"""`make serve`: emulator and functions host over what a demo left behind, until Ctrl-C, to look at its pages."""

import argparse
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from local.feed.options import positive
from local.folders import LOCAL_RUN, FolderInUse, kept_folder
from local.interruption import Interrupted, Interruption
from local.processes import ChildFailed, Children
from local.run import PortInUse, refuse_port_in_use
from local.stack import Place, Stack

LOOKED_AFTER = 1.0  # seconds
RETAINED = 1_000_000_000  # events of a partition: whatever the demo published


class NothingToServe(Exception):
    """The folder is not what a demo left."""


def main(arguments: list[str] | None = None) -> int:
    """0 when it was stopped; 1 and one line on stderr when it cannot start, or when a process died."""
    options = _options(arguments)
    interruption = Interruption()
    try:
        folder = _folder(options.folder)
        transform = _transform(folder)
        refuse_port_in_use(options.port, "--port")
        interruption.listen()
        with kept_folder(folder), Children(folder) as children:
            _serve(Stack(Place(folder, host_port=options.port), children, interruption.pause), transform)
    except Interrupted as stopped:
        print(f"serve: {stopped}", flush=True)
        return 0
    except (NothingToServe, PortInUse, FolderInUse, ChildFailed) as error:
        print(f"serve: {error}", file=sys.stderr)
        return 1
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local.serve", description=__doc__)
    parser.add_argument("--folder", type=Path, metavar="DIR", help="default: of the newest demo that was kept")
    parser.add_argument("--port", type=positive, default=7071, metavar="P", help="of the functions host; default: 7071")
    return parser.parse_args(arguments)


def _folder(given: Path | None) -> Path:
    kept = [given] if given else sorted((LOCAL_RUN / "demo").glob("run-*"), key=lambda path: path.stat().st_mtime)
    if not kept or not (kept[-1] / "record.db").exists():
        place = given or LOCAL_RUN / "demo"
        raise NothingToServe(f"{place} holds no demo: make demo AGGREGATE=1 keeps its own, --keep any other one's")
    return kept[-1].resolve()


def _transform(folder: Path) -> str:
    with closing(sqlite3.connect(f"{(folder / 'record.db').as_uri()}?mode=ro", uri=True)) as record:
        return str(record.execute("SELECT transform FROM feed").fetchone()[0])


def _serve(stack: Stack, transform: str) -> None:
    """Interrupted ends it, or ChildFailed."""
    emulator = stack.start_emulator("--retain", str(RETAINED))
    stack.migrate()
    host, address = stack.start_host(transform)
    print(f"ready: {address}/api/ops   (Ctrl-C ends it)", flush=True)
    while True:
        stack.pause(LOOKED_AFTER)
        for child in (emulator, host):
            child.refuse_dead()


if __name__ == "__main__":
    sys.exit(main())
