"""Two releases of the app over one hub, one store and one state of the host, while a feed publishes without an end."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from local.programs import APP
from local.recount.stored import read_log
from local.stack.app_totals import count_accounted
from local.stack.processes import Child, Children, Command
from local.stack.stack import CONSUMER_GROUP, HUB, READER_GROUP, Place, app_settings
from tests.acceptance.upgrade.next_release import next_release
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
