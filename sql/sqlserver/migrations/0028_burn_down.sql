-- The index of open letters also answers how long the hub holds their events (docs/alerts.md), and whose body is here.

CREATE INDEX ix_event_hub_dead_letter_open
    ON hubledger.event_hub_dead_letter (stream_id, partition_id, sequence_number)
    INCLUDE (partition_key, error_class, enqueued_at, body_kept, status)
    WHERE status IN ('waiting', 'retrying', 'held', 'exhausted')
    WITH (ONLINE = ON, DROP_EXISTING = ON);
