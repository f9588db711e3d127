"""The demo of an IoT Hub: a replay by device with a kill, an erasure of one device, and the proof of both."""

import argparse
import http.client
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from local.demo.operator import NotDone, done_task
from local.feed.businesses import HOMES
from local.feed.devices import EVENT_KEY
from local.recount.recount import recount, recount_others
from local.stack.app_totals import BooksUnavailable, count_survived, get, reading
from local.stack.consumers import Host
from local.stack.processes import Pause
from local.stack.stack import Place

TRANSFORM = "local.feed.devices"
SETTINGS = {"EVENT_KEY": EVENT_KEY, "ORDER_POLICY": "hold_key"}
FEED = ("--iot", "--registered")  # a reading before its home's registration would hold the registration
REPLAYED = 5  # devices
# The devices with the most letters, and among them with the most rows.
_DEVICES = """
SELECT partition_key FROM event WHERE partition_key IS NOT NULL GROUP BY partition_key
ORDER BY SUM(body IS NOT NULL) DESC, COUNT(*) DESC, partition_key LIMIT ?
"""
# Files that may name an erased device: the files of the hub, and the record of the feed.
_OF_HUB = ("event-hubs", "record", "before-erasure")


@dataclass(frozen=True, slots=True)
class Drill:
    """The figures of a replay and an erasure, the erased device, and the differences before the erasure."""

    figures: Mapping[str, object]
    erased: str
    differences: list[str]


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--iot",
        action="store_true",
        help="publish the events as an IoT Hub sends them, each home as a device: EVENT_KEY is the device id, and "
        "ORDER_POLICY is hold_key; kill the host (once, or K times), replay some devices, and erase one",
    )


def complete(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse what does not go with --iot, and set its kill."""
    if not options.iot:
        return
    others = ("chaos", "undeliverable", "aggregate", "workers")
    if options.transform is not HOMES or any(getattr(options, name) for name in others):
        named = ", ".join(f"--{name}" for name in others)
        parser.error(f"argument --iot: it needs the events of {HOMES.name} and the functions host, without {named}")
    options.kill = options.kill or 1


def replay_and_erase(host: Host, place: Place, record: Path, pause: Pause) -> Drill:
    """Replay devices while the host is killed, recount, and erase one of the devices. Raises NotDone."""
    with reading(record) as connection:
        devices = [device for (device,) in connection.execute(_DEVICES, (REPLAYED,))]
    print(f"replaying devices {', '.join(devices)}", flush=True)
    order = {"keys": devices, "dry_run": False, "reason": "the demo replays by device"}
    replay = done_task(host, "replay", order, pause, host.kill_one)
    store = place.server.copy(place.folder / "before-erasure.db") if place.server else place.store
    differences = recount(store, record)
    erased = devices[0]
    found, held = _places(host, erased), count_survived(place.live)["held"]
    print(f"erasing device {erased}", flush=True)
    order = {"subjects": [erased], "dry_run": False, "reason": "the demo forgets a device"}
    erasure = done_task(host, "erasure", order, pause)
    if left := _places(host, erased):
        differences.append(f"erasure: a search finds {left} numbers of {erased}")
    figures = {
        "held": held,
        "devices_replayed": replay["keys"],
        "events_replayed": replay["counts"]["events"],
        "rows_replaced": replay["counts"]["rows_retracted"],
        "numbers_found": found,
        "rows_erased": erasure["rows"],
        "letters_erased": erasure["letters"],
    }
    if not all(figures.values()):
        raise NotDone(f"replay and erasure prove too little, and more events prove more: {figures}")
    return Drill(figures, erased, differences)


def _places(host: Host, device: str) -> int:
    """Return the count of numbers that a search for a device finds."""
    try:
        return len(json.loads(get(host.address, f"/api/revealed/ledger?key={device}&limit=100"))["places"])
    except (BooksUnavailable, OSError, http.client.HTTPException) as error:
        raise NotDone(f"the search for a device has no answer: {error}") from error


def differences_of(drill: Drill, store: Path, record: Path) -> list[str]:
    """Return the differences before and after the erasure, and the files that must not name the device and do."""
    with closing(sqlite3.connect(store)) as connection:  # a deleted row stays in its page until then
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    files = (one for one in sorted(store.parent.iterdir()) if one.is_file() and not one.name.startswith(_OF_HUB))
    named = [f"erasure: {one.name} names {drill.erased}" for one in files if drill.erased.encode() in one.read_bytes()]
    return [*drill.differences, *recount_others(store, record, drill.erased), *named]
