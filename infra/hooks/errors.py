"""The one error of the hooks: something stands in the way, and a person can do something about it."""


class HookRefused(Exception):
    """The message says what, which one, and what now; one line per fault."""

    def __init__(self, *faults: str) -> None:
        self.faults = faults
        super().__init__("\n".join(faults))
