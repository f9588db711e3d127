"""The nodes of the emulator: the purpose of a link to each address, and the right that it needs."""

import asyncio
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from local.event_hubs.amqp import Connection
from local.event_hubs.errors import AmqpError, NotEmulated
from local.event_hubs.hubs import Clock, Hub, Hubs
from local.event_hubs.lead import Lead
from local.event_hubs.log import PartitionLog
from local.event_hubs.management import Request, read_entity, read_request, refusal, response
from local.event_hubs.peers import PATIENCE, Complaints, SlowPeers, refuse_unread
from local.event_hubs.producers import CAPABILITY, Claim, claim_of, properties_of
from local.event_hubs.readers import Faults, Reader, Readers, slot_of
from local.event_hubs.sessions import IncomingLink, Link, OutgoingLink
from local.event_hubs.tokens import LISTEN, SEND, Grants, SharedAccessKey, read_key, read_token, split_path

_OK, _ACCEPTED = 200, 202

Path = tuple[str, ...]
_Act = Callable[[Grants, Request], bytes]


@dataclass(frozen=True, slots=True)
class _Need:
    """The right that a link needs while it is attached."""

    grants: Grants
    right: str
    path: Path


class Answers:
    """The answers of $cbs and $management to a connection that wait for credit or for the socket, by their links."""

    def __init__(self) -> None:
        self._boxes: dict[OutgoingLink, deque[bytes]] = {}
        self._size = 0

    def open(self, link: OutgoingLink) -> None:
        """Let a link take its answers from here."""
        box = self._boxes[link] = deque()

        def take(count: int) -> list[bytes]:
            taken = [box.popleft() for _ in range(min(count, len(box)))]
            self._size -= sum(map(len, taken))
            return taken

        def close() -> None:
            take(len(box))
            del self._boxes[link]

        link.take, link.on_closed = take, close

    def links(self) -> list[OutgoingLink]:
        return list(self._boxes)

    def add(self, link: OutgoingLink, answer: bytes) -> None:
        """Store an answer and send it as soon as possible. Raises AmqpError when too many bytes wait."""
        self._boxes[link].append(answer)
        self._size += len(answer)
        link.pump()
        refuse_unread(self._size + sum(one.waiting for one in self._boxes))


