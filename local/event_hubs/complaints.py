"""The log of the wrongs of peers: a line for each, and one a second at most for the same wrong of an address."""

from __future__ import annotations

import logging
from collections.abc import Callable

_QUIET = 1_000  # milliseconds after a line in which the same one is left out
_LONGEST = 400  # characters of a reason
_REMEMBERED = 1_000  # lines; more than that are not repetitions
_TEXTS = {
    "greet": "a peer does not speak AMQP 1.0; its connection ends",
    "sign_in": "a peer signs in with nothing that is known here; its connection ends",
    "close": "a peer broke the protocol; its connection ends",
    "end": "a peer broke the protocol; its session ends",
    "detach": "a peer broke the protocol; its link ends",
    "attach": "a link was refused; the peer gets the reason",
    "drop": "a peer sends a frame too slowly; its connection is cut",
}

_log = logging.getLogger(__name__)


class Complaints:
    """The lines of the last second, by address, action and reason."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._written: dict[tuple[str, str, str], int] = {}

    def note(self, host: str, port: int, action: str, reason: str) -> None:
        """Log that a peer did something wrong, unless its host did the same a moment ago."""
        line, now = (host, action, reason[:_LONGEST]), self._clock()
        if now - self._written.get(line, now - _QUIET) < _QUIET:
            return
        if len(self._written) >= _REMEMBERED:
            self._written.clear()
        self._written[line] = now
        _log.warning(_TEXTS[action], extra={"action": action, "peer": f"{host}:{port}", "reason": line[2]})
