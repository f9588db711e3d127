"""The tasks of an orchestrator, as on the .NET side: one task, all of some, any of some, or a call with retries.

Source: Task.WhenAll and Task.WhenAny, and DurableTask.Core's RetryInterceptor.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

LONGEST_DELAY = timedelta(days=6)


class Task:
    """A task to wait for; its end may end its parent."""

    def __init__(self, parent: "Task | None" = None) -> None:
        self._parent = parent
        self.is_done = False
        self.has_failed = False

    def finish(self, *, failed: bool = False) -> None:
        """End the task; a second call does nothing."""
        if self.is_done:
            return
        self.is_done, self.has_failed = True, failed
        if self._parent is not None:
            self._parent.child_ended(self)

    def child_ended(self, child: "Task") -> None:
        """React to the end of a child."""


class _Compound(Task):
    def __init__(self, parent: Task | None) -> None:
        super().__init__(parent)
        self._children: Sequence[Task] | None = None

    def begin(self, children: Sequence[Task]) -> None:
        """Wait for the children; some may have ended already."""
        self._children = children
        self._look(children)

    def child_ended(self, child: Task) -> None:
        if self._children is not None:
            self._look(self._children)

    def _look(self, children: Sequence[Task]) -> None:
        """End when enough of the children have ended."""


class AllOf(_Compound):
    """Ends when every child has ended, even after one failed (the SDK does not wait for the others)."""

    def _look(self, children: Sequence[Task]) -> None:
        if all(each.is_done for each in children):
            self.finish(failed=any(each.has_failed for each in children))


class AnyOf(_Compound):
    """Ends with the first child."""

    def _look(self, children: Sequence[Task]) -> None:
        if not children or any(each.is_done for each in children):
            self.finish()


@dataclass(frozen=True, slots=True)
class RetryOptions:
    """The number of attempts of a call, and the delays between them."""

    attempts: int
    first_interval: timedelta
    backoff: float
    longest_interval: timedelta
    timeout: timedelta | None

    def delay(self, attempt: int) -> timedelta:
        """Return the delay after a failed attempt, counted from 0."""
        milliseconds = self.first_interval / timedelta(milliseconds=1) * self.backoff**attempt
        longest = self.longest_interval / timedelta(milliseconds=1)
        return timedelta(milliseconds=min(milliseconds, longest))


def retry_options(shape: Mapping[str, Any]) -> RetryOptions:
    """Read the options of an action. Source: the extension's RetryOptionsConverter."""
    timeout = shape.get("retryTimeoutInMilliseconds")
    longest = shape.get("maxRetryIntervalInMilliseconds")
    return RetryOptions(
        attempts=int(shape["maxNumberOfAttempts"]),
        first_interval=timedelta(milliseconds=shape["firstRetryIntervalInMilliseconds"]),
        backoff=float(shape.get("backoffCoefficient") or 1),
        longest_interval=LONGEST_DELAY if longest is None else timedelta(milliseconds=longest),
        timeout=None if timeout is None else timedelta(milliseconds=timeout),
    )


class Caller(Protocol):
    """The part of an orchestration that a call with retries needs: its time and its timers."""

    @property
    def now(self) -> datetime:
        """The time of the episode."""

    def set_timer(self, parent: Task, fire_at: datetime) -> Task:
        """Set a timer, under the next sequence number."""


class Retry(Task):
    """A call that is repeated after a timer; after the last failure it sets one more timer, due at once.

    The last timer has no use: an early RetryInterceptor set it, and histories rely on its sequence number.
    """

    def __init__(
        self, parent: Task | None, caller: Caller, call: Callable[[Task], Task], options: RetryOptions
    ) -> None:
        super().__init__(parent)
        self._caller = caller
        self._call = call
        self._options = options
        self._began_at = caller.now
        self._failures = 0
        self._timer: Task | None = None
        call(self)

    def child_ended(self, child: Task) -> None:
        if child is self._timer:
            self._after_timer()
        elif child.has_failed:
            self._after_failure()
        else:
            self.finish()

    def _after_failure(self) -> None:
        self._failures += 1
        now, options = self._caller.now, self._options
        if self._failures == options.attempts:
            self._timer = self._caller.set_timer(self, now)
        elif options.timeout is not None and now >= self._began_at + options.timeout:
            self.finish(failed=True)
        else:
            self._timer = self._caller.set_timer(self, now + options.delay(self._failures - 1))

    def _after_timer(self) -> None:
        if self._failures == self._options.attempts:
            self.finish(failed=True)
        else:
            self._call(self)
