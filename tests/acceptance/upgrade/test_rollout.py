"""An upgrade and a rollback under load: two releases over one store, apart and together, with kills in between."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from local.programs import APP
from local.recount.recount import recount
from local.recount.stored import read_log
from local.stack.app_totals import count_accounted, get, read_books
from local.stack.processes import Child, Children, Command
from local.stack.stack import CONSUMER_GROUP, HUB, READER_GROUP, Place, app_settings
from tests.acceptance.upgrade.git import next_release
from tests.patience import until

TRANSFORM = "examples.home_security"
DEADLINE = 60.0  # seconds of an idle machine
PARTITIONS, RATE, PROGRESS = 4, 250, 250  # events: a second of the feed, and those that show an app at work
OPTIONS = ("--gather", "0.1", "--homes", "200", "--lanes", "2", "--events", "endless", "--rate", str(RATE))


@dataclass(frozen=True, slots=True)
class Release:
    """A release of the app, and the folder of its code."""

    name: str
    folder: Path


@dataclass
class Rollout:
    """The processes of the rehearsal; each has its log in the folder."""

    place: Place
    children: Children
    connection: str
    new: Release
    old: Release = Release("old", APP)
    logs: dict[str, list[Path]] = field(default_factory=lambda: {"old": [], "new": []})

    def migrate(self, to: Release) -> list[str]:
        """Bring the store to the schema of a release, and return the lines of the command."""
        number = len(list(self.place.folder.glob("migrate-*.out")))
        settings = {"STORE_CONNECTION": self.place.connection, "TRANSFORM": TRANSFORM}
        command = Command(f"migrate-{number}", "core.store.migrate", [], settings, to.folder)
        child = self.children.start(command)
        child.wait_done(time.sleep)
        return child.output.read_text().splitlines()

    def start(self, release: Release) -> Child:
        """Start the app of a release on its own host; the state of the host is that of the app before it."""
        log = self.place.folder / f"{release.name}-{len(self.logs[release.name])}.log"
        self.logs[release.name].append(log)
        options = ["--app", ".", "--port", "0", "--log", str(log)]
        options += ["--state", str(self.place.folder / "functions-host.db")]
        settings = app_settings(self.connection, self.place, TRANSFORM)
        child = self.children.start(Command(log.stem, "local.functions_host", options, settings, release.folder))
        child.wait_ready("functions host ready on ", time.sleep)
        return child

    def start_feed(self) -> Child:
        options = ["--connection", self.connection, "--hub", HUB, "--record", str(self.record), *OPTIONS]
        feed = self.children.start(Command("feed", "local.feed", options))
        feed.wait_ready("feed ready for ", time.sleep)
        return feed

    @property
    def record(self) -> Path:
        """The file in which the feed records the outcome that each event must have."""
        return self.place.folder / "record.db"

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for a condition; `what` says which."""
        until(holds, DEADLINE, lambda: f"waited for {what}; {self.accounted()} events are accounted for")

    def until_progress(self, events: int = PROGRESS) -> None:
        """Wait until so many events more are accounted for."""
        before = self.accounted()
        self.until(lambda: self.accounted() >= before + events, f"{events} events more than {before}")

    def accounted(self) -> int:
        return count_accounted(self.place.store)

    def ingested(self, release: Release) -> int:
        """Count the batches that the newest process of a release has ingested."""
        log = self.logs[release.name][-1]
        return log.read_text().count('"action": "ingest"') if log.exists() else 0


@contextmanager
def rehearsal(folder: Path) -> Iterator[Rollout]:
    """Start a hub, which the rehearsal ends itself, with the code of the next release beside the present one."""
    new = Release("new", next_release(folder / "next"))
    place = Place(folder)
    with Children(folder) as children:
        options = ["--hub", f"{HUB}:{PARTITIONS}", "--consumer-group", CONSUMER_GROUP]
        options += ["--consumer-group", READER_GROUP, "--database", str(place.hub), "--port", "0"]
        emulator = children.start(Command("emulator", "local.event_hubs", options))
        port = emulator.wait_ready("event hubs emulator ready on ", time.sleep).rpartition(":")[2]
        connection = (
            f"Endpoint=sb://localhost:{port};SharedAccessKeyName=RootManageSharedAccessKey;"
            "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
        )
        yield Rollout(place, children, connection, new)


def events_of_hub(place: Place) -> dict[str, int]:
    """Count the events of each partition in the log of the hub."""
    counts: dict[str, int] = {}
    for partition_id, event in read_log(place.hub):
        assert event.sequence_number == counts.get(partition_id, 0)
        counts[partition_id] = event.sequence_number + 1
    return counts


pytestmark = pytest.mark.soak


def versions(run: Rollout) -> list[int]:
    """Return the numbers of our migrations that the store has."""
    with closing(sqlite3.connect(run.place.store)) as connection:
        return [number for (number,) in connection.execute("SELECT DISTINCT version FROM schema_migration ORDER BY 1")]


def take_over(run: Rollout) -> Child:
    """Migrate while the old app works, start the new app beside it, kill the old one, and return the new one."""
    old = run.start(run.old)
    run.until_progress()
    before = versions(run)
    assert run.migrate(run.new)[-1] == "the store is up to date"
    assert versions(run) > before, "the releases have the same schema"
    run.until_progress()
    assert old.running, old.tail()
    new = run.start(run.new)
    run.until(lambda: run.ingested(run.new) > 2, "the new app ingests beside the old one")
    run.until_progress()
    old.kill()
    return new


def roll_back(run: Rollout, new: Child) -> Child:
    """Kill the new app under load, let the old one work on the new schema and die, and return the new one after it."""
    run.until_progress()
    new.kill()
    old = run.start(run.old)
    run.until_progress()
    old.kill()
    old = run.start(run.old)
    run.until_progress()
    newest = run.start(run.new)
    run.until(lambda: run.ingested(run.new) > 2, "the new app ingests again")
    old.end()
    return newest


def address_of(app: Child) -> str:
    line = next(line for line in app.output.read_text().splitlines() if "functions host ready on " in line)
    return line.rpartition(" ")[2].rstrip("/")


def test_an_upgrade_and_a_rollback_under_load_account_for_each_event_once(tmp_path: Path) -> None:
    with rehearsal(tmp_path) as run:
        run.migrate(run.old)
        feed = run.start_feed()
        newest = roll_back(run, take_over(run))
        feed.end()
        address = address_of(newest)
        run.until(lambda: is_settled(address), "the lag ends and every letter is settled")
        books, audit = read_books(address), json.loads(get(address, "/api/ledger/audit"))
        assert (books.balanced, audit["balanced"], audit["faults"]) == (True, True, [])
    assert recount(run.place.store, run.record) == []
    with closing(sqlite3.connect(run.place.store)) as connection:
        found = connection.execute("SELECT partition_id, sequence_number + 1 FROM event_hub_checkpoint").fetchall()
    assert dict(found) == events_of_hub(run.place)
    assert sum(events_of_hub(run.place).values()) == books.accounted


def is_settled(address: str) -> bool:
    """Return True when all events of the hub are accounted for."""
    books = read_books(address)
    return books.in_hub == books.accounted
