-- The index of open letters leads with the hash of the partition key, so that the letters of one key are sought.

CREATE INDEX ix_event_hub_dead_letter_open
    ON hubledger.event_hub_dead_letter (stream_id, partition_id, key_hash, sequence_number)
    INCLUDE (partition_key, error_class, enqueued_at, body_kept, status)
    WHERE status IN ('waiting', 'retrying', 'held', 'exhausted')
    WITH (ONLINE = ON, DROP_EXISTING = ON);
