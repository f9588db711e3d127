"""Carry out a client's operations on orchestrations and entities."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from local.functions_host.clock import Clock
from local.functions_host.durable.entities import entity_id_of, signal
from local.functions_host.durable.functions import DurableFunctions, Kind
from local.functions_host.durable.history import Event, EventType, control, event_raised, stamped
from local.functions_host.durable.instances import Instance, InstanceFilter, NewInstance, Outgoing, Status
from local.functions_host.durable.store import DurableStore

LONGEST_ID = 256
FORBIDDEN = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f]")
FINAL = tuple(status for status in Status if status.is_final)


class WrongId(Exception):
    """An instance id that the extension refuses."""


class NoSuchInstance(Exception):
    """No orchestration has that id."""


class HasEnded(Exception):
    """The orchestration has ended, so it takes no event."""


class NotEnded(Exception):
    """The orchestration has not ended, so it cannot be purged."""

    def __init__(self, instance: Instance) -> None:
        super().__init__(
            "Only orchestrations in a terminal state can be purged, but the orchestration with instance ID "
            f"{instance.instance_id} has status {instance.status}"
        )


class Orchestrations:
    """The client's operations; `wake` makes the engine look for due work."""

    def __init__(
        self,
        store: DurableStore,
        functions: DurableFunctions,
        clock: Clock,
        new_id: Callable[[], str],
        wake: Callable[[], None],
    ) -> None:
        self._store = store
        self._functions = functions
        self._clock = clock
        self._new_id = new_id
        self._wake = wake

    def start(self, name: str, instance_id: str | None, text: str | None) -> str:
        """Start an orchestration with its input as JSON; return its id.

        Raises UnknownFunction, WrongId, and InstanceExists when one of that id has not ended.
        """
        self._functions.get(Kind.ORCHESTRATOR, name)
        chosen = self._new_id() if instance_id is None else _checked(instance_id)
        self._store.create(NewInstance(chosen, self._new_id(), name, text), self._clock.now())
        self._wake()
        return chosen

    def restart(self, instance_id: str, *, under_new_id: bool) -> str:
        """Start an orchestration again with its input; return the id of the new run."""
        instance = self.get(instance_id)
        return self.start(instance.name, None if under_new_id else instance_id, instance.input)

    def get(self, instance_id: str) -> Instance:
        """Return an orchestration; raise NoSuchInstance."""
        instance = self._store.find(instance_id)
        if instance is None:
            raise NoSuchInstance(instance_id)
        return instance

    def history(self, instance_id: str) -> Sequence[Event]:
        """Return the events of an orchestration since it started or last continued as new."""
        return self._store.history(instance_id)

    def select(self, wanted: InstanceFilter) -> Sequence[Instance]:
        """Return a page of orchestrations."""
        return self._store.select(wanted)

    def raise_event(self, instance_id: str, name: str, text: str) -> None:
        """Send an external event with its value as JSON; raise NoSuchInstance or HasEnded."""
        self._send(instance_id, event_raised(name, text))

    def terminate(self, instance_id: str, reason: str | None) -> None:
        """End an orchestration at once; raise NoSuchInstance or HasEnded."""
        self._send(instance_id, control(EventType.EXECUTION_TERMINATED, reason))

    def suspend(self, instance_id: str, reason: str | None) -> None:
        """Pause an orchestration until it is resumed; raise NoSuchInstance or HasEnded."""
        self._send(instance_id, control(EventType.EXECUTION_SUSPENDED, reason))

    def resume(self, instance_id: str, reason: str | None) -> None:
        """Resume a suspended orchestration; raise NoSuchInstance or HasEnded."""
        self._send(instance_id, control(EventType.EXECUTION_RESUMED, reason))

    def _send(self, instance_id: str, unstamped: Event) -> None:
        if self.get(instance_id).status.is_final:
            raise HasEnded(instance_id)
        now = self._clock.now()
        self._store.send(Outgoing(instance_id, None, stamped(unstamped, now), now))
        self._wake()

    def purge(self, instance_id: str) -> None:
        """Purge an ended orchestration; raise NoSuchInstance or NotEnded."""
        instance = self.get(instance_id)
        if not instance.status.is_final:
            raise NotEnded(instance)
        self._store.purge([instance_id])

    def purge_created(self, since: datetime, until: datetime | None, statuses: Sequence[Status]) -> int:
        """Purge the ended orchestrations that were created between two instants; return their number."""
        wanted = [each for each in statuses or FINAL if each.is_final]
        if not wanted:
            return 0
        everything = InstanceFilter(created_from=since, created_to=until, statuses=wanted, top=-1)
        ids = [each.instance_id for each in self._store.select(everything)]
        self._store.purge(ids)
        return len(ids)

    def signal_entity(self, name: str, key: str, operation: str, text: str | None) -> None:
        """Send an operation to an entity with its input as JSON; raise UnknownFunction."""
        self._functions.get(Kind.ENTITY, name)
        now, request = self._clock.now(), signal(operation, self._new_id(), text)
        self._store.send(Outgoing(entity_id_of(name, key), None, request, now))
        self._wake()

    def entity_state(self, name: str, key: str) -> str | None:
        """Return an entity's state as JSON, or None when there is no such entity."""
        return self._store.entity_state(entity_id_of(name, key))

    def purge_entity(self, entity_id: str) -> bool:
        """Purge an entity; return False when there is none."""
        if self._store.entity_state(entity_id) is None:
            return False
        self._store.purge([entity_id])
        return True


