-- The index of retries and replays holds their ends and kinds, so that only the rows that cover a number are looked up.

CREATE INDEX ix_batch_ledger_change
    ON hubledger.batch_ledger (stream_id, partition_id, first_sequence_number)
    INCLUDE (kind, last_sequence_number) WHERE kind <> 'batch'
    WITH (ONLINE = ON, DROP_EXISTING = ON);
