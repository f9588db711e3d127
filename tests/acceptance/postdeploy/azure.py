"""Azure as the smoke tests see it: keys and roles over ARM, and the front of the app, which asks for those keys."""

import base64
import hmac
import json
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote

from infra.hooks.rest import Rest, Service
from tests.infra.doubles import PERSON, token_of

DEPLOYER = "01234567-89ab-cdef-0123-456789abcdef"
SENDER = "/providers/Microsoft.Authorization/roleDefinitions/2b629674-e913-4c01-ae53-ef4638d8f975"
KEYED = {"status": "status", "status/history": "status_history", "health/ledger": "health_ledger"}
IOT_HUB = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Devices/IotHubs/i"
HOST = "i.azure-devices.net"
DEVICE_MAKER = "/providers/Microsoft.Authorization/roleDefinitions/4ea46cd5-c1b2-4a8e-910b-273211f9ce47"
DEVICE = re.compile(r"/devices/([\w-]+)(/messages/events)?\?api-version=2021-04-12")
KEY_PATH = re.compile(r"/subscriptions/.*/functions/(\w+)/keys/(\w+)\?api-version=[\d-]+")


@dataclass
class Azure:
    """The state of ARM and of the front: `keys` by function, roles of the deployer, and what they refuse."""

    app: str
    roles: list[str] = field(default_factory=lambda: [SENDER])
    keys: dict[str, str] = field(default_factory=dict)
    given: list[str] = field(default_factory=list)
    unknown_functions: int = 0  # so many settings of a key are answered with 404, as soon after an upload
    refuses_keys: bool = False
    asks_for_role: bool = False
    broken: str = ""  # a route that is answered with 503
    devices: dict[str, str] = field(default_factory=dict)  # their keys
    take: Callable[[bytes], None] = lambda body: None  # what the IoT Hub does with an event of a device
    address: str = ""

    def __enter__(self) -> "Azure":
        handler = type("Handler", (_Handler,), {"state": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def rest(self) -> Rest:
        return _Here(self.address)

    def set_key(self, function: str, body: dict[str, Any]) -> int:
        if self.unknown_functions:
            self.unknown_functions -= 1
            return 404
        self.keys[function] = body["properties"]["value"]
        self.given.append(function)
        return 201

    def asked_of_iot_hub(self, method: str, device: str, sends: bool, headers: Mapping[str, str], body: bytes) -> int:
        """Return the status with which an IoT Hub answers. Only a device that is registered may send."""
        if sends:
            known = self.devices.get(device)
            if known is None or headers["Authorization"] != signature_of(headers["Authorization"], device, known):
                return 401
            self.take(body)
            return 204
        if not headers["Authorization"].startswith("Bearer "):
            return 401
        if method == "DELETE":
            found = headers["If-Match"] == "*" and self.devices.pop(device, "")
            return 204 if found else 404
        if device in self.devices:
            return 409
        self.devices[device] = json.loads(body)["authentication"]["symmetricKey"]["primaryKey"]
        return 200

    def refusal(self, route: str, key: str | None) -> int | None:
        """Return the status with which the front refuses a request. None when the app answers it."""
        if route == self.broken:
            return 503
        function = "explain_number" if route.startswith("ledger/") else KEYED.get(route)
        if function and (self.refuses_keys or key is None or key != self.keys.get(function)):
            return 401
        return 403 if self.asks_for_role and function == "explain_number" else None


class _Here(Rest):
    def __init__(self, address: str) -> None:
        super().__init__(token, time)
        self._address = address

    def _call(self, service: Service, method: str, path: str, body: Any, more: Mapping[str, str]) -> Any:
        return super()._call(Service(self._address, service.scope), method, path, body, more)


def signature_of(authorization: str, device: str, key: str) -> str:
    """Return the authorization that a device with this key has until the time of this one."""
    expiry = authorization.rpartition("&se=")[2]
    address = quote(f"{HOST}/devices/{device}", safe="")
    signed = hmac.digest(base64.b64decode(key), f"{address}\n{expiry}".encode(), "sha256")
    return f"SharedAccessSignature sr={address}&sig={quote(base64.b64encode(signed), safe='')}&se={expiry}"


def token(scope: str) -> str:
    return token_of({**PERSON, "oid": DEPLOYER, "aud": scope})


class _Handler(BaseHTTPRequestHandler):
    state: Azure

    def do_PUT(self) -> None:
        if self._is_of_iot_hub():
            return
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = KEY_PATH.fullmatch(self.path)
        self._answer(self.state.set_key(found[1], body) if found else 400)

    def do_POST(self) -> None:
        self._is_of_iot_hub()

    def _is_of_iot_hub(self) -> bool:
        found = DEVICE.fullmatch(self.path)
        if found is not None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            given = (self.command, found[1], found[2] is not None, dict(self.headers), body)
            self._answer(self.state.asked_of_iot_hub(*given))
        return found is not None

    def do_DELETE(self) -> None:
        if self._is_of_iot_hub():
            return
        found = KEY_PATH.fullmatch(self.path)
        self._answer(204 if found and self.state.keys.pop(found[1], None) else 404)

    def do_GET(self) -> None:
        if "/roleAssignments?" in self.path and f"assignedTo('{DEPLOYER}')" in self.path:
            roles = [{"properties": {"roleDefinitionId": role}} for role in self.state.roles]
            return self._answer(200, json.dumps({"value": roles}).encode())
        if self.path == f"{IOT_HUB}?api-version=2023-06-30":
            return self._answer(200, json.dumps({"properties": {"hostName": HOST}}).encode())
        route = self.path.removeprefix("/api/")
        if refused := self.state.refusal(route, self.headers["x-functions-key"]):
            return self._answer(refused)
        try:
            with urllib.request.urlopen(self.state.app + self.path) as answer:
                return self._answer(answer.status, answer.read(), answer.headers["Content-Type"])
        except urllib.error.HTTPError as error:
            return self._answer(error.code, error.read(), error.headers["Content-Type"])

    def _answer(self, status: int, body: bytes = b"", content_type: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write no log."""
