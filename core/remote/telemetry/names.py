"""The catalogue of telemetry: every span, metric and attribute that the app sends; docs/telemetry.md shows the same.

Names of `messaging.`, `db.` and `error.` are those of OpenTelemetry's semantic conventions; others begin with
`hubledger.`. No attribute has a body, a key, an id from an event, or the text of an error: their values are few.
"""

from dataclasses import dataclass
from typing import Literal

CONVENTIONS = "1.44.0"  # of opentelemetry-semantic-conventions, in requirements.txt by azure-monitor-opentelemetry

SYSTEM, EVENT_HUBS = "messaging.system", "eventhubs"
OPERATION, OPERATION_TYPE, PROCESS = "messaging.operation.name", "messaging.operation.type", "process"
DESTINATION = "messaging.destination.name"
PARTITION = "messaging.destination.partition.id"
GROUP = "messaging.consumer.group.name"
BATCH_COUNT = "messaging.batch.message_count"
ERROR = "error.type"
DATABASE, DATABASE_OPERATION = "db.system.name", "db.operation.name"
FIRST, LAST = "hubledger.sequence_number.first", "hubledger.sequence_number.last"
RETRIES, COMMITS, GAPS = "hubledger.batch.retries", "hubledger.batch.commits", "hubledger.batch.gaps"
STORE_CALLS, LINKS_LEFT_OUT = "hubledger.batch.store_calls", "hubledger.batch.links_left_out"
DEAD_LETTERED, REDELIVERED = "hubledger.batch.dead_lettered", "hubledger.batch.redelivered"
OUTCOME = "hubledger.outcome"
LETTER_CLASS, LETTER_STATUS, LETTERS = "hubledger.letter.class", "hubledger.letter.status", "hubledger.letters.tried"
REPLAY, PIECES, EVENTS = "hubledger.replay.id", "hubledger.replay.pieces", "hubledger.replay.events"
JOB, STEPS = "hubledger.aggregation.job", "hubledger.aggregation.steps"
WITHIN = "hubledger.retention.within"

