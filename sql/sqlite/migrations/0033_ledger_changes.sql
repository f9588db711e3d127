-- The index of retries and replays holds their ends and kinds, so that only the rows that cover a number are looked up.

DROP INDEX ix_batch_ledger_change;

CREATE INDEX ix_batch_ledger_change
    ON batch_ledger (stream_id, partition_id, first_sequence_number, last_sequence_number, kind) WHERE kind <> 'batch';