class HubBroker:
    """The hubs as connections see them, for one event loop."""

    def __init__(self, hubs: Hubs, keys: Sequence[SharedAccessKey], clock: Clock, faults: Faults) -> None:
        self.container = f"event-hubs-emulator-{uuid.uuid4()}"
        self.connections: dict[Connection, Grants] = {}
        self.idle = asyncio.Event()  # set while there is no connection
        self.idle.set()
        self._faults = faults
        self._hubs, self._clock = hubs, clock
        self._keys = {key.name: key for key in keys}
        self._complaints = Complaints(clock)
        self._readers = Readers()
        self._slow = SlowPeers[Connection]()
        self._needs: dict[Link, _Need] = {}
        self._answers: dict[Connection, Answers] = {}
        self._grown: dict[PartitionLog, None] = {}

    # called by connections

    def connected(self, connection: Connection) -> None:
        self.connections[connection] = Grants()
        self._answers[connection] = Answers()
        self.idle.clear()
        if self._faults.frozen:
            connection.freeze()

    def disconnected(self, connection: Connection) -> None:
        del self.connections[connection], self._answers[connection]
        if not self.connections:
            self.idle.set()

    def complain(self, connection: Connection, action: str, reason: str) -> None:
        """Log a wrong of a peer."""
        host, port = connection.peer[:2]
        self._complaints.note(host, port, action, reason)

    def sign_in(self, connection: Connection, name: str, value: str) -> None:
        """Give a connection the rights of a key for as long as it lasts. Raises AmqpError for a wrong name or value."""
        self.connections[connection].add(read_key(name, value, self._keys))

    def attach(self, connection: Connection, link: Link) -> None:
        """Connect a link to the node at its address. Raises AmqpError to refuse the link."""
        path = split_path(link.address)
        match path:
            case ("$cbs",):
                self._attach_requester(connection, link, self._put_token)
            case ("$management",):
                self._attach_requester(connection, link, self._read_entity)
            case (_, "publishers", *_):
                raise NotEmulated("a publisher policy")
            case _:
                need = _Need(self.connections[connection], SEND if isinstance(link, IncomingLink) else LISTEN, path)
                need.grants.require(need.right, path, self._clock())
                self._attach_to_hub(link, path)
                self._needs[link] = need

    def commit(self) -> None:
        """Make the published events durable. Readers get them after the senders have got their outcomes."""
        grown = self._hubs.commit()
        if grown and not self._grown:
            asyncio.get_running_loop().call_soon(self._wake_readers)
        self._grown.update(dict.fromkeys(grown))

    def _wake_readers(self) -> None:
        grown, self._grown = self._grown, {}
        for partition in grown:
            for pump in list(partition.watchers):
                pump()

    # links to $cbs and $management

    def _attach_requester(self, connection: Connection, link: Link, act: _Act) -> None:
        if isinstance(link, IncomingLink):
            link.accept = partial(self._answer, connection, link, act)
        elif isinstance(link, OutgoingLink):
            self._answers[connection].open(link)

    def _answer(self, connection: Connection, requester: Link, act: _Act, message: bytes, message_format: int) -> None:
        request = read_request(message)
        try:
            answer = act(self.connections[connection], request)
        except AmqpError as error:
            answer = refusal(request, error)
        answers = self._answers[connection]
        try:
            for link in answers.links():
                if _expects_answer(link, requester, request):
                    answers.add(link, answer)
        except AmqpError as error:
            connection.fail(error)

    def _put_token(self, grants: Grants, request: Request) -> bytes:
        grants.add(read_token(str(request.value), self._keys, self._clock()))
        return response(request, _ACCEPTED, "Accepted")

    def _read_entity(self, grants: Grants, request: Request) -> bytes:
        path, now = (str(request.properties.get("name")).lower(), "$management"), self._clock()
        if request.token is not None and not grants.give(None, path, now):
            grants = Grants()  # of this request alone
            grants.add(read_token(request.token, self._keys, now))
        grants.require(None, path, now)
        return response(request, _OK, "OK", read_entity(request, self._hubs.__getitem__))

    # links to hubs

    def _attach_to_hub(self, link: Link, path: Path) -> None:
        match path, link:
            case (name,), IncomingLink():
                self._attach_publisher(link, self._hubs[name], None)
            case (name, "partitions", partition_id), IncomingLink():
                self._attach_publisher(link, self._hubs[name], self._hubs[name].partition(partition_id))
            case (name, "consumergroups", group, "partitions", partition_id), OutgoingLink():
                hub = self._hubs[name]
                self._attach_reader(link, hub, group, hub.partition(partition_id))
            case _:
                verb = "receive from" if isinstance(link, OutgoingLink) else "send to"
                raise AmqpError("amqp:not-found", f"there is no node to {verb} at '{link.address}'")

    def _attach_publisher(self, link: IncomingLink, hub: Hub, partition: PartitionLog | None) -> None:
        """Attach a publisher. An idempotent one learns its state with the answer, where it names a partition."""
        producer = None
        if CAPABILITY in link.attach.capabilities:
            link.offered = (CAPABILITY,)
            if partition is not None:  # .NET opens a link to the whole hub only to learn the largest message
                producer = self._hubs.register(hub, partition, claim_of(link.attach.properties))
                link.properties = properties_of(producer)
        link.accept = partial(self._publish, hub, partition, producer)
        link.on_closed = partial(self._forget_need, link)

    def _publish(
        self, hub: Hub, partition: PartitionLog | None, producer: Claim | None, message: bytes, message_format: int
    ) -> Lead:
        if self._faults.throttled_sends > 0:
            self._faults.throttled_sends -= 1
            raise AmqpError("com.microsoft:server-busy", "the request was throttled; wait 4 seconds and try again")
        return self._hubs.publish(hub, partition, message, message_format, producer).lead

    def _attach_reader(self, link: OutgoingLink, hub: Hub, group: str, partition: PartitionLog) -> None:
        slot = slot_of(hub, group, partition)
        reader = Reader(link, partition, self._clock, self._faults)
        self._readers.admit(reader, slot)
        link.take = reader.take
        partition.watchers.add(link.pump)
        if reader.epoch is not None:
            partition.lead.join(reader)

        def close() -> None:
            partition.watchers.discard(link.pump)
            partition.lead.leave(reader)
            reader.close()
            self._readers.remove(reader, slot)
            self._forget_need(link)

        link.on_closed = close

    def _forget_need(self, link: Link) -> None:
        self._needs.pop(link, None)

    # called by the emulator

    def let_time_pass(self) -> None:
        """Cut slow connections, detach the links whose tokens have expired, and let time pass for the hubs."""
        now = self._clock()
        for connection in self._slow.late(self.connections, now):
            self.complain(connection, "drop", f"a frame was not whole after {PATIENCE // 1000} s")
            connection.drop()
        for link, need in list(self._needs.items()):
            try:
                need.grants.require(need.right, need.path, now)
            except AmqpError as error:
                link.detach(error)
        self._hubs.let_time_pass()

    def detach_links(self, hub: str, error: AmqpError) -> None:
        for link, need in list(self._needs.items()):
            if need.path[0] == hub.lower():
                link.detach(error)

    def link_count(self, hub: str, *kinds: type[Link]) -> int:
        """Count the links of these kinds that are attached to a hub."""
        needs = list(self._needs.items())
        return sum(need.path[0] == hub.lower() and isinstance(link, kinds) for link, need in needs)

    def pump(self) -> None:
        """Send the events that are due to every reader."""
        for link in list(self._needs):
            if isinstance(link, OutgoingLink):
                link.pump()


def _expects_answer(link: Link, requester: Link, request: Request) -> bool:
    """Return True for the link that gets the answer. The JavaScript SDK gives its name as the address."""
    wanted = request.reply_to in (None, link.name, link.attach.target.address)
    return wanted and link.session is requester.session and link.address == requester.address
