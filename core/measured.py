"""Measured use cases: telemetry, where it is open, runs each of them and notes the facts of its report."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar, runtime_checkable

GAUGES = (  # the facts of the watch that an alert reads
    *("ledger_balanced", "stops_recorded", "absent_new", "partitions_stopped", "lag_seconds", "letters_open"),
    *("oldest_letter_seconds", "loss_hours", "events_lost"),
    *("aggregation_lag_seconds", "aggregation_failures", "aggregation_faults"),
)
Given = ParamSpec("Given")
Report = TypeVar("Report")


@runtime_checkable
class Factual(Protocol):
    """A report with facts."""

    def facts(self) -> Mapping[str, object]:
        """Return the facts by name, without a body, a key or the text of an error."""
        ...


class Recorder(Protocol):
    """Runs a use case, and records its time, its fault and its facts."""

    def run(
        self, name: str, use_case: Callable[..., Report], args: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Report:
        """Return the report of the use case, or raise its fault."""
        ...


_recorder: Recorder | None = None


def record_with(recorder: Recorder | None) -> None:
    """Let this recorder run the measured use cases of the process."""
    global _recorder
    _recorder = recorder


def measured(name: str) -> Callable[[Callable[Given, Report]], Callable[Given, Report]]:
    """Name a use case for the recorder. Without a recorder, the use case is called as it is."""

    def around(use_case: Callable[Given, Report]) -> Callable[Given, Report]:
        @wraps(use_case)
        def run(*args: Given.args, **named: Given.kwargs) -> Report:
            if _recorder is None:
                return use_case(*args, **named)
            return _recorder.run(name, use_case, args, named)

        return run

    return around
