"""The proof after a deployment: each route answers, and an event that is sent becomes a row."""

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from infra.hooks.deployer.environment import in_virtual_network
from infra.hooks.errors import HookRefused
from infra.hooks.outputs import read_outputs
from infra.hooks.patience import Clock, Pending, wait_for
from infra.hooks.rest import Rest, Token
from infra.hooks.smoke import event
from infra.hooks.smoke.app import CHECKS, App, AppUnreachable, fault_of
from infra.hooks.smoke.device import Device
from infra.hooks.smoke.key import smoke_key
from infra.hooks.smoke.proof import prove_event
from infra.hooks.smoke.sender import INSIDE, NotSent, Sender
from local.feed.event_file import FileEvent

ROOT = Path(__file__).resolve().parents[3]
CHOICE, SKIP = "SMOKE", "skip"
CHOICES = (CHOICE, event.FILE)  # the names that `azd env set` may set for this step
START = 300.0  # seconds from the deployment to the first answer
ROUTES = 60.0  # seconds in which every route must answer


def prove_deployment(environment: Mapping[str, str], rest: Rest, token: Token, clock: Clock) -> None:
    """Smoke the deployed app with a key of its own, and print the address of its page.

    Raise HookRefused when a check fails.
    """
    choice = environment.get(CHOICE, "")
    if choice not in ("", SKIP):
        raise HookRefused(f"{CHOICE} must be empty or {SKIP!r}, not {choice!r}")
    if choice == SKIP:
        print(f"no smoke tests: {CHOICE}={SKIP}")
        return
    outputs = read_outputs(environment)
    namespace = outputs.settings.get("EVENTHUB__fullyQualifiedNamespace")  # an IoT Hub has none
    hub = event.Hub(namespace, outputs.eventhub_name, token) if namespace else Device(outputs.eventhub_id, rest, token)
    sender = Sender(hub, outputs.eventhub_id, rest, in_virtual_network(environment), clock)
    sent = event.event_to_send(ROOT, environment)
    logging.getLogger("azure").setLevel(logging.CRITICAL)  # a refused sending is one line of ours
    with smoke_key(outputs.function_app_id, rest, clock) as key:
        app = App(outputs.function_app_uri, key)
        _start(app, clock)
        wait_for("every route", lambda: _refuse_faults(app), ROUTES, clock)
        print(f"{len(CHECKS)} routes answer as they should")
        _prove_event(app, sender, sent)
    print(f"the page of the app: {outputs.function_app_uri}/api/ops")


def _start(app: App, clock: Clock) -> None:
    try:
        wait_for("the app", app.status, START, clock)
    except HookRefused as error:
        if not isinstance(error.__cause__, AppUnreachable):
            raise
        raise HookRefused(f"{error}; in a private network, {INSIDE}, or `azd env set {CHOICE} {SKIP}`") from error


def _refuse_faults(app: App) -> None:
    if faults := [fault for check in CHECKS if (fault := fault_of(app, check))]:
        raise Pending("; ".join(faults))


def _prove_event(app: App, sender: Sender, sent: FileEvent | None) -> None:
    try:
        if sent is None:
            raise NotSent(event.UNKNOWN)
        print(prove_event(app, partial(sender.send, sent), sender.clock))
    except NotSent as error:
        print(f"no event was sent, so only the routes are proven: {error}")