Kind = Literal["counter", "histogram", "gauge"]
HUB = (DESTINATION, GROUP)
OF_PARTITION = (*HUB, PARTITION)
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)  # of the conventions
CALLS = (0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
SLICES = (1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
RUNS = (60.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 21600.0)


@dataclass(frozen=True, slots=True)
class Metric:
    """One instrument: its name, kind, unit (UCUM), meaning and attributes; a histogram's buckets."""

    name: str
    kind: Kind
    unit: str
    meaning: str
    attributes: tuple[str, ...] = ()
    buckets: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class SpanName:
    """One kind of span: its name (`{hub}`: that of the event hub), kind, meaning and attributes."""

    name: str
    kind: Literal["consumer", "internal"]
    meaning: str
    attributes: tuple[str, ...]


BATCH_SPAN = SpanName(
    "process {hub}",
    "consumer",
    "one batch, with links to the producers of its events",
    (
        *(SYSTEM, OPERATION, OPERATION_TYPE, *OF_PARTITION, BATCH_COUNT, FIRST, LAST, RETRIES, COMMITS, GAPS),
        *(DEAD_LETTERED, REDELIVERED, STORE_CALLS, LINKS_LEFT_OUT, ERROR),
    ),
)
RETRY_SPAN = SpanName(
    "retry letters", "internal", "one chunk of a retry round", (*OF_PARTITION, LETTERS, STORE_CALLS, ERROR)
)
REPLAY_SPAN = SpanName(
    "replay slice", "internal", "one slice of a replay", (*OF_PARTITION, REPLAY, PIECES, EVENTS, STORE_CALLS, ERROR)
)
TICK_SPAN = SpanName(
    "aggregation tick", "internal", "one step of a job of the aggregation", (JOB, STEPS, STORE_CALLS, ERROR)
)
SPANS = (BATCH_SPAN, RETRY_SPAN, REPLAY_SPAN, TICK_SPAN)

PROCESS_DURATION = Metric(
    "messaging.process.duration",
    "histogram",
    "s",
    "time of a batch, from the first read to the last commit; a failed batch has `error.type`",
    (SYSTEM, OPERATION, *OF_PARTITION, ERROR),
    SECONDS,
)
CONSUMED = Metric(
    "messaging.client.consumed.messages",
    "counter",
    "{message}",
    "events that the hub delivered, redelivered events and repeated batches included",
    (SYSTEM, OPERATION, *OF_PARTITION, ERROR),
)
BATCH_EVENTS = Metric(
    "hubledger.batch.events",
    "histogram",
    "{event}",
    "events of a batch",
    HUB,
    (1.0, 10.0, 50.0, 100.0, 200.0, 300.0, 400.0, 500.0),
)
BATCH_CALLS = Metric(
    "hubledger.batch.store_calls",
    "histogram",
    "{call}",
    "calls to the store for a batch; 1 in the steady state",
    HUB,
    (1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0),
)
BATCH_RETRIES = Metric(
    "hubledger.batch.retries", "counter", "{retry}", "batches that were tried again after a fault", HUB
)
COMMITTED = Metric("hubledger.commits", "counter", "{commit}", "transactions that moved a checkpoint", OF_PARTITION)
EVENT_OUTCOMES = Metric(
    "hubledger.events",
    "counter",
    "{event}",
    "events by outcome: `written`, `filtered`, `dead_lettered`, `held`, `redelivered`, `healed`, `absent`",
    (*HUB, OUTCOME),
)
HEALED_GAPS = Metric("hubledger.gaps", "counter", "{gap}", "gaps that batches and the timer `heal_gaps` healed", HUB)
LETTERS_OPENED = Metric(
    "hubledger.letters.opened",
    "counter",
    "{letter}",
    "letters that batches made, by class of error and first status",
    (*HUB, LETTER_CLASS, LETTER_STATUS),
)
LETTERS_RETRIED = Metric(
    "hubledger.letters.retried",
    "counter",
    "{letter}",
    "letters that a retry tried: `resolved`, `waiting`, `exhausted`; or did not: `released`, `lost`",
    (*HUB, LETTER_STATUS),
)
RETRY_DURATION = Metric(
    "hubledger.retry.duration", "histogram", "s", "time of a chunk of letters", (*HUB, ERROR), SLICES
)
REPLAY_DURATION = Metric(
    "hubledger.replay.duration", "histogram", "s", "time of a slice of a replay", (*HUB, ERROR), SLICES
)
REPLAYED = Metric("hubledger.replayed", "counter", "{event}", "events that replays settled", HUB)
TICK_DURATION = Metric(
    "hubledger.aggregation.tick.duration", "histogram", "s", "time of a step of a job", (JOB, ERROR), SLICES
)
RUN_DURATION = Metric(
    "hubledger.aggregation.run.duration",
    "histogram",
    "s",
    "time of a run, from its plan to the commit that closed it",
    (JOB,),
    RUNS,
)
CALL_DURATION = Metric(
    "db.client.operation.duration",
    "histogram",
    "s",
    "time of a call to the store: `read` a statement, or `commit` a transaction",
    (DATABASE, DATABASE_OPERATION, ERROR),
    CALLS,
)
CONFLICTS = Metric(
    "hubledger.store.conflicts",
    "counter",
    "{conflict}",
    "transactions that touched no row because another owner committed first",
    (DATABASE, ERROR),
)
TRANSIENT_FAULTS = Metric(
    "hubledger.store.transient_faults",
    "counter",
    "{fault}",
    "calls that failed because the store was unavailable; each is retried while patience lasts",
    (DATABASE, ERROR),
)
LAG = Metric("hubledger.lag", "gauge", "{event}", "events after the checkpoint of a partition", OF_PARTITION)
LAG_AGE = Metric(
    "hubledger.lag.age", "gauge", "s", "age of the oldest event of a partition that is not accounted for", OF_PARTITION
)
LETTERS_NOW = Metric("hubledger.letters", "gauge", "{letter}", "letters by status", (*HUB, LETTER_STATUS))
OLDEST_LETTER = Metric(
    "hubledger.letters.oldest_age", "gauge", "s", "age of the event of the open letter that failed first", HUB
)
ABSENT = Metric("hubledger.absent", "gauge", "{event}", "events that batches of the last 15 minutes found absent", HUB)
UNBALANCED = Metric(
    "hubledger.ledger.unbalanced", "gauge", "1", "1 when the ledger does not balance, else 0: a fault of Hubledger", HUB
)
STOPPED = Metric(
    "hubledger.partitions.stopped", "gauge", "{partition}", "partitions with waiting events and no new batch", HUB
)
STOPS = Metric("hubledger.stops", "gauge", "{stop}", "stops of partitions in the store", HUB)
AGGREGATION_LAG = Metric(
    "hubledger.aggregation.lag", "gauge", "s", "age of the oldest commit that is not in the aggregate", HUB
)
AGGREGATION_FAILURES = Metric(
    "hubledger.aggregation.failures", "gauge", "{failure}", "jobs and submits that failed in the last 15 minutes", HUB
)
AGGREGATION_FAULTS = Metric(
    "hubledger.aggregation.faults", "gauge", "{run}", "runs of the last 15 minutes with a fault of quality", HUB
)
RETENTION_LEFT = Metric(
    "hubledger.retention.left",
    "gauge",
    "h",
    "time until the hub forgets the first event of an open letter or gap of a partition; nothing where it is unknown",
    OF_PARTITION,
)
RETENTION_LOSS = Metric(
    "hubledger.retention.loss",
    "gauge",
    "h",
    "time until the hub forgets the first event that nothing else has stored; its retention when there is none",
    HUB,
)
RETENTION_LETTERS = Metric(
    "hubledger.retention.letters",
    "gauge",
    "{letter}",
    "open letters whose event the hub forgets within `1h`, `6h` or `24h`",
    (*HUB, WITHIN),
)
LOST = Metric(
    "hubledger.retention.lost",
    "gauge",
    "{event}",
    "events of gaps and of letters without a body that the hub no longer holds",
    HUB,
)

METRICS = (
    *(PROCESS_DURATION, CONSUMED, BATCH_EVENTS, BATCH_CALLS, BATCH_RETRIES, COMMITTED, EVENT_OUTCOMES, HEALED_GAPS),
    *(LETTERS_OPENED, LETTERS_RETRIED, RETRY_DURATION, REPLAY_DURATION, REPLAYED, TICK_DURATION, RUN_DURATION),
    *(CALL_DURATION, CONFLICTS, TRANSIENT_FAULTS, LAG, LAG_AGE, LETTERS_NOW, OLDEST_LETTER, ABSENT, UNBALANCED),
    *(STOPPED, STOPS, AGGREGATION_LAG, AGGREGATION_FAILURES, AGGREGATION_FAULTS),
    *(RETENTION_LEFT, RETENTION_LOSS, RETENTION_LETTERS, LOST),
)
