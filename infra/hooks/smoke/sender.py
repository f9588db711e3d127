"""Send the event: wait for a new role, and say in one line why nothing can be sent."""

from collections.abc import Sequence
from dataclasses import dataclass

from infra.hooks.deployer.sign_in import account_of
from infra.hooks.errors import HookRefused
from infra.hooks.patience import Clock, Pending, wait_for
from infra.hooks.rest import ARM, Rest
from infra.hooks.smoke.device import Device
from infra.hooks.smoke.event import Hub, HubRefused
from local.feed.event_file import FileEvent

DEADLINE = 600.0  # seconds: a new role works after some minutes
OF_CHOICE = "give `developerRoles` the value send, then `azd provision`"
SENDERS = ("2b629674-e913-4c01-ae53-ef4638d8f975", "f526a384-b230-433a-b45c-95f59c4a2dec")  # Data Sender, Data Owner
DEVICE_MAKERS = ("4ea46cd5-c1b2-4a8e-910b-273211f9ce47", "4fc6c259-987e-4a07-842e-c321cc9d413f")  # Registry, Data
ROLES_VERSION = "api-version=2022-04-01"
CLOSED = "prevented to connect"  # the service's words for an address that a firewall stops
INSIDE = "run `azd hooks run postdeploy` on a machine inside the virtual network"


class NotSent(Exception):
    """This deployer cannot send from this machine. The text says why and what to do. The other checks need no event."""


@dataclass(frozen=True, slots=True)
class Sender:
    """The hub of a deployment, to which this deployer sends. `private`: it is closed to other networks."""

    hub: Hub | Device
    hub_id: str  # the scope of the deployer's roles
    rest: Rest
    private: bool
    clock: Clock

    def send(self, event: FileEvent, partition_ids: Sequence[str]) -> Sequence[str]:
        """Send one event to the first partition, and return it. An IoT Hub chooses, so that each may have the event.

        Raise NotSent when this deployer or this machine may not send, and HookRefused when the hub does not answer.
        """
        if self._may_not_send():
            raise NotSent(self._remedy())
        try:
            wait_for("the hub", lambda: self._try(event, partition_ids[0]), DEADLINE, self.clock)
        except HookRefused as error:
            if isinstance(error.__cause__, HubRefused):
                raise NotSent(f"{error}; {self._remedy()}") from error
            raise
        return partition_ids if isinstance(self.hub, Device) else partition_ids[:1]

    def _try(self, event: FileEvent, partition_id: str) -> None:
        try:
            self.hub.send(event, partition_id)
        except Pending as error:
            closed = CLOSED in str(error) or not isinstance(error, HubRefused)
            if self.private and closed:
                raise NotSent(f"the hub is closed to this network (VNET_ENABLED=true): {INSIDE}") from error
            raise

    def _may_not_send(self) -> bool:
        """Return True when Azure lists the deployer's roles on the hub, and none of them lets it send."""
        query = f"{ROLES_VERSION}&$filter=atScope()+and+assignedTo('{self._object_id()}')"
        try:
            found = self.rest.call(
                "GET", ARM, f"{self.hub_id}/providers/Microsoft.Authorization/roleAssignments?{query}"
            )
        except HookRefused:  # the deployer may not list roles: the sending itself will say
            return False
        roles = [one["properties"]["roleDefinitionId"] for one in found["value"]]
        return not any(role.endswith(DEVICE_MAKERS if isinstance(self.hub, Device) else SENDERS) for role in roles)

    def _remedy(self) -> str:
        """Return the sentence that names the role and the choice that gives it."""
        who, is_device = self._object_id(), isinstance(self.hub, Device)
        role = "IoT Hub Registry Contributor" if is_device else "Azure Event Hubs Data Sender"
        by_hand = f'`az role assignment create --assignee {who} --role "{role}" --scope {self.hub_id}`'
        return f"the account {who} lacks the role {role} on {self.hub_id}: {by_hand if is_device else OF_CHOICE}"

    def _object_id(self) -> str:
        return account_of(self.hub.token(ARM.scope)).object_id
