"""The load that a user expects, and the costs of the app that we measured."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """The events of the busiest hour, as an average per second.

    `log_bytes_per_event` counts the bytes that one event adds to the database's log: its row, its index entries, and
    its share of ledger and letters. `headroom` is the factor by which each part is larger than the load, for peaks and
    for catching up.
    """

    events_per_second: float
    event_bytes: int = 250
    log_bytes_per_event: int = 1_000
    row_bytes_per_event: int = 150
    headroom: float = 1.5


@dataclass(frozen=True, slots=True)
class Costs:
    """The measured costs of the app; docs/capacity.md says how they were measured.

    `cpu_seconds_per_event` is the time of the whole host on one core, with receiving. `batch_size` is set in host.json.
    """

    cpu_seconds_per_event: float = 120e-6
    batch_size: int = 500
    round_trip_seconds: float = 0.002
