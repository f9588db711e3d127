"""The one error of the hooks: a step cannot continue until a person acts."""


class HookRefused(Exception):
    """The refusal of a step. Each fault is one line: the problem, the thing that has it, and the action to take."""

    def __init__(self, *faults: str) -> None:
        self.faults = tuple(" ".join(fault.split()) for fault in faults)
        super().__init__("\n".join(self.faults))
