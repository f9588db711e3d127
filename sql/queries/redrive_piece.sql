-- name: add_redrive_piece
-- Insert the letters that a piece moved, if it moved any.
-- params: task_id varchar(8000), pieces bigint, stream_id int, partition_id varchar(8000), sequence_numbers nvarchar(max), move_id nvarchar(4000), moved_at datetime2(7), moved bigint
INSERT INTO redrive_piece (task_id, piece, partition_id, numbers, moved_at)
SELECT :task_id, :pieces, :partition_id, (
       SELECT json_group_array(m.sequence_number)
         FROM (SELECT d.sequence_number
                 FROM event_hub_dead_letter AS d
                WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
                  AND d.sequence_number IN (SELECT n.value ->> 0 FROM json_each(:sequence_numbers) AS n)
                  AND d.claimed_by = :move_id
                ORDER BY d.sequence_number) AS m), :moved_at
 WHERE :moved > 0;
-- sqlserver:
INSERT INTO hubledger.redrive_piece (task_id, piece, partition_id, numbers, moved_at)
SELECT @task_id, @pieces, @partition_id, (
       SELECT '[' + STRING_AGG(CONVERT(nvarchar(max), d.sequence_number), ',') WITHIN GROUP (ORDER BY d.sequence_number) + ']'
         FROM hubledger.event_hub_dead_letter AS d
        WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id
          AND d.sequence_number IN (
              SELECT n.sequence_number FROM OPENJSON(@sequence_numbers) WITH (sequence_number bigint '$[0]') AS n)
          AND d.claimed_by = @move_id), @moved_at
 WHERE @moved > 0;

-- name: read_redriven_letters
-- Read the letters that a job moved, with their status and cause now, in the order of its pieces: a page after a place in a piece.
-- params: task_id varchar(8000), after_piece bigint, after_place int, most int
SELECT p.piece, n.key AS place, p.partition_id, n.value AS sequence_number, p.moved_at, d.status, d.cause
  FROM redrive_piece AS p
 INNER JOIN task AS j ON j.task_id = p.task_id
 CROSS JOIN json_each(p.numbers) AS n
  LEFT JOIN event_hub_dead_letter AS d
    ON d.stream_id = j.stream_id AND d.partition_id = p.partition_id AND d.sequence_number = n.value
 WHERE p.task_id = :task_id AND p.piece >= :after_piece
   AND (p.piece > :after_piece OR n.key > :after_place)
 ORDER BY p.piece, n.key
 LIMIT :most;
-- sqlserver:
SELECT TOP (@most)
       p.piece, n.place, p.partition_id, n.sequence_number, p.moved_at, d.status, d.cause
  FROM hubledger.redrive_piece AS p
 INNER JOIN hubledger.task AS j ON j.task_id = p.task_id
 CROSS APPLY (
       SELECT CONVERT(int, o.[key]) AS place, CONVERT(bigint, o.value) AS sequence_number
         FROM OPENJSON(p.numbers) AS o) AS n
  LEFT JOIN hubledger.event_hub_dead_letter AS d
    ON d.stream_id = j.stream_id AND d.partition_id = p.partition_id AND d.sequence_number = n.sequence_number
 WHERE p.task_id = @task_id AND p.piece >= @after_piece
   AND (p.piece > @after_piece OR n.place > @after_place)
 ORDER BY p.piece, n.place;

-- name: count_redriven
-- Count the first letters that a job moved by what became of each at its first try since: the records of its attempts
-- tell. A letter whose attempts were purged is `gone`.
-- params: task_id varchar(8000), most int
SELECT COUNT(*) AS letters,
       COUNT(CASE WHEN t.status = 'resolved' THEN 1 END) AS resolved,
       COUNT(CASE WHEN t.status IN ('waiting', 'exhausted') THEN 1 END) AS failed_again,
       COUNT(CASE WHEN t.status IN ('waiting', 'exhausted') AND t.cause = m.cause THEN 1 END) AS same_cause,
       COUNT(CASE WHEN m.attempt IS NOT NULL AND t.status IS NULL THEN 1 END) AS not_tried,
       COUNT(CASE WHEN t.status = 'discarded' THEN 1 END) AS discarded,
       COUNT(CASE WHEN m.attempt IS NULL THEN 1 END) AS gone
  FROM (SELECT j.stream_id, p.partition_id, n.value AS sequence_number
          FROM redrive_piece AS p
         INNER JOIN task AS j ON j.task_id = p.task_id
         CROSS JOIN json_each(p.numbers) AS n
         WHERE p.task_id = :task_id
         ORDER BY p.piece, n.key
         LIMIT :most) AS o
  LEFT JOIN dead_letter_attempt AS m
    ON m.stream_id = o.stream_id AND m.partition_id = o.partition_id AND m.sequence_number = o.sequence_number
   AND m.touched_by = :task_id
  LEFT JOIN dead_letter_attempt AS t
    ON t.stream_id = m.stream_id AND t.partition_id = m.partition_id AND t.sequence_number = m.sequence_number
   AND t.attempt = (
       SELECT MIN(a.attempt) FROM dead_letter_attempt AS a
        WHERE a.stream_id = m.stream_id AND a.partition_id = m.partition_id
          AND a.sequence_number = m.sequence_number AND a.attempt > m.attempt
          AND a.kind IN ('retry', 'exhaust', 'discard', 'replay'));
