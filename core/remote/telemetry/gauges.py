"""The gauges: the facts of the watch, once a minute. No scrape asks the store or the hub."""

from collections.abc import Mapping

from core.ledger.retention.burn_down import HOUR, WITHIN, BurnDown
from core.ledger.retention.open_counts import LETTERS
from core.ledger.watch import Observation, ages, watch_facts
from core.model.events import Stream
from core.remote.telemetry import names
from core.remote.telemetry.instruments import Instruments, Value
from core.remote.telemetry.signals import of_stream

OF_FACTS = {
    "oldest_letter_seconds": names.OLDEST_LETTER,
    "absent_new": names.ABSENT,
    "partitions_stopped": names.STOPPED,
    "stops_recorded": names.STOPS,
    "aggregation_lag_seconds": names.AGGREGATION_LAG,
    "aggregation_failures": names.AGGREGATION_FAILURES,
    "aggregation_faults": names.AGGREGATION_FAULTS,
    "events_lost": names.LOST,
}


class Gauges:
    """Sends what the watch saw."""

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments

    def watched(self, stream: Stream, seen: Observation) -> None:
        """Send the facts of one watch; a partition without a lag sends 0, so that its last lag does not stay."""
        hub, facts, waits = of_stream(stream), watch_facts(stream.event_hub, seen), ages(seen)
        for fact, metric in OF_FACTS.items():
            self._instruments.record(metric, float(str(facts[fact])), hub)
        self._instruments.record(names.UNBALANCED, int(not seen.books.balanced), hub)
        for id, lag in seen.lags.items():
            of_one = {**hub, names.PARTITION: str(id)}
            self._instruments.record(names.LAG, lag, of_one)
            self._instruments.record(names.LAG_AGE, waits.get(id, 0.0), of_one)
        for status, count in seen.books.letters.counts.items():
            self._instruments.record(names.LETTERS_NOW, count, {**hub, names.LETTER_STATUS: status})
        if seen.burn_down is not None:
            self._burn_down(seen.burn_down, facts, hub)

    def _burn_down(self, found: BurnDown, facts: Mapping[str, object], hub: Mapping[str, Value]) -> None:
        letters = found.share(LETTERS)
        if found.retention is not None:
            self._instruments.record(names.RETENTION_LOSS, float(str(facts["loss_hours"])), hub)
            for hours, count in zip(WITHIN, letters.within, strict=True):
                within = {names.WITHIN: f"{hours // HOUR}h"}
                self._instruments.record(names.RETENTION_LETTERS, count, {**hub, **within})
        for id in found.partition_ids:
            left = found.hours_left(found.share(partition_id=id))
            if left is not None:
                self._instruments.record(names.RETENTION_LEFT, left, {**hub, names.PARTITION: str(id)})
