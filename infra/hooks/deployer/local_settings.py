"""`local.settings.json` of the deployer: a run of the app on this machine that does not disturb the deployed app."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infra.hooks.deployer.existing import HUB, IOT_HUB, is_given
from infra.hooks.deployer.sign_in import in_pipeline
from infra.hooks.outputs import Outputs
from infra.hooks.room import name_of

FILE = "local.settings.json"
MARK = "WRITTEN_BY_HOOK"  # a digest of the other values: a person's change makes the file the person's
OWN_GROUP = "$Default"  # each hub has it, and the deployed app does not use it
OWN_STORE = "sqlite:.local-run/hubledger.db"


def write_local_settings(root: Path, outputs: Outputs, environment: Mapping[str, str]) -> None:
    """Write the settings for a developer's run against the hub of the environment. Never change a person's file."""
    if in_pipeline(environment):
        return
    path = root / FILE
    if is_given(HUB, environment) or is_given(IOT_HUB, environment):
        print(f"{FILE} was not written: {OWN_GROUP} of a hub of others may have a reader, whose events it would take")
    elif outputs.settings["EVENTHUB_CONSUMER_GROUP"].lower() == OWN_GROUP.lower():
        print(
            f"{FILE} was not written: the deployed app reads through {OWN_GROUP}; a second host would take its events"
        )
    elif path.exists() and not _is_ours(path):
        print(
            f"{FILE} is yours and was not changed; delete it, then run azd provision, to have one for this environment"
        )
    else:
        values = settings_of(outputs, name_of(environment))
        content = {"IsEncrypted": False, "Values": {**values, MARK: _digest(values)}}
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        print(f"{FILE} was written: the app on this machine reads {outputs.eventhub_name} through {OWN_GROUP}")


def settings_of(outputs: Outputs, transform: str) -> dict[str, str]:
    """Return the settings: the hub by identity, a consumer group and a store of this machine's own, and no secret.

    Two hosts that share a consumer group take partitions from each other, and two apps that share a store share its
    checkpoints.
    """
    return {
        "FUNCTIONS_WORKER_RUNTIME": "python",
        "FUNCTIONS_REQUEST_BODY_SIZE_LIMIT": "1048576",
        "PYTHON_THREADPOOL_THREAD_COUNT": "32",
        "AzureWebJobsStorage": "UseDevelopmentStorage=true",
        "EVENTHUB__fullyQualifiedNamespace": outputs.settings["EVENTHUB__fullyQualifiedNamespace"],
        "EVENTHUB_NAME": outputs.eventhub_name,
        "EVENTHUB_CONSUMER_GROUP": OWN_GROUP,
        "HUB_READER_CONSUMER_GROUP": outputs.settings["HUB_READER_CONSUMER_GROUP"],
        "STORE_CONNECTION": OWN_STORE,
        "TRANSFORM": transform,
    }


def _is_ours(path: Path) -> bool:
    try:
        values: dict[str, Any] = dict(json.loads(path.read_text(encoding="utf-8-sig"))["Values"])
    except (ValueError, TypeError, KeyError):
        return False
    return bool(values.pop(MARK, None) == _digest(values))


def _digest(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]
