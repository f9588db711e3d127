-- The settled letters of a partition by number, for purges. A migration of its own: no letter can be written from the end of the build
-- until the end of the transaction.

CREATE INDEX ix_event_hub_dead_letter_settled
    ON hubledger.event_hub_dead_letter (stream_id, partition_id, sequence_number, settled_at)
 WHERE status IN ('resolved', 'discarded')
  WITH (ONLINE = ON);
