-- name: add_redrive_progress
-- Insert the partitions of a new job, from a JSON array of [partition_id, first, last, walked_to, letters, numbers].
-- params: redrive_id varchar(8000), progress nvarchar(max)
INSERT INTO redrive_progress
       (redrive_id, partition_id, first_sequence_number, last_sequence_number, walked_to, letters, moved, unmoved,
        numbers)
SELECT :redrive_id, r.partition_id, r.first_sequence_number, r.last_sequence_number, r.walked_to, r.letters, 0, 0,
       r.numbers
  FROM rows(:progress) AS r (
       partition_id varchar(40), first_sequence_number bigint, last_sequence_number bigint, walked_to bigint,
       letters bigint, numbers nvarchar(max));

-- name: read_redrive_progress
-- Read the progress of jobs, by partition.
-- params: redrive_ids nvarchar(max)
SELECT p.redrive_id, p.partition_id, p.first_sequence_number, p.last_sequence_number, p.walked_to, p.letters, p.moved,
       p.unmoved, p.numbers, p.closed_at
  FROM redrive_progress AS p
 WHERE p.redrive_id IN (
       SELECT i.redrive_id COLLATE Latin1_General_100_BIN2 FROM rows(:redrive_ids) AS i (redrive_id varchar(36)))
 ORDER BY p.redrive_id, LEN(p.partition_id), p.partition_id;

-- name: advance_redrive_progress
-- Record a piece in its partition; the letters that it looked at and did not move are unmoved.
-- params: redrive_id varchar(8000), partition_id varchar(8000), walked_to bigint, looked_at bigint, moved bigint
UPDATE redrive_progress
   SET walked_to = :walked_to, moved = moved + :moved, unmoved = unmoved + :looked_at - :moved
 WHERE redrive_id = :redrive_id AND partition_id = :partition_id AND closed_at IS NULL;

-- name: close_redrive_progress
-- Close a partition at its end: a letter of the request that the job did not move had changed.
-- params: redrive_id varchar(8000), partition_id varchar(8000), moved_at datetime2(7)
UPDATE redrive_progress
   SET closed_at = :moved_at, unmoved = CASE WHEN letters > moved THEN letters - moved ELSE 0 END
 WHERE redrive_id = :redrive_id AND partition_id = :partition_id AND closed_at IS NULL;

-- name: add_redrive_piece
-- Insert the letters that a piece moved, if it moved any.
-- params: redrive_id varchar(8000), pieces bigint, stream_id int, partition_id varchar(8000), sequence_numbers nvarchar(max), move_id nvarchar(4000), moved_at datetime2(7), moved bigint
INSERT INTO redrive_piece (redrive_id, piece, partition_id, numbers, moved_at)
SELECT :redrive_id, :pieces, :partition_id, (
       SELECT json_group_array(m.sequence_number)
         FROM (SELECT d.sequence_number
                 FROM event_hub_dead_letter AS d
                WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
                  AND d.sequence_number IN (SELECT n.value ->> 0 FROM json_each(:sequence_numbers) AS n)
                  AND d.claimed_by = :move_id
                ORDER BY d.sequence_number) AS m), :moved_at
 WHERE :moved > 0;
-- sqlserver:
INSERT INTO hubledger.redrive_piece (redrive_id, piece, partition_id, numbers, moved_at)
SELECT @redrive_id, @pieces, @partition_id, (
       SELECT '[' + STRING_AGG(CONVERT(nvarchar(max), d.sequence_number), ',') WITHIN GROUP (ORDER BY d.sequence_number) + ']'
         FROM hubledger.event_hub_dead_letter AS d
        WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id
          AND d.sequence_number IN (
              SELECT n.sequence_number FROM OPENJSON(@sequence_numbers) WITH (sequence_number bigint '$[0]') AS n)
          AND d.claimed_by = @move_id), @moved_at
 WHERE @moved > 0;

-- name: read_redriven_letters
-- Read the letters that a job moved, with their status now, in the order of its pieces: a page after a place in a piece.
-- params: redrive_id varchar(8000), after_piece bigint, after_place int, most int
SELECT p.piece, n.key AS place, p.partition_id, n.value AS sequence_number, p.moved_at, d.status
  FROM redrive_piece AS p
 INNER JOIN redrive_job AS j ON j.redrive_id = p.redrive_id
 CROSS JOIN json_each(p.numbers) AS n
  LEFT JOIN event_hub_dead_letter AS d
    ON d.stream_id = j.stream_id AND d.partition_id = p.partition_id AND d.sequence_number = n.value
 WHERE p.redrive_id = :redrive_id AND p.piece >= :after_piece
   AND (p.piece > :after_piece OR n.key > :after_place)
 ORDER BY p.piece, n.key
 LIMIT :most;
