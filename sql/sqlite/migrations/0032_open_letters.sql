-- The index of open letters holds the class of the error too, as the server's does; it leads with the partition key.

DROP INDEX ix_event_hub_dead_letter_open;

CREATE INDEX ix_event_hub_dead_letter_open
    ON event_hub_dead_letter (stream_id, partition_id, partition_key, sequence_number, enqueued_at, body_kept, status,
                              error_class)
 WHERE status IN ('waiting', 'retrying', 'held', 'exhausted');
