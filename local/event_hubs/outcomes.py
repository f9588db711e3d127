"""The outcomes of a session's deliveries: each waits for the commit, and then until its publisher's lead is short."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from local.event_hubs.codec import Raw, UInt
from local.event_hubs.errors import AmqpError
from local.event_hubs.frames import ACCEPTED, DISPOSITION, REJECTED, SERIAL, composite, describe

ACCEPTED_STATE = composite(ACCEPTED)


class Gate(Protocol):
    """The reason for which an outcome waits after the commit."""

    @property
    def is_too_long(self) -> bool: ...

    def wait(self, resume: Callable[[], None]) -> None:
        """Call `resume` once, at the end of the wait."""


class Held(Protocol):
    """The link of a delivery; while one of its outcomes waits, its peer has no credit."""

    def hold(self) -> None: ...

    def resume(self) -> None: ...


@dataclass(slots=True, eq=False)
class Outcome:
    """The state of a range of deliveries of a link; the sender of those that are settled gets no word of it."""

    link: Held
    first: int
    last: int
    state: Raw
    gate: Gate | None = None
    is_settled: bool = False

    def takes(self, later: Outcome) -> bool:
        """Return True, and take the place of a later outcome, when it goes on where this one ends."""
        alike = later.state is self.state and later.gate is self.gate and later.link is self.link
        if not alike or later.is_settled is not self.is_settled or later.first != (self.last + 1) & SERIAL:
            return False
        self.last = later.last
        return True


class Outcomes:
    """The outcomes of one session; `send` takes each performative."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._new: list[Outcome] = []
        self._held: dict[Outcome, None] = {}

    def add(self, outcome: Outcome) -> None:
        """Store an outcome until the broker has committed."""
        if not self._new or not self._new[-1].takes(outcome):
            self._new.append(outcome)

    def settle(self, failure: AmqpError | None) -> None:
        """Send the outcomes after a commit, or hold them; after a failed one reject what was accepted."""
        outcomes, self._new = self._new, []
        for each in outcomes:
            if failure is not None and each.state is ACCEPTED_STATE:
                each.state, each.gate = composite(REJECTED, describe(failure)), None
            if each.gate is not None and each.gate.is_too_long:
                self._held[each] = None
                each.link.hold()
                each.gate.wait(partial(self._resume, each))
            else:
                self._answer(each)

    def release(self, link: object | None = None) -> None:
        """Send the outcomes that are held, of a link that ends or of all."""
        for each in list(self._held):
            if link is None or each.link is link:
                del self._held[each]
                self._answer(each)

    def drop(self) -> None:
        """Forget every outcome: the peer is gone."""
        self._held.clear()

    def _resume(self, each: Outcome) -> None:
        """Give credit first: a peer that gets an outcome may send at once."""
        if each in self._held:
            del self._held[each]
            each.link.resume()
            self._answer(each)

    def _answer(self, each: Outcome) -> None:
        if not each.is_settled:
            self._send(composite(DISPOSITION, True, UInt(each.first), UInt(each.last), True, each.state))
