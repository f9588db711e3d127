"""The processes of a comparison: one hub for all, and a consumer with a store of its own."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from azure.eventhub import EventHubConsumerClient

from bench.peers.table import create_tables
from bench.samples import ROOMS
from core.store.sqlite.schema import migrate_sqlite
from core.store.sqlserver.schema import migrate_server
from local.feed.businesses import HOMES
from local.stack.folders import HOST_READY
from local.stack.processes import Child, Children, Command
from local.stack.sql_server import Server
from local.stack.stack import BALANCE_EVERY, LOST_AFTER, FeedOrder, Place, app_settings, words_of

TRANSFORM = "bench.peers.readings"
WORKER, HOST, SPARK = "worker", "host", "spark"
OURS = (WORKER, HOST)
BARE, FAST, NOTHING = "bare", "fast", "nothing"  # functions of bench/peers/functions.py
WITH_BLOBS, CONTAINER = ("a", "a20", "b"), "checkpoints"
NAMES = {
    WORKER: "ours, worker",
    HOST: "ours, Functions host",
    "a": "(a) insert and blob checkpoint per event",
    "a20": "(a) the same, checkpoint every 20 events",
    "b": "(b) transaction per batch, then blob checkpoint",
    "c": "(c) work per event, checkpoint in SQL, by 500",
    "c10": "(c) the same, by 10",
    "d": "(d) receive and executemany, nothing else",
    SPARK: "(e) Spark foreachBatch, from files",
}


@dataclass(frozen=True, slots=True)
class Consumer:
    """One run of a consumer: which one, its hub, its folder, and its store."""

    kind: str
    hub: str
    folder: Path
    store: str


@dataclass(slots=True)
class Bench:
    """The connections of a comparison. `children` end with it."""

    folder: Path
    children: Children
    connection: str
    blobs: str
    server: Server | None = None
    started: int = field(default=0)

    def consumer(self, kind: str, hub: str) -> Consumer:
        """Create the store of a new run of a consumer."""
        self.started += 1
        name = f"{kind}-{self.started}"
        folder = self.folder / name
        folder.mkdir()
        store = self.server.connection if self.server else f"sqlite:{folder / 'store.db'}"
        if kind in OURS:
            self._migrate(folder)
        else:
            store = create_tables(store)
            if kind in WITH_BLOBS:
                _create_container(self.blobs, f"{CONTAINER}-{name}")
        return Consumer(kind, hub, folder, store)

    def _migrate(self, folder: Path) -> None:
        if self.server is None:
            migrate_sqlite(folder / "store.db", ROOMS)
            return
        self.server.empty()
        migrate_server(self.server.connection, rooms=ROOMS)

    def start(self, consumer: Consumer, **more: str) -> Child:
        """Start a consumer, which continues from its store, with more settings. Return when it is ready."""
        self.started += 1
        module, arguments, ready = _words(consumer)
        place = Place(consumer.folder)
        settings = {
            **app_settings(self.connection, place, TRANSFORM),
            "STORE_CONNECTION": consumer.store,
            "EVENTHUB_NAME": consumer.hub,
            "EVENTHUB_CONSUMER_GROUP": group_of(consumer.kind),
            "PEERS_CONNECTION": self.connection,
            "PEERS_BLOBS": self.blobs,
            "PEERS_STORE": consumer.store,
            "PYTHONWARNINGS": "ignore",
            **more,
        }
        command = Command(
            f"{consumer.folder.name}-{self.started}", "bench.peers.launched", [module, *arguments], settings
        )
        child = self.children.start(command)
        child.wait_ready(ready, time.sleep)
        return child

    def start_feed(self, hub: str, events: int, rate: str, *more: str) -> Child:
        """Start the feed of a hub, with a record at `record`."""
        order = FeedOrder(
            HOMES, HOMES.senders_for(events), str(events), rate, 1, ("--record", str(self.record(hub)), *more)
        )
        words = ["--connection", self.connection, "--hub", hub, *words_of(order)]
        feed = self.children.start(Command(f"feed-{hub}", "local.feed", words))
        feed.wait_ready("feed ready for ", time.sleep)
        return feed

    def ends(self, hub: str) -> dict[str, int]:
        """Return the last sequence number of each partition of a hub."""
        with EventHubConsumerClient.from_connection_string(self.connection, "$Default", eventhub_name=hub) as client:
            found = [client.get_partition_properties(id) for id in client.get_partition_ids()]
        return {one["id"]: one["last_enqueued_sequence_number"] for one in found}

    def record(self, hub: str) -> Path:
        return self.folder / f"{hub}.record"


def _words(consumer: Consumer) -> tuple[str, list[str], str]:
    folder = consumer.folder
    if consumer.kind == WORKER:
        return "core.worker", ["--interval", str(BALANCE_EVERY), "--expiry", str(LOST_AFTER)], '"worker ready"'
    if consumer.kind == HOST:
        state = ["--state", str(folder / "host.db"), "--log", str(folder / "host.log")]
        return "local.functions_host", ["--app", ".", "--port", "0", *state], HOST_READY
    if consumer.kind == SPARK:
        return "bench.peers.spark_files", [str(folder)], "spark ready"
    container = f"{CONTAINER}-{folder.name}"
    words = [consumer.kind, "--hub", consumer.hub, "--group", group_of(consumer.kind), "--container", container]
    return "peer", words, "peer ready"


def group_of(kind: str) -> str:
    """Return the consumer group of a consumer: two of one group would take each other's partitions."""
    return f"peers-{kind}"


def groups() -> list[str]:
    """Return the options of an emulator that has all these groups."""
    return [word for kind in NAMES for word in ("--consumer-group", group_of(kind))]


def _create_container(blobs: str, name: str) -> None:
    from azure.storage.blob import ContainerClient

    with ContainerClient.from_connection_string(blobs, name) as container:
        container.create_container()