-- sqlserver:
SELECT TOP (@most)
       p.piece, n.place, p.partition_id, n.sequence_number, p.moved_at, d.status
  FROM hubledger.redrive_piece AS p
 INNER JOIN hubledger.redrive_job AS j ON j.redrive_id = p.redrive_id
 CROSS APPLY (
       SELECT CONVERT(int, o.[key]) AS place, CONVERT(bigint, o.value) AS sequence_number
         FROM OPENJSON(p.numbers) AS o) AS n
  LEFT JOIN hubledger.event_hub_dead_letter AS d
    ON d.stream_id = j.stream_id AND d.partition_id = p.partition_id AND d.sequence_number = n.sequence_number
 WHERE p.redrive_id = @redrive_id AND p.piece >= @after_piece
   AND (p.piece > @after_piece OR n.place > @after_place)
 ORDER BY p.piece, n.place;

-- name: span_matching
-- Return the first and the last letter and the number of letters, by partition, that match a filter and have one of the
-- statuses in a JSON list.
-- params: stream_id int, fingerprint varchar(8000), status varchar(8000), error_class varchar(8000), partition_id varchar(8000), partition_key nvarchar(max), since_at datetime2(7), until_at datetime2(7), statuses nvarchar(max)
SELECT d.partition_id, MIN(d.sequence_number) AS first_sequence_number, MAX(d.sequence_number) AS last_sequence_number,
       COUNT(*) AS letters
  FROM event_hub_dead_letter AS d INDEXED BY ix_event_hub_dead_letter_status
 WHERE d.stream_id = :stream_id
   AND d.status IN (SELECT j.status FROM list(:statuses) AS j (status varchar(10)))
   AND +d.fingerprint = :fingerprint  -- if given
   AND +d.status = :status  -- if given
   AND +d.error_class = :error_class  -- if given
   AND +d.partition_id = :partition_id  -- if given
   AND exact(+d.partition_key = :partition_key)  -- if given
   AND d.failed_at >= :since_at AND d.failed_at < :until_at
 GROUP BY d.partition_id;

-- name: cause_matching
-- Count the letters of each cause that match a filter and have one of the statuses in a JSON list.
-- params: stream_id int, fingerprint varchar(8000), status varchar(8000), error_class varchar(8000), partition_id varchar(8000), partition_key nvarchar(max), since_at datetime2(7), until_at datetime2(7), statuses nvarchar(max), most int
SELECT d.fingerprint, COUNT(*) AS letters
  FROM event_hub_dead_letter AS d INDEXED BY ix_event_hub_dead_letter_fingerprint
 WHERE d.stream_id = :stream_id
   AND +d.status IN (SELECT j.status FROM list(:statuses) AS j (status varchar(10)))
   AND +d.fingerprint = :fingerprint  -- if given
   AND +d.status = :status  -- if given
   AND +d.error_class = :error_class  -- if given
   AND +d.partition_id = :partition_id  -- if given
   AND exact(+d.partition_key = :partition_key)  -- if given
   AND +d.failed_at >= :since_at AND +d.failed_at < :until_at
 GROUP BY d.fingerprint
 ORDER BY letters DESC, d.fingerprint
 LIMIT :most;

-- name: walk_up
-- Look at the next letters of a partition, by number, upwards: chosen are those that match a filter and whose status is
-- in a list, as ",waiting,exhausted,". It reads no more letters than it returns.
-- params: stream_id int, partition_id varchar(8000), walked_to bigint, last_sequence_number bigint, fingerprint varchar(8000), status varchar(8000), error_class varchar(8000), partition_key nvarchar(max), since_at datetime2(7), until_at datetime2(7), sources varchar(8000), most int
SELECT d.sequence_number,
       CASE WHEN CHARINDEX(',' || d.status || ',', :sources) > 0
             AND d.fingerprint = :fingerprint  -- if given
             AND d.status = :status  -- if given
             AND d.error_class = :error_class  -- if given
             AND exact(d.partition_key = :partition_key)  -- if given
             AND d.failed_at >= :since_at AND d.failed_at < :until_at THEN 1 ELSE 0 END AS is_chosen
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
   AND d.sequence_number > :walked_to AND d.sequence_number <= :last_sequence_number
 ORDER BY d.sequence_number
 LIMIT :most;

-- name: walk_down
-- Look at the next letters of a partition, by number, downwards: chosen are those that match a filter and whose status is
-- in a list, as ",waiting,exhausted,". It reads no more letters than it returns.
-- params: stream_id int, partition_id varchar(8000), walked_to bigint, first_sequence_number bigint, fingerprint varchar(8000), status varchar(8000), error_class varchar(8000), partition_key nvarchar(max), since_at datetime2(7), until_at datetime2(7), sources varchar(8000), most int
SELECT d.sequence_number,
       CASE WHEN CHARINDEX(',' || d.status || ',', :sources) > 0
             AND d.fingerprint = :fingerprint  -- if given
             AND d.status = :status  -- if given
             AND d.error_class = :error_class  -- if given
             AND exact(d.partition_key = :partition_key)  -- if given
             AND d.failed_at >= :since_at AND d.failed_at < :until_at THEN 1 ELSE 0 END AS is_chosen
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
   AND d.sequence_number < :walked_to AND d.sequence_number >= :first_sequence_number
 ORDER BY d.sequence_number DESC
 LIMIT :most;
