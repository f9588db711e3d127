-- name: find_next_erasable
-- Find the next number of a partition that has a letter, a staged event or a retracted row; NULL: none.
-- params: stream_id int, partition_id varchar(8000), first_sequence_number bigint
SELECT (SELECT MIN(x.sequence_number) FROM event_hub_dead_letter AS x
         WHERE x.stream_id = :stream_id AND x.partition_id = :partition_id
           AND x.sequence_number >= :first_sequence_number) AS next_letter,
       (SELECT MIN(x.sequence_number) FROM staged_event AS x
         WHERE x.stream_id = :stream_id AND x.partition_id = :partition_id
           AND x.sequence_number >= :first_sequence_number) AS next_staged,
       (SELECT MIN(x.sequence_number) FROM retracted_row AS x
         WHERE x.stream_id = :stream_id AND x.partition_id = :partition_id
           AND x.sequence_number >= :first_sequence_number) AS next_retracted;

-- name: read_letters_to_search
-- Read the first letters of a range with their texts, in order; those that an erasure blanked are left out.
-- params: stream_id int, partition_id varchar(8000), first_sequence_number bigint, last_sequence_number bigint, most int
SELECT d.sequence_number, d.partition_key, d.properties, d.body, d.error
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
   AND d.sequence_number BETWEEN :first_sequence_number AND :last_sequence_number
   AND d.error_type <> 'erased'
 ORDER BY d.sequence_number
 LIMIT :most;

-- name: read_staged_to_search
-- Read the first staged events of a range with their texts, in order.
-- params: stream_id int, partition_id varchar(8000), first_sequence_number bigint, last_sequence_number bigint, most int
SELECT s.sequence_number, s.partition_key, s.properties, s.body
  FROM staged_event AS s
 WHERE s.stream_id = :stream_id AND s.partition_id = :partition_id
   AND s.sequence_number BETWEEN :first_sequence_number AND :last_sequence_number
 ORDER BY s.sequence_number
 LIMIT :most;

-- name: read_retracted_to_search
-- Read the retracted rows of a range that still have their columns.
-- params: stream_id int, partition_id varchar(8000), first_sequence_number bigint, last_sequence_number bigint
SELECT r.commit_number, r.table_name, r.sequence_number, r.ordinal, r.row
  FROM retracted_row AS r
 WHERE r.stream_id = :stream_id AND r.partition_id = :partition_id
   AND r.sequence_number BETWEEN :first_sequence_number AND :last_sequence_number
   AND r.row <> '{}'
 ORDER BY r.sequence_number, r.ordinal;

-- name: read_diffs_to_search
-- Read the differences that dry runs found in a range.
-- params: stream_id int, partition_id varchar(8000), first_sequence_number bigint, last_sequence_number bigint
SELECT d.task_id, d.sequence_number, d.diff
  FROM task AS t
 INNER JOIN replay_diff AS d ON d.task_id = t.task_id
 WHERE t.stream_id = :stream_id AND t.kind = 'replay' AND t.is_dry_run = 1 AND d.partition_id = :partition_id
   AND d.sequence_number BETWEEN :first_sequence_number AND :last_sequence_number
 ORDER BY d.sequence_number, d.task_id;

-- name: blank_retracted
-- Blank retracted rows of a range: their places stay, their columns go.
-- params: stream_id int, partition_id varchar(8000), first_sequence_number bigint, last_sequence_number bigint, retracted nvarchar(max)
UPDATE retracted_row AS r
   SET row = '{}'
 WHERE r.stream_id = :stream_id AND r.partition_id = :partition_id
   AND r.sequence_number BETWEEN :first_sequence_number AND :last_sequence_number
   AND r.row <> '{}'
   AND EXISTS (
       SELECT 1
         FROM rows(:retracted) AS p (
              commit_number bigint, table_name varchar(128), sequence_number bigint, ordinal int)
        WHERE p.commit_number = r.commit_number AND p.table_name COLLATE Latin1_General_100_BIN2 = r.table_name
          AND p.sequence_number = r.sequence_number AND p.ordinal = r.ordinal);

-- name: blank_letters
-- Blank what letters quote of their events: only the place, the outcome and the cause stay.
-- params: stream_id int, partition_id varchar(8000), sequence_numbers nvarchar(max)
UPDATE event_hub_dead_letter AS d
   SET partition_key = NULL, properties = '{}', body_kept = 0, error_type = 'erased', error = 'erased', fingerprint = d.cause,
       settled_why = CASE WHEN d.settled_why IS NOT NULL THEN 'erased' END,
       body = x''  -- sqlite only
       body = 0x  -- sqlserver only
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
   AND d.sequence_number IN (
       SELECT n.sequence_number FROM rows(:sequence_numbers) AS n (sequence_number bigint));

-- name: blank_attempts
-- Blank the errors of all attempts at letters, and why people moved them.
-- params: stream_id int, partition_id varchar(8000), sequence_numbers nvarchar(max)
UPDATE dead_letter_attempt AS a
   SET error = CASE WHEN a.error IS NOT NULL THEN 'erased' END, why = CASE WHEN a.why IS NOT NULL THEN 'erased' END
 WHERE a.stream_id = :stream_id AND a.partition_id = :partition_id
   AND a.sequence_number IN (
       SELECT n.sequence_number FROM rows(:sequence_numbers) AS n (sequence_number bigint));

