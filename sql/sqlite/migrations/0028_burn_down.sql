-- The index of open letters also answers how long the hub holds their events (docs/alerts.md), and whose body is here.

DROP INDEX ix_event_hub_dead_letter_open;

CREATE INDEX ix_event_hub_dead_letter_open
    ON event_hub_dead_letter (stream_id, partition_id, partition_key, sequence_number, enqueued_at, body_kept, status)
 WHERE status IN ('waiting', 'retrying', 'held', 'exhausted');