def _checked(instance_id: str) -> str:
    if instance_id.startswith("@"):
        raise WrongId("Orchestration instance IDs must not start with @.")
    if FORBIDDEN.search(instance_id):
        raise WrongId("Orchestration instance IDs must not contain /, \\, #, ?, or control characters.")
    if len(instance_id) > LONGEST_ID:
        raise WrongId(f"Instance ID lengths must not exceed {LONGEST_ID} characters.")
    return instance_id


def as_json(text: str) -> str:
    """Return the text unchanged; raise ValueError when it is no JSON."""
    json.loads(text)
    return text


DEFAULT_PAGE = 100


class QueryFault(Exception):
    """The request is refused with `status` and this text."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Query:
    """Reads the values as the extension does."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = {name.lower(): value for name, value in values.items()}

    def text(self, name: str) -> str | None:
        """Return a value unchanged, or None."""
        return self._values.get(name.lower())

    def claims(self, name: str, *, default: bool = False) -> bool:
        """Return True or False; any other value is the default."""
        return {"true": True, "false": False}.get((self.text(name) or "").lower(), default)

    def instant(self, name: str) -> datetime | None:
        """Return an instant, or None; without a zone it is UTC."""
        try:
            instant = datetime.fromisoformat(self.text(name) or "")
        except ValueError:
            return None
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant

    def statuses(self) -> Sequence[Status]:
        """Return the known statuses of a list."""
        known = {status.value.lower(): status for status in Status}
        wanted = (self.text("runtimeStatus") or "").lower().split(",")
        return [known[each] for each in wanted if each in known]

    def instances(self, after: str) -> InstanceFilter:
        """Return the requested selection of instances."""
        top = self.text("top") or ""
        return InstanceFilter(
            prefix=self.text("instanceIdPrefix") or "",
            created_from=self.instant("createdTimeFrom"),
            created_to=self.instant("createdTimeTo"),
            statuses=self.statuses(),
            after=after,
            top=int(top) if top.isdigit() and int(top) > 0 else DEFAULT_PAGE,
        )

    def refuse(self, *names: str) -> None:
        """Raise QueryFault for the first of the names that is given."""
        for name in names:
            if name.lower() in self._values:
                raise QueryFault(501, f"{name} is not emulated by the local functions host")
