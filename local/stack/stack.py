"""The processes of a local run and their connections: emulator, store, functions host or workers, feed."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from local.feed.businesses import Domain
from local.stack.app_totals import LiveStore
from local.stack.folders import HOST_READY
from local.stack.processes import Child, Children, Command, Pause
from local.stack.sql_server import Server

HUB, PARTITIONS, CONSUMER_GROUP, READER_GROUP = "telemetry", 16, "hubledger", "hubledger-reader"
# A run takes minutes, not days: letters are retried soon and often.
LETTERS = {
    "DEAD_LETTER_BASE_SECONDS": "1",
    "DEAD_LETTER_CEILING_SECONDS": "5",
    "DEAD_LETTER_ATTEMPTS": "100",
    "DEAD_LETTER_LEASE_SECONDS": "5",
    "DEAD_LETTER_LOOK_SECONDS": "1",
}
# A claim of letters outlives the patience with a server that is away, so that no chunk loses its letters.
LETTERS_ON_A_SERVER = {**LETTERS, "DEAD_LETTER_LEASE_SECONDS": "30"}
KEY_OF_LOCAL_RUNS = "the key of local runs, no secret"  # without a key, the app refuses erasures
OWN_STORAGE = {"AzureWebJobsStorage": ""}  # the host's own, whatever local.settings.json names
BALANCE_EVERY, LOST_AFTER = 1, 4  # seconds: the limit of the wait for a killed worker's partitions


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of a run's state, its ports (0 is any free port), and the server that has the store, if one has it."""

    folder: Path
    hub_port: int = 0
    host_port: int = 0
    server: Server | None = None

    @property
    def store(self) -> Path:
        """The file of the store, or of the copy of a server's tables."""
        return self.folder / "hubledger.db"

    @property
    def hub(self) -> Path:
        return self.folder / "event-hubs.db"

    @property
    def live(self) -> LiveStore:
        return self.server or self.store

    @property
    def connection(self) -> str:
        return self.server.connection if self.server else f"sqlite:{self.store}"


@dataclass(frozen=True, slots=True)
class FeedOrder:
    """The domain and the options of a feed."""

    domain: Domain
    senders: int
    events: str
    rate: str
    seed: int
    more: tuple[str, ...] = ()


class Stack:
    """Start one process after the other. Each is ready when its call returns, or ChildFailed is raised.

    `more` are settings of the app beside the usual ones, and `of_host` further words of the host's command line.
    """

    def __init__(
        self,
        place: Place,
        children: Children,
        pause: Pause,
        more: Mapping[str, str] = MappingProxyType({}),
        of_host: Sequence[str] = (),
    ) -> None:
        self.place = place
        self._of_host = of_host
        self._more = more
        self._children = children
        self.pause = pause
        self._hosts = self._workers = 0
        self.connection = ""

    def start_emulator(self, *more: str) -> Child:
        """Start the event hub, with more options. `connection` names it from now on."""
        options = ["--hub", f"{HUB}:{PARTITIONS}", "--consumer-group", CONSUMER_GROUP]
        options += ["--consumer-group", READER_GROUP]
        options += _options(database=self.place.hub, port=self.place.hub_port)
        emulator = self._start("emulator", "local.event_hubs", *options, *more)
        port = emulator.wait_ready("event hubs emulator ready on ", self.pause).rpartition(":")[2]
        self.connection = (
            f"Endpoint=sb://localhost:{port};SharedAccessKeyName=RootManageSharedAccessKey;"
            "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
        )
        return emulator

    def create_store(self, transform: str) -> None:
        """Create the store of a transform without anything of the runs before. A file of a new folder has nothing."""
        if self.place.server:
            self.place.server.empty()
        self.migrate(transform)

    def migrate(self, transform: str) -> None:
        """Create or upgrade the store of a transform."""
        # no argument, because the connection may hold a password
        settings = {"STORE_CONNECTION": self.place.connection, "TRANSFORM": transform}
        self._children.start(Command("migrate", "core.store.migrate", [], settings)).wait_done(self.pause)

    def start_host(self, transform: str) -> tuple[Child, str]:
        """Start the functions host with the app, and return its address too. The next host continues from its state."""
        self._hosts += 1
        state = self.place.folder / "functions-host.db"
        command = Command(
            f"host-{self._hosts}",
            "local.functions_host",
            [*_options(app=".", port=self.place.host_port, log=self.host_log, state=state), *self._of_host],
            {**app_settings(self.connection, self.place, transform), **OWN_STORAGE, **self._more},
        )
        host = self._children.start(command)
        ready = host.wait_ready(HOST_READY, self.pause)
        return host, ready.rpartition(" ")[2].rstrip("/")

    def start_worker(self, transform: str) -> Child:
        """Start one more worker, which shares the partitions with the others. Its log is its output."""
        self._workers += 1
        command = Command(
            f"worker-{self._workers}",
            "core.worker",
            _options(interval=BALANCE_EVERY, expiry=LOST_AFTER),
            {**app_settings(self.connection, self.place, transform), **self._more},
        )
        worker = self._children.start(command)
        worker.wait_ready('"worker ready"', self.pause)
        return worker

    @property
    def host_log(self) -> Path:
        """The log of the newest host: each has its own, so that a killed host leaves no half line to the next."""
        return self.place.folder / f"host-{self._hosts}.log"

    def start_feed(self, order: FeedOrder) -> Child:
        options = _options(connection=self.connection, hub=HUB)
        feed = self._start("feed", "local.feed", *options, *words_of(order))
        feed.wait_ready("feed ready for ", self.pause)
        return feed

    def _start(self, name: str, module: str, *arguments: str) -> Child:
        return self._children.start(Command(name, module, list(arguments)))


def words_of(order: FeedOrder) -> list[str]:
    """Return the words of the feed's command line, which lead it to the same domain."""
    domain, sample = order.domain, order.domain.sample
    options = _options(transform=domain.transform, events=order.events, rate=order.rate, seed=order.seed)
    if sample is None:
        options += _options(senders=order.senders)
    else:
        options += _options(**{"events-from": sample.path.resolve()}, **({"key": sample.key} if sample.key else {}))
    return [*options, *order.more]


def _options(**values: object) -> list[str]:
    return [word for name, value in values.items() for word in (f"--{name}", str(value))]


def app_settings(connection: str, place: Place, transform: str) -> dict[str, str]:
    return {
        "EVENTHUB": connection,
        "BATCH_LINES_PER_MINUTE": "1000000",  # the proof counts by these lines, and kills would lose sums
        "ERASURE_KEY": os.environ.get("ERASURE_KEY") or KEY_OF_LOCAL_RUNS,
        "EVENTHUB_NAME": HUB,
        "EVENTHUB_CONSUMER_GROUP": CONSUMER_GROUP,
        "FUNCTIONS_REQUEST_BODY_SIZE_LIMIT": "1048576",
        "HUB_READER_CONSUMER_GROUP": READER_GROUP,
        "PYTHON_THREADPOOL_THREAD_COUNT": "32",
        "STORE_CONNECTION": place.connection,
        "TRANSFORM": transform,
        **(LETTERS_ON_A_SERVER if place.server else LETTERS),
    }
