-- Letters of one partition key in order: what later events have to wait for, and which held letter comes next. A key
-- may be longer than an index takes, so it is only included.

CREATE INDEX ix_event_hub_dead_letter_open
    ON hubledger.event_hub_dead_letter (stream_id, partition_id, sequence_number)
    INCLUDE (partition_key, error_class) WHERE status IN ('waiting', 'retrying', 'held', 'exhausted')
    WITH (ONLINE = ON);

CREATE INDEX ix_event_hub_dead_letter_held
    ON hubledger.event_hub_dead_letter (stream_id, partition_id, held_behind) WHERE status = 'held' WITH (ONLINE = ON);

-- How many events of a replay were held.
ALTER TABLE hubledger.replay_progress ADD held bigint NOT NULL CONSTRAINT df_replay_progress_held DEFAULT 0;
