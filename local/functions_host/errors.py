"""The errors the host raises on purpose. Each text is one clear line (settings: one line per fault).

HostError
├── IndexingFailed   the app cannot be loaded, as the real worker would refuse it
├── NotEmulated      the app uses something that this host does not do
├── SettingsFault    host.json, local.settings.json, the environment or a binding's setting is wrong
└── CannotListen     the HTTP port cannot be opened
"""

from collections.abc import Sequence


class HostError(Exception):
    """The host cannot start, and its text says why and what to do."""


class IndexingFailed(HostError):
    """The functions of an app cannot be indexed; the real host would start none of them."""


class NotEmulated(HostError):
    """A function uses a trigger, a binding or an option that the local host does not have."""

    def __init__(self, function_name: str, what: str) -> None:
        super().__init__(f"function {function_name}: {what} is not emulated by the local functions host")
        self.function_name = function_name
        self.what = what


class SettingsFault(HostError):
    """One or more settings are missing or wrong; `faults` holds a line for each."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


class CannotListen(HostError):
    """The address for HTTP is taken or not allowed."""

    def __init__(self, port: int, reason: str) -> None:
        super().__init__(f"cannot listen on port {port} ({reason}); free it or pass --port")
        self.port = port
