-- An audit finds changed rows by checksums, rows that replays took away by their number, and every partition's anchor.

CREATE INDEX ix_retracted_row_number
    ON hubledger.retracted_row (stream_id, partition_id, sequence_number) WITH (ONLINE = ON);

-- Partitions that are older than anchors begin where their ledger begins.
INSERT INTO hubledger.partition_anchor (stream_id, partition_id, sequence_number, anchored_at)
SELECT c.stream_id, c.partition_id, f.first_sequence_number, f.committed_at
  FROM hubledger.event_hub_checkpoint AS c
 CROSS APPLY (
       SELECT TOP (1) l.first_sequence_number, l.committed_at
         FROM hubledger.batch_ledger AS l
        WHERE l.stream_id = c.stream_id AND l.partition_id = c.partition_id AND l.kind = 'batch'
        ORDER BY l.first_sequence_number) AS f
 WHERE NOT EXISTS (
       SELECT 1 FROM hubledger.partition_anchor AS a
        WHERE a.stream_id = c.stream_id AND a.partition_id = c.partition_id);

-- The last step, because a changed table is locked until the migration ends.
ALTER TABLE hubledger.batch_ledger ADD rows_checksum bigint;  -- of the rows that the commit appended; NULL: it is older
ALTER TABLE hubledger.batch_ledger ADD ledger_checksum bigint;  -- of this row itself; NULL: it is older
