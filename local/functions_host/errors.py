"""The errors that stop the host. Each text is one line (settings: one line per fault).

HostError
├── IndexingFailed   the app cannot be loaded, as the real worker would refuse it
├── NotEmulated      the app uses a feature that this host does not have
├── SettingsFault    host.json, local.settings.json, the environment or a binding's setting is wrong
└── CannotListen     the HTTP port cannot be opened
"""

from collections.abc import Sequence

RECYCLED, REFUSED = 87, 78  # exit codes: of a host that ends itself, and of a worker that cannot run the app


class HostError(Exception):
    """The host cannot start. The text says why and what to do."""


class IndexingFailed(HostError):
    """The functions of an app cannot be indexed. The real host would start none of them."""


class NotEmulated(HostError):
    """A function uses a trigger, a binding or an option that the local host does not have."""

    def __init__(self, function_name: str, what: str) -> None:
        super().__init__(f"function {function_name}: {what} is not emulated by the local functions host")
        self.function_name = function_name


class SettingsFault(HostError):
    """Settings are missing or wrong. `faults` holds a line for each."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


class CannotListen(HostError):
    """The HTTP port is in use or not allowed."""

    def __init__(self, port: int, reason: str) -> None:
        super().__init__(f"cannot listen on port {port} ({reason}); free it or pass --port")
