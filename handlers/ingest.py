"""The Event Hubs trigger: translate, ingest, log. An infrastructure fault escapes, and the host retries.

After eight retries, 99 seconds of pauses, the host passes the batch. Its numbers are then a gap, which is refetched.
"""

import time
from typing import List  # noqa: UP035

import azure.functions as func

from core.errors import InfrastructureFault
from handlers.timestamps import read_times_fast

bp = func.Blueprint()
read_times_fast()


@bp.function_name("ingest")
@bp.event_hub_message_trigger(
    arg_name="events",
    connection="EVENTHUB",
    event_hub_name="%EVENTHUB_NAME%",
    consumer_group="%EVENTHUB_CONSUMER_GROUP%",
    cardinality=func.Cardinality.MANY,
    data_type=func.DataType.BINARY,
)
@bp.retry(strategy="exponential_backoff", max_retry_count="8", minimum_interval="00:00:01", maximum_interval="00:00:30")
def ingest(events: List[func.EventHubEvent], context: func.Context) -> None:  # noqa: UP006 - the worker reads no list[...]
    """Ingest a batch. The function is not async, so the worker runs it in a thread: database drivers block."""
    if not events:  # the host may call with no events
        return
    from core.ingest.ingest import ingest_batch
    from handlers.app import app, in_time
    from handlers.event_batches import to_batch

    own = app()
    retries = context.retry_context.retry_count if context.retry_context else 0
    batch, began = to_batch(events, context.invocation_id, retries, own.core.transform.key_of), time.monotonic()
    try:
        with in_time():
            report = ingest_batch(batch, own.core.ingestion)
    except InfrastructureFault as fault:
        own.batch_log.fail(batch, fault)
        raise
    own.batch_log.add(report, time.monotonic() - began)
