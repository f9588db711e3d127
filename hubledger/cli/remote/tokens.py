"""A token of Microsoft Entra for the app, from wherever this machine has one."""

import logging
import time
from collections.abc import Callable

from hubledger.cli.console import UsageFault

EARLY = 300  # seconds before its end, a token is replaced


def tokens_for(scope: str) -> Callable[[], str]:
    """Return a source of tokens: Azure CLI, environment, managed identity, in the order of DefaultAzureCredential."""
    from azure.core.exceptions import ClientAuthenticationError
    from azure.identity import DefaultAzureCredential

    logging.getLogger("azure").setLevel(logging.CRITICAL)  # its warnings repeat the error
    credential, found = DefaultAzureCredential(), ("", 0.0)

    def token() -> str:
        nonlocal found
        if time.time() > found[1] - EARLY:
            try:
                given = credential.get_token(scope)
            except ClientAuthenticationError as error:
                first = str(error).partition("\n")[0]
                raise UsageFault(f"HUBLEDGER_SCOPE={scope}: no token ({first}): sign in with `az login`") from None
            found = (given.token, given.expires_on)
        return found[0]

    return token
