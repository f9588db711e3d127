"""What the user knows of the load, and what we measured of the app."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """Events as they arrive at the busiest hour, on average over a second.

    `log_bytes_per_event` is what one event writes to the database's log: its row, indexes, and its share of ledger and
    letters. `headroom` is the factor by which everything is bought larger than the load, for peaks and catching up.
    """

    events_per_second: float
    event_bytes: int = 250
    log_bytes_per_event: int = 1_000
    row_bytes_per_event: int = 150
    headroom: float = 1.5


@dataclass(frozen=True, slots=True)
class Costs:
    """Measured costs of the app; docs/capacity.md says how they were measured.

    `cpu_seconds_per_event` is the whole host, receiving included, on one core. `batch_size` is host.json's.
    """

    cpu_seconds_per_event: float = 120e-6
    batch_size: int = 500
    round_trip_seconds: float = 0.002
