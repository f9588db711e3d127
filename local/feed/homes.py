"""The homes of the company: what each is, and what it has published about itself so far."""

from local.feed.bodies import ZONES, Zone

_UNREGISTERED, _DISARMED, _ARMED = 0, 1, 2
_IN_TIME, _LATE_DISARMED, _LATE_ARMED = 1, 2, 3


def home_id(number: int) -> str:
    """The name of a home, which is its partition key."""
    return f"home-{number:06}"


def zone_of(number: int) -> Zone:
    """Where a home stands."""
    return ZONES[number % len(ZONES)]


class Homes:
    """Two bytes of memory for a home, so that a million of them need no more than a few megabytes."""

    def __init__(self, count: int) -> None:
        self._states = bytearray(count)
        self._visited = bytearray(count)

    def first_visit(self, number: int) -> bool:
        """Whether nobody asked this of the home before."""
        seen = self._visited[number]
        self._visited[number] = seen or _IN_TIME
        return not seen

    def be_late(self, number: int, armed: bool) -> None:
        """The home will register, once and armed like this, after it has published readings."""
        self._visited[number] = _LATE_ARMED if armed else _LATE_DISARMED

    def late(self, number: int) -> bool | None:
        """How a late home registers, armed or not; None for the others."""
        visited = self._visited[number]
        return visited == _LATE_ARMED if visited in (_LATE_DISARMED, _LATE_ARMED) else None

    def armed(self, number: int) -> bool | None:
        """As the home's latest registration says; None when it has published none."""
        state = self._states[number]
        return None if state == _UNREGISTERED else state == _ARMED

    def register(self, number: int, armed: bool) -> None:
        """The home has published a registration."""
        self._states[number] = _ARMED if armed else _DISARMED
