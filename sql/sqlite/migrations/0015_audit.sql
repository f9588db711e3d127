-- An audit finds changed rows by checksums, rows that replays took away by their number, and every partition's anchor.

-- Partitions that are older than anchors begin where their ledger begins.
INSERT INTO partition_anchor (stream_id, partition_id, sequence_number, anchored_at)
SELECT l.stream_id, l.partition_id, l.first_sequence_number, l.committed_at
  FROM event_hub_checkpoint AS c
 CROSS JOIN batch_ledger AS l
    ON l.stream_id = c.stream_id AND l.partition_id = c.partition_id AND l.kind = 'batch'
   AND l.first_sequence_number = (
       SELECT MIN(b.first_sequence_number) FROM batch_ledger AS b
        WHERE b.stream_id = c.stream_id AND b.partition_id = c.partition_id AND b.kind = 'batch')
 WHERE NOT EXISTS (
       SELECT 1 FROM partition_anchor AS a WHERE a.stream_id = c.stream_id AND a.partition_id = c.partition_id);

CREATE INDEX ix_retracted_row_number ON retracted_row (stream_id, partition_id, sequence_number);

ALTER TABLE batch_ledger ADD COLUMN rows_checksum INTEGER;  -- of the rows that the commit appended; NULL: it is older
ALTER TABLE batch_ledger ADD COLUMN ledger_checksum INTEGER;  -- of this row itself; NULL: it is older
