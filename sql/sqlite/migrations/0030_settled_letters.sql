-- The settled letters of a partition by number, for purges.

CREATE INDEX ix_event_hub_dead_letter_settled
    ON event_hub_dead_letter (stream_id, partition_id, sequence_number, settled_at)
 WHERE status IN ('resolved', 'discarded');