-- name: delete_staged_of
-- Delete staged events that name a subject. Their numbers have a parameter of their own, since a piece has letters too.
-- params: stream_id int, partition_id varchar(8000), staged nvarchar(max)
DELETE FROM staged_event
 WHERE stream_id = :stream_id AND partition_id = :partition_id
   AND sequence_number IN (SELECT n.sequence_number FROM rows(:staged) AS n (sequence_number bigint));

-- name: delete_diffs_of
-- Delete what some dry runs found about some events of a partition.
-- params: partition_id varchar(8000), dry_runs nvarchar(max), diffed nvarchar(max)
DELETE FROM replay_diff
 WHERE partition_id = :partition_id
   AND task_id IN (SELECT t.task_id COLLATE Latin1_General_100_BIN2 FROM rows(:dry_runs) AS t (task_id varchar(36)))
   AND sequence_number IN (SELECT n.sequence_number FROM rows(:diffed) AS n (sequence_number bigint));

-- name: add_erased_subjects
-- Note the subjects that are erased up to a number of a partition, from a JSON array of [subject_hash].
-- params: stream_id int, partition_id varchar(8000), hashes nvarchar(max), key_hash varchar(8000), until_sequence_number bigint, erased_by varchar(8000), erased_at datetime2(7)
INSERT INTO erased_subject (stream_id, partition_id, subject_hash, key_hash, until_sequence_number, erased_by, erased_at)
SELECT :stream_id, :partition_id, n.value ->> 0, :key_hash, :until_sequence_number, :erased_by, :erased_at
  FROM json_each(:hashes) AS n
 WHERE TRUE
ON CONFLICT (stream_id, partition_id, subject_hash) DO UPDATE
   SET until_sequence_number = MAX(until_sequence_number, excluded.until_sequence_number),
       key_hash = excluded.key_hash, erased_by = excluded.erased_by, erased_at = excluded.erased_at;
-- sqlserver:
UPDATE s
   SET until_sequence_number = CASE WHEN s.until_sequence_number > @until_sequence_number
                                    THEN s.until_sequence_number ELSE @until_sequence_number END,
       key_hash = @key_hash, erased_by = @erased_by, erased_at = @erased_at
  FROM OPENJSON(@hashes) WITH (subject_hash varchar(64) '$[0]') AS n
 INNER JOIN hubledger.erased_subject AS s
    ON s.stream_id = @stream_id AND s.partition_id = @partition_id
   AND s.subject_hash = n.subject_hash COLLATE Latin1_General_100_BIN2
OPTION (LOOP JOIN, FORCE ORDER);
INSERT INTO hubledger.erased_subject
       (stream_id, partition_id, subject_hash, key_hash, until_sequence_number, erased_by, erased_at)
SELECT @stream_id, @partition_id, n.subject_hash, @key_hash, @until_sequence_number, @erased_by, @erased_at
  FROM OPENJSON(@hashes) WITH (subject_hash varchar(64) '$[0]') AS n
 WHERE NOT EXISTS (
       SELECT 1 FROM hubledger.erased_subject AS s
        WHERE s.stream_id = @stream_id AND s.partition_id = @partition_id
          AND s.subject_hash = n.subject_hash COLLATE Latin1_General_100_BIN2)
OPTION (LOOP JOIN, FORCE ORDER);

-- name: read_erased_subjects
-- Read the subjects that were erased in a partition, each with the last number that is forgotten.
-- params: stream_id int, partition_id varchar(8000)
SELECT s.subject_hash, s.until_sequence_number, s.key_hash
  FROM erased_subject AS s
 WHERE s.stream_id = :stream_id AND s.partition_id = :partition_id;

-- name: read_tasks_to_search
-- Read the texts that people wrote in tasks of a stream.
-- params: stream_id int
SELECT t.task_id, t.asked, t.reason, t.fault, t.history
  FROM task AS t
 WHERE t.stream_id = :stream_id;

-- name: reword_tasks
-- Replace the texts that people wrote in tasks, and the digests of these, from a JSON array of [task_id, asked, reason, fault, history].
-- params: reworded nvarchar(max)
UPDATE task AS t
   SET asked = n.value ->> 1, reason = n.value ->> 2, fault = n.value ->> 3, history = n.value ->> 4,
       request_digest = ''
  FROM json_each(:reworded) AS n
 WHERE t.task_id = n.value ->> 0;
-- sqlserver:
UPDATE t
   SET asked = n.asked, reason = n.reason, fault = n.fault, history = n.history, request_digest = ''
  FROM OPENJSON(@reworded) WITH (
       task_id varchar(36) '$[0]', asked nvarchar(max) '$[1]', reason nvarchar(1000) '$[2]', fault nvarchar(2000) '$[3]',
       history nvarchar(max) '$[4]') AS n
 INNER JOIN hubledger.task AS t ON t.task_id = n.task_id COLLATE Latin1_General_100_BIN2
OPTION (LOOP JOIN, FORCE ORDER);