-- sqlserver:
SELECT COUNT(*) AS letters,
       COUNT(CASE WHEN t.status = 'resolved' THEN 1 END) AS resolved,
       COUNT(CASE WHEN t.status IN ('waiting', 'exhausted') THEN 1 END) AS failed_again,
       COUNT(CASE WHEN t.status IN ('waiting', 'exhausted') AND t.cause = m.cause THEN 1 END) AS same_cause,
       COUNT(CASE WHEN m.attempt IS NOT NULL AND t.status IS NULL THEN 1 END) AS not_tried,
       COUNT(CASE WHEN t.status = 'discarded' THEN 1 END) AS discarded,
       COUNT(CASE WHEN m.attempt IS NULL THEN 1 END) AS gone
  FROM (SELECT TOP (@most) j.stream_id, p.partition_id, n.sequence_number
          FROM hubledger.redrive_piece AS p
         INNER JOIN hubledger.task AS j ON j.task_id = p.task_id
         CROSS APPLY (
               SELECT CONVERT(int, v.[key]) AS place, CONVERT(bigint, v.value) AS sequence_number
                 FROM OPENJSON(p.numbers) AS v) AS n
         WHERE p.task_id = @task_id
         ORDER BY p.piece, n.place) AS o
  LEFT JOIN hubledger.dead_letter_attempt AS m
    ON m.stream_id = o.stream_id AND m.partition_id = o.partition_id AND m.sequence_number = o.sequence_number
   AND m.touched_by = @task_id
 OUTER APPLY (
       SELECT TOP (1) a.status, a.cause
         FROM hubledger.dead_letter_attempt AS a
        WHERE a.stream_id = m.stream_id AND a.partition_id = m.partition_id
          AND a.sequence_number = m.sequence_number AND a.attempt > m.attempt
          AND a.kind IN ('retry', 'exhaust', 'discard', 'replay')
        ORDER BY a.attempt) AS t;

-- name: span_matching
-- Return the first and the last letter and the number of letters, by partition, that match a filter and have one of the
-- statuses in a JSON list.
-- params: stream_id int, fingerprint varchar(8000), status varchar(8000), error_class varchar(8000), partition_id varchar(8000), partition_key nvarchar(max), since_at datetime2(7), until_at datetime2(7), statuses nvarchar(max)
SELECT d.partition_id, MIN(d.sequence_number) AS first_sequence_number, MAX(d.sequence_number) AS last_sequence_number,
       COUNT(*) AS letters
  FROM event_hub_dead_letter AS d INDEXED BY ix_event_hub_dead_letter_status
 WHERE d.stream_id = :stream_id
   AND d.status IN (SELECT j.status FROM list(:statuses) AS j (status varchar(10)))
   AND :fingerprint IN (+d.cause, +d.fingerprint)  -- if given
   AND +d.status = :status  -- if given
   AND +d.error_class = :error_class  -- if given
   AND +d.partition_id = :partition_id  -- if given
   AND exact(+d.partition_key = :partition_key)  -- if given
   AND d.failed_at >= :since_at AND d.failed_at < :until_at
 GROUP BY d.partition_id;

-- name: cause_matching
-- Count the letters of each cause that match a filter and have one of the statuses in a JSON list.
-- params: stream_id int, fingerprint varchar(8000), status varchar(8000), error_class varchar(8000), partition_id varchar(8000), partition_key nvarchar(max), since_at datetime2(7), until_at datetime2(7), statuses nvarchar(max), most int
SELECT d.cause, COUNT(*) AS letters
  FROM event_hub_dead_letter AS d INDEXED BY ix_event_hub_dead_letter_cause
 WHERE d.stream_id = :stream_id
   AND +d.status IN (SELECT j.status FROM list(:statuses) AS j (status varchar(10)))
   AND :fingerprint IN (+d.cause, +d.fingerprint)  -- if given
   AND +d.status = :status  -- if given
   AND +d.error_class = :error_class  -- if given
   AND +d.partition_id = :partition_id  -- if given
   AND exact(+d.partition_key = :partition_key)  -- if given
   AND +d.failed_at >= :since_at AND +d.failed_at < :until_at
 GROUP BY d.cause
 ORDER BY letters DESC, d.cause
 LIMIT :most;

-- name: walk_up
-- Look at the next letters of a partition, by number, upwards: chosen are those that match a filter and whose status is
-- in a list, as ",waiting,exhausted,". It reads no more letters than it returns.
-- params: stream_id int, partition_id varchar(8000), walked_to bigint, last_sequence_number bigint, fingerprint varchar(8000), status varchar(8000), error_class varchar(8000), partition_key nvarchar(max), since_at datetime2(7), until_at datetime2(7), sources varchar(8000), most int
SELECT d.sequence_number,
       CASE WHEN CHARINDEX(',' || d.status || ',', :sources) > 0
             AND :fingerprint IN (d.cause, d.fingerprint)  -- if given
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
             AND :fingerprint IN (d.cause, d.fingerprint)  -- if given
             AND d.status = :status  -- if given
             AND d.error_class = :error_class  -- if given
             AND exact(d.partition_key = :partition_key)  -- if given
             AND d.failed_at >= :since_at AND d.failed_at < :until_at THEN 1 ELSE 0 END AS is_chosen
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
   AND d.sequence_number < :walked_to AND d.sequence_number >= :first_sequence_number
 ORDER BY d.sequence_number DESC
 LIMIT :most;
