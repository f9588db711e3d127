-- Letters of one partition key in order: what later events have to wait for, and which held letter comes next.

CREATE INDEX ix_event_hub_dead_letter_open
    ON event_hub_dead_letter (stream_id, partition_id, partition_key, sequence_number)
 WHERE status IN ('waiting', 'retrying', 'held', 'exhausted');

CREATE INDEX ix_event_hub_dead_letter_held
    ON event_hub_dead_letter (stream_id, partition_id, held_behind) WHERE status = 'held';

-- How many events of a replay were held.
ALTER TABLE replay_progress ADD COLUMN held INTEGER NOT NULL CONSTRAINT df_replay_progress_held DEFAULT 0;
