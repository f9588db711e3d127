"""Build the addresses for a client: the durableClient input, and the links of one instance.

Source: HttpApiHandler (GetInstanceCreationLinks, GetClientResponseLinks) and BindingHelper.
"""

import json
from urllib.parse import quote

WEBHOOK = "/runtime/webhooks/durabletask"
RPC = "/durabletask"
PLACEHOLDER = "INSTANCEID"
KEY = "code=local"
LINKS = {
    "statusQueryGetUri": "",
    "sendEventPostUri": "/raiseEvent/{eventName}",
    "terminatePostUri": "/terminate?reason={text}",
    "rewindPostUri": "/rewind?reason={text}",
    "purgeHistoryDeleteUri": "",
    "restartPostUri": "/restart",
    "suspendPostUri": "/suspend?reason={text}",
    "resumePostUri": "/resume?reason={text}",
}


def management_links(base_url: str, hub_name: str, instance_id: str) -> dict[str, str]:
    """Return the management addresses of one instance; `base_url` is the address of the host."""
    prefix = f"{base_url}{WEBHOOK}/instances/{quote(instance_id, safe='')}"
    query = f"taskHub={quote(hub_name)}&connection=Storage&{KEY}"
    links = {name: f"{prefix}{path}{'&' if '?' in path else '?'}{query}" for name, path in LINKS.items()}
    return {"id": instance_id, **links}


def client_input(base_url: str, port: int, hub_name: str) -> str:
    """Return the value of a durableClient binding; the SDK itself calls the address `rpcBaseUrl`."""
    create = f"{base_url}{WEBHOOK}/orchestrators/{{functionName}}[/{{instanceId}}]"
    waiting = "timeout={timeoutInSeconds}&pollingInterval={intervalInSeconds}"
    value = {
        "taskHubName": hub_name,
        "connectionName": None,
        "creationUrls": {
            "createNewInstancePostUri": f"{create}?{KEY}",
            "createAndWaitOnNewInstancePostUri": f"{create}?{waiting}&{KEY}",
        },
        "managementUrls": management_links(base_url, hub_name, PLACEHOLDER),
        "baseUrl": f"{base_url}{WEBHOOK}",
        "requiredQueryStringParameters": KEY,
        "rpcBaseUrl": f"http://127.0.0.1:{port}{RPC}/",
        "httpBaseUrl": None,
    }
    return json.dumps(value)
