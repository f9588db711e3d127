"""Find the app's Durable functions by kind and name, in any case."""

from collections.abc import Sequence
from enum import StrEnum

from local.functions_host.emulated import ACTIVITY_TRIGGER, ENTITY_TRIGGER, ORCHESTRATION_TRIGGER
from local.functions_host.function import FunctionDescription


class Kind(StrEnum):
    """The kind of a Durable function, in the words of the extension's errors."""

    ORCHESTRATOR = "orchestrator"
    ACTIVITY = "activity"
    ENTITY = "entity"


_TRIGGERS = {Kind.ORCHESTRATOR: ORCHESTRATION_TRIGGER, Kind.ACTIVITY: ACTIVITY_TRIGGER, Kind.ENTITY: ENTITY_TRIGGER}
_NAMES = {Kind.ORCHESTRATOR: "orchestration", Kind.ACTIVITY: "activity", Kind.ENTITY: "entityName"}


class UnknownFunction(Exception):
    """No enabled function has that kind and name."""

    def __init__(self, kind: Kind, name: str, known: Sequence[str]) -> None:
        listed = ", ".join(f"'{each}'" for each in known)
        more = (
            f"The following are the known {kind} functions: {listed}."
            if known
            else f"No {kind} functions are currently registered!"
        )
        super().__init__(
            f"The function '{name}' doesn't exist, is disabled, or is not an {kind} function. Additional info: {more}"
        )


class DurableFunctions:
    """The callable functions; a function has the name in its trigger's option, or else its own."""

    def __init__(self, functions: Sequence[FunctionDescription]) -> None:
        self._by_kind = {kind: {_name(kind, each): each for each in functions if _is(kind, each)} for kind in Kind}
        self._lower = {
            kind: {name.lower(): each for name, each in found.items()} for kind, found in self._by_kind.items()
        }

    def get(self, kind: Kind, name: str) -> FunctionDescription:
        """Return the function; raise UnknownFunction, in the extension's words."""
        try:
            return self._lower[kind][name.lower()]
        except KeyError:
            raise UnknownFunction(kind, name, tuple(self._by_kind[kind])) from None


def _is(kind: Kind, function: FunctionDescription) -> bool:
    return function.trigger.type == _TRIGGERS[kind]


def _name(kind: Kind, function: FunctionDescription) -> str:
    return str(function.trigger.settings.get(_NAMES[kind]) or function.name)
