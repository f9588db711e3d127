"""Serial numbers of 32 bits (RFC 1982), which begin again after the last: ids of transfers, counts of deliveries."""

from __future__ import annotations

SERIAL = 0xFFFFFFFF
_HALF = 1 << 31


def difference(first: int, second: int) -> int:
    """Return how far `first` is after `second`; a negative number when it is before."""
    return ((first - second + _HALF) & SERIAL) - _HALF
