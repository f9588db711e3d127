-- name: note_gap_again
-- Count one more attempt at a gap that is stored already. Touches no row when the checkpoint has reached the number that
-- was to come next, or the stream is closed: the gap may be settled.
-- params: stream_id int, partition_id varchar(8000), first_sequence_number bigint, last_sequence_number bigint, next_sequence_number bigint
UPDATE sequence_gap
   SET last_sequence_number = :last_sequence_number, status = 'open', attempts = attempts + 1
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND first_sequence_number = :first_sequence_number
   AND NOT EXISTS (
       SELECT 1 FROM event_hub_checkpoint AS c WITH (UPDLOCK, HOLDLOCK)
        WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id
          AND c.sequence_number >= :next_sequence_number)
   AND NOT EXISTS (
       SELECT 1 FROM event_stream AS e WITH (REPEATABLEREAD)
        WHERE e.stream_id = :stream_id AND e.closed_at IS NOT NULL);

-- name: note_gap
-- Store a new gap that is being healed. Touches no row when the checkpoint has reached the number that was to come next,
-- or the stream is closed.
-- params: stream_id int, partition_id varchar(8000), first_sequence_number bigint, last_sequence_number bigint, found_at datetime2(6), next_sequence_number bigint
INSERT INTO sequence_gap
       (stream_id, partition_id, first_sequence_number, last_sequence_number, found_at, status, attempts)
SELECT :stream_id, :partition_id, :first_sequence_number, :last_sequence_number, :found_at, 'open', 1
 WHERE NOT EXISTS (
       SELECT 1 FROM sequence_gap AS g
        WHERE g.stream_id = :stream_id AND g.partition_id = :partition_id
          AND g.first_sequence_number = :first_sequence_number)
   AND NOT EXISTS (
       SELECT 1 FROM event_hub_checkpoint AS c WITH (UPDLOCK, HOLDLOCK)
        WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id
          AND c.sequence_number >= :next_sequence_number)
   AND NOT EXISTS (
       SELECT 1 FROM event_stream AS e WITH (REPEATABLEREAD)
        WHERE e.stream_id = :stream_id AND e.closed_at IS NOT NULL);

-- name: settle_gap
-- Store the outcome of a gap that begins where a part begins: the part replaces the gap.
-- params: stream_id int, partition_id varchar(8000), gaps rows (first_sequence_number, last_sequence_number, status)
UPDATE sequence_gap
   SET last_sequence_number = :last_sequence_number, status = :status
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND first_sequence_number = :first_sequence_number;
-- sqlserver:
UPDATE g
   SET last_sequence_number = p.last_sequence_number, status = p.status
  FROM hubledger.sequence_gap AS g
 INNER JOIN OPENJSON(@gaps) WITH (
       first_sequence_number bigint '$[0]', last_sequence_number bigint '$[1]', status varchar(10) '$[2]') AS p
    ON p.first_sequence_number = g.first_sequence_number
 WHERE g.stream_id = @stream_id AND g.partition_id = @partition_id;

-- name: add_gap
-- Insert the parts that begin where no stored gap begins.
-- params: stream_id int, partition_id varchar(8000), gaps rows (first_sequence_number, last_sequence_number, status), committed_at datetime2(6)
INSERT INTO sequence_gap
       (stream_id, partition_id, first_sequence_number, last_sequence_number, found_at, status, attempts)
VALUES (:stream_id, :partition_id, :first_sequence_number, :last_sequence_number, :committed_at, :status, 1)
ON CONFLICT (stream_id, partition_id, first_sequence_number) DO NOTHING;
-- sqlserver:
INSERT INTO hubledger.sequence_gap
       (stream_id, partition_id, first_sequence_number, last_sequence_number, found_at, status, attempts)
SELECT @stream_id, @partition_id, p.first_sequence_number, p.last_sequence_number, @committed_at, p.status, 1
  FROM OPENJSON(@gaps) WITH (
       first_sequence_number bigint '$[0]', last_sequence_number bigint '$[1]', status varchar(10) '$[2]') AS p
 WHERE NOT EXISTS (
       SELECT 1 FROM hubledger.sequence_gap AS g
        WHERE g.stream_id = @stream_id AND g.partition_id = @partition_id
          AND g.first_sequence_number = p.first_sequence_number);

-- name: close_gaps
-- Close the open gaps at or before the checkpoint: the hub delivered their events after all.
-- params: stream_id int, partition_id varchar(8000)
UPDATE sequence_gap
   SET status = 'healed'
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND status = 'open'
   AND last_sequence_number <= (
       SELECT c.sequence_number FROM event_hub_checkpoint AS c
        WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id);
