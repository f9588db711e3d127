"""Carry out a client's operations on orchestrations."""

import re
from collections.abc import Callable, Sequence

from local.functions_host.clock import Clock
from local.functions_host.durable.functions import DurableFunctions, FunctionKind
from local.functions_host.durable.instances import (
    Event,
    EventType,
    Instance,
    NewInstance,
    Outgoing,
    control,
    event_raised,
    stamped,
)
from local.functions_host.durable.store import DurableStore

LONGEST_ID = 256
FORBIDDEN = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f]")


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
    """The client's operations. `wake` makes the engine look for due work."""

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
        """Start an orchestration with its input as JSON. Return its id.

        Raises UnknownFunction, WrongId, and InstanceExists when one of that id has not ended.
        """
        self._functions.get(FunctionKind.ORCHESTRATOR, name)
        chosen = self._new_id() if instance_id is None else _checked(instance_id)
        self._store.create(NewInstance(chosen, self._new_id(), name, text), self._clock.now())
        self._wake()
        return chosen

    def get(self, instance_id: str) -> Instance:
        """Return an orchestration. Raises NoSuchInstance."""
        instance = self._store.find(instance_id)
        if instance is None:
            raise NoSuchInstance(instance_id)
        return instance

    def history(self, instance_id: str) -> Sequence[Event]:
        """Return the events of an orchestration since it started or last continued as new."""
        return self._store.history(instance_id)

    def raise_event(self, instance_id: str, name: str, text: str) -> None:
        """Send an external event with its value as JSON. Raises NoSuchInstance or HasEnded."""
        self._send(instance_id, event_raised(name, text))

    def terminate(self, instance_id: str, reason: str | None) -> None:
        """End an orchestration at once. Raises NoSuchInstance or HasEnded."""
        self._send(instance_id, control(EventType.EXECUTION_TERMINATED, reason))

    def suspend(self, instance_id: str, reason: str | None) -> None:
        self._send(instance_id, control(EventType.EXECUTION_SUSPENDED, reason))

    def resume(self, instance_id: str, reason: str | None) -> None:
        self._send(instance_id, control(EventType.EXECUTION_RESUMED, reason))

    def _send(self, instance_id: str, unstamped: Event) -> None:
        if self.get(instance_id).status.is_final:
            raise HasEnded(instance_id)
        now = self._clock.now()
        self._store.send(Outgoing(instance_id, None, stamped(unstamped, now), now))
        self._wake()

    def purge(self, instance_id: str) -> None:
        """Purge an ended orchestration. Raises NoSuchInstance or NotEnded."""
        instance = self.get(instance_id)
        if not instance.status.is_final:
            raise NotEnded(instance)
        self._store.purge(instance_id)


def _checked(instance_id: str) -> str:
    if instance_id.startswith("@"):
        raise WrongId("Orchestration instance IDs must not start with @.")
    if FORBIDDEN.search(instance_id):
        raise WrongId("Orchestration instance IDs must not contain /, \\, #, ?, or control characters.")
    if len(instance_id) > LONGEST_ID:
        raise WrongId(f"Instance ID lengths must not exceed {LONGEST_ID} characters.")
    return instance_id
