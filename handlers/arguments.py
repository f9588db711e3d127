"""The reason and the author of an order: the arguments that the app's commands share."""

import getpass
from argparse import ArgumentTypeError

import msgspec

from core.api.operation import Reason


def reason_of(text: str) -> str:
    """Return the reason, within the limits of the API."""
    try:
        return msgspec.convert(text, Reason)
    except msgspec.ValidationError:
        raise ArgumentTypeError(
            f"a reason has 3 to 400 characters and is not blank; this one has {len(text)}"
        ) from None


def author() -> str:
    """Return the name under which the user of a command is recorded."""
    return f"command:{getpass.getuser()}"
