"""Send the event as a device of an IoT Hub: its built-in endpoint takes events of devices only."""

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from infra.hooks.errors import HookRefused
from infra.hooks.patience import Pending
from infra.hooks.rest import ARM, Rest, Service, Token
from infra.hooks.smoke.event import TOKEN_LIFE, HubRefused
from local.feed.event_file import FileEvent

DEVICE = "hubledger-smoke"
SCOPE = "https://iothubs.azure.net/.default"
HUB_VERSION, VERSION = "api-version=2023-06-30", "api-version=2021-04-12"
ANY = {"If-Match": "*"}


@dataclass(frozen=True, slots=True)
class Device:
    """A device of an IoT Hub, by the resource id of the hub. It is registered for the time of one sending."""

    hub_id: str
    rest: Rest
    token: Token

    def send(self, event: FileEvent, partition_id: str) -> None:
        """Send the body of an event to the partition that the hub chooses. Raises Pending when the hub does not answer,
        and HubRefused when the deployer lacks a right."""
        host = self.rest.call("GET", ARM, f"{self.hub_id}?{HUB_VERSION}")["properties"]["hostName"]
        hub, path = Service(f"https://{host}", SCOPE), f"/devices/{DEVICE}"
        keys = [base64.b64encode(secrets.token_bytes(32)).decode() for _ in range(2)]
        identity = {
            "deviceId": DEVICE,
            "status": "enabled",
            "authentication": {"type": "sas", "symmetricKey": {"primaryKey": keys[0], "secondaryKey": keys[1]}},
        }
        self._forget(hub, path)  # one that a killed hook left has an unknown key
        self._ask("PUT", hub, path, identity)
        try:
            signed = {"Authorization": _signature(f"{host}{path}", keys[0], int(time.time()) + TOKEN_LIFE)}
            self._ask("POST", hub, f"{path}/messages/events", event.body, signed)
        finally:
            self._forget(hub, path)

    def _forget(self, hub: Service, path: str) -> None:
        try:
            self._ask("DELETE", hub, path, None, ANY)
        except Pending as error:
            if "status 404" not in str(error):
                raise

    def _ask(self, method: str, hub: Service, path: str, body: Any, headers: Mapping[str, str] | None = None) -> None:
        try:
            self.rest.call(method, hub, f"{path}?{VERSION}", body, headers or {})
        except HookRefused as error:
            refused = "status 401" in str(error) or "status 403" in str(error)
            raise (HubRefused if refused else Pending)(f"{DEVICE}: {error}") from error


def _signature(address: str, key: str, expiry: int) -> str:
    """Return the token of a device, as IoT Hub's page "Control access with SAS" has it."""
    address = quote(address, safe="")
    digest = hmac.new(base64.b64decode(key), f"{address}\n{expiry}".encode(), hashlib.sha256).digest()
    return f"SharedAccessSignature sr={address}&sig={quote(base64.b64encode(digest), safe='')}&se={expiry}"
