"""The emulator: it starts and stops a server for its hubs, and causes faults on request."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from local.event_hubs.amqp import Connection
from local.event_hubs.broker import HubBroker
from local.event_hubs.errors import AmqpError
from local.event_hubs.hubs import Clock, Hubs, HubSettings
from local.event_hubs.readers import Faults
from local.event_hubs.sessions import IncomingLink, OutgoingLink
from local.event_hubs.tokens import ROOT_KEY, SharedAccessKey

_TICK = 0.5  # seconds between two checks of tokens, slow peers and the waits of publishers
_GOODBYE = 1.0  # seconds that connections have to end before they are cut
_TURNS_TO_CONNECT = 3  # turns of the event loop from accepting a connection to `connection_made`
_ANSWER = 30.0  # seconds that a call from another thread waits for the event loop
_FORCED = AmqpError("amqp:connection:forced", "the emulator is stopping")
_DELETED = AmqpError("amqp:not-found", "the messaging entity was deleted")
_DETACHED = AmqpError("amqp:link:detach-forced", "the link was detached on request")


def unix_milliseconds() -> int:
    """Return the time for the stamps of events, in milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


class Emulator:
    """An Event Hubs namespace on one machine.

    Without a database its events live as long as this object, through any number of starts. Every method but `start`
    and `stop` may be called from any thread. Raises ValueError for settings that contradict each other.
    """

    def __init__(
        self,
        hubs: Sequence[HubSettings],
        database: Path | None = None,
        keys: Sequence[SharedAccessKey] = (ROOT_KEY,),
        clock: Clock = unix_milliseconds,
    ) -> None:
        if not keys:
            raise ValueError("an emulator needs a key, and none was given")
        self.port = 0
        self._settings = {hub.name: hub for hub in hubs}
        self._database, self._keys, self._clock = database, keys, clock
        self._hubs = Hubs(hubs, clock)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._faults = Faults()
        self._serving: HubBroker | None = None
        self._server: asyncio.Server
        self._tick: asyncio.TimerHandle

    @property
    def hub_names(self) -> tuple[str, ...]:
        return tuple(self._settings)

    @property
    def connection_string(self) -> str:
        """The connection string for clients of the namespace, with the first key."""
        key = self._keys[0]
        return (
            f"Endpoint=sb://localhost:{self.port};SharedAccessKeyName={key.name};SharedAccessKey={key.value};"
            "UseDevelopmentEmulator=true"
        )

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen on a port, or on a free one for 0.

        Raises OSError for a port in use, sqlite3.Error or ValueError for a database that the emulator cannot use.
        """
        if self._loop is not None:
            raise RuntimeError("the emulator is running already: stop it first")
        loop = asyncio.get_running_loop()
        if self._database is not None:
            self._hubs.open(self._database)
        broker = HubBroker(self._hubs, self._keys, self._clock, self._faults)
        try:
            self._server = await loop.create_server(lambda: Connection(broker), host, port)
        except OSError:
            self._hubs.close()
            raise
        self._loop, self._serving = loop, broker
        self.port = self._server.sockets[0].getsockname()[1]
        self._on_tick()

    async def stop(self) -> None:
        """End every connection and stop listening, and then a different emulator may open the database."""
        broker, self._loop, self._serving = self._broker, None, None
        self._tick.cancel()
        await self._stop_accepting()
        for connection in list(broker.connections):
            connection.close(_FORCED)
        try:
            await asyncio.wait_for(broker.idle.wait(), _GOODBYE)
        except TimeoutError:
            for connection in list(broker.connections):
                connection.drop()
            await broker.idle.wait()
        await self._server.wait_closed()
        self._hubs.close()

    async def _stop_accepting(self) -> None:
        """Stop listening, but first finish new connections, which asyncio would leave neither open nor closed."""
        for listener in self._server.sockets:
            asyncio.get_running_loop().remove_reader(listener.fileno())
        for _ in range(_TURNS_TO_CONNECT):
            await asyncio.sleep(0)
        self._server.close()

    @contextmanager
    def running(self, host: str = "127.0.0.1", port: int = 0) -> Iterator["Emulator"]:
        """Serve from a separate thread while the block runs. Raises the errors of `start`."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="event-hubs-emulator", daemon=True)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self.start(host, port), loop).result()
            try:
                yield self
            finally:
                asyncio.run_coroutine_threadsafe(self.stop(), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def end_of(self, hub: str) -> dict[str, int]:
        """Return the last sequence number of each partition of a hub, -1 where there never was an event.

        Raises KeyError for an unknown hub.
        """
        if hub not in self._settings:
            raise KeyError(hub)
        return {id_: partition.last_sequence for id_, partition in self._hubs[hub].partitions.items()}

    @property
    def connection_count(self) -> int:
        return len(self._serving.connections) if self._serving else 0

    def link_count(self, hub: str) -> int:
        """Count the links of publishers and readers to a hub."""
        return self._serving.link_count(hub, OutgoingLink, IncomingLink) if self._serving else 0

    def reader_count(self, hub: str) -> int:
        return self._serving.link_count(hub, OutgoingLink) if self._serving else 0

    # faults on demand

    def drop_connections(self) -> None:
        """Cut every connection without a close, as a failing network would."""
        self._each(Connection.drop)

    def detach_links(self, hub: str) -> None:
        """Detach every link to a hub with an error, as the service does when it moves a partition."""
        self._call(lambda: self._broker.detach_links(hub, _DETACHED))

    def recreate(self, hub: str) -> None:
        """Delete a hub and create it again: same name, no events, a new `created_at`. Its links are detached."""

        def act() -> None:
            if self._serving is not None:
                self._serving.detach_links(hub, _DELETED)
            self._hubs.recreate(hub)

        self._call(act)

    def grow(self, hub: str, partitions: int) -> None:
        """Give a hub more partitions while it runs. Raises ValueError for a number that is not higher."""
        self._call(lambda: self._hubs.grow(hub, partitions))

    def delay_deliveries(self, delay: timedelta) -> None:
        """Send every event to readers no earlier than `delay` after it was enqueued. Zero ends the delay."""
        self._faults.delivery_delay = delay // timedelta(milliseconds=1)
        if self._serving is not None:
            self._call(self._serving.pump)

    def throttle(self, sends: int) -> None:
        """Refuse the next `sends` messages or batches with com.microsoft:server-busy."""
        self._faults.throttled_sends = sends

    def freeze(self) -> None:
        """Stop reading and answering on old and new connections, until `thaw`."""
        self._faults.frozen = True
        self._each(Connection.freeze)

    def thaw(self) -> None:
        """Resume after `freeze`, with all bytes that have arrived since."""
        self._faults.frozen = False
        self._each(Connection.thaw)

    def expire_before(self, hub: str, partition_id: str, sequence: int) -> None:
        """Cut a partition's events before a sequence number, as retention would."""
        found = self._hubs[hub]
        self._call(lambda: self._hubs.expire_before(found, found.partition(partition_id), sequence))

    def let_time_pass(self) -> None:
        """Apply the expiry of tokens now, not only at the next half second."""
        self._call(self._broker.let_time_pass)

    @property
    def _broker(self) -> HubBroker:
        if self._serving is None:
            raise RuntimeError("the emulator is not running: start it first")
        return self._serving

    def _on_tick(self) -> None:
        self._broker.let_time_pass()
        self._tick = asyncio.get_running_loop().call_later(_TICK, self._on_tick)

    def _each(self, act: Callable[[Connection], None]) -> None:
        def act_on_all() -> None:
            for connection in list(self._serving.connections) if self._serving else []:
                act(connection)

        self._call(act_on_all)

    def _call(self, act: Callable[[], None]) -> None:
        """Run a function on the event loop, and return when it has ended."""
        if self._loop is None or _running_loop() is self._loop:
            act()
        else:

            async def do() -> None:
                act()

            asyncio.run_coroutine_threadsafe(do(), self._loop).result(_ANSWER)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
