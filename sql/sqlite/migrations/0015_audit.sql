-- An audit finds changed rows by checksums, rows that replays took away by their number, and every partition's anchor.

ALTER TABLE batch_ledger ADD COLUMN rows_checksum INTEGER;  -- of the rows that the commit appended; NULL: it is older
ALTER TABLE batch_ledger ADD COLUMN ledger_checksum INTEGER;  -- of this row itself; NULL: it is older

CREATE INDEX ix_retracted_row_number ON retracted_row (stream_id, partition_id, sequence_number);

-- Partitions that are older than anchors begin where their ledger begins.
INSERT INTO partition_anchor (stream_id, partition_id, sequence_number, anchored_at)
SELECT l.stream_id, l.partition_id, MIN(l.first_sequence_number), MIN(l.committed_at)
  FROM batch_ledger AS l
 WHERE l.kind = 'batch' AND NOT EXISTS (
       SELECT 1 FROM partition_anchor AS a WHERE a.stream_id = l.stream_id AND a.partition_id = l.partition_id)
 GROUP BY l.stream_id, l.partition_id;
