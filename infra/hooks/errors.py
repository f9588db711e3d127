"""The one error of the hooks: a step cannot go on until a person acts."""


class HookRefused(Exception):
    """A step was refused; each fault is one line that says what happened, to which thing, and what to do."""

    def __init__(self, *faults: str) -> None:
        self.faults = faults
        super().__init__("\n".join(faults))
