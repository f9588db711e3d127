-- part: erased_at
-- The time of an erasure: a given time, or that of the newest erasure or committed event. After `refuse_former_plans` no
-- batch commits, so no committed event is newer.
(SELECT MAX(k.known_at)
          FROM (SELECT :erased_at AS known_at
                 UNION ALL
                SELECT COALESCE(MAX(c.enqueued_at), :erased_at) FROM event_hub_checkpoint AS c
                 UNION ALL
                SELECT COALESCE(MAX(o.erased_at), :erased_at) FROM erased_subject AS o) AS k);

-- name: find_next_erasable
-- Find the next number of a partition that has a letter, a staged event, a retracted row or a difference of a dry run;
-- NULL: none.
-- params: stream_id int, partition_id varchar(8000), first_sequence_number bigint
SELECT (SELECT MIN(x.sequence_number) FROM event_hub_dead_letter AS x
         WHERE x.stream_id = :stream_id AND x.partition_id = :partition_id
           AND x.sequence_number >= :first_sequence_number) AS next_letter,
       (SELECT MIN(x.sequence_number) FROM staged_event AS x
         WHERE x.stream_id = :stream_id AND x.partition_id = :partition_id
           AND x.sequence_number >= :first_sequence_number) AS next_staged,
       (SELECT MIN(x.sequence_number) FROM retracted_row AS x
         WHERE x.stream_id = :stream_id AND x.partition_id = :partition_id
           AND x.sequence_number >= :first_sequence_number) AS next_retracted,
       (SELECT MIN(x.sequence_number) FROM task AS t INNER JOIN replay_diff AS x ON x.task_id = t.task_id
         WHERE t.stream_id = :stream_id AND t.kind = 'replay' AND t.is_dry_run = 1 AND x.partition_id = :partition_id
           AND x.sequence_number >= :first_sequence_number) AS next_diff;

-- name: find_texts_to_search
-- Find the first texts of a range by their numbers, with the octets of bodies: letters that no erasure blanked, staged
-- events and attempts. With needles, a JSON array of [needle], only those that have one of these ASCII texts or are UTF-16.
-- The bodies have one type: so the engines read the three in order, and stop after the last one.
-- params: stream_id int, partition_id varchar(8000), first_sequence_number bigint, last_sequence_number bigint, most int, needles nvarchar(max)
SELECT x.sequence_number, COALESCE(DATALENGTH(x.body), 0) AS body_bytes
  FROM (SELECT d.sequence_number, d.body, COALESCE(d.partition_key, '') || d.properties || d.error AS texts
          FROM event_hub_dead_letter AS d
         WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
           AND d.sequence_number BETWEEN :first_sequence_number AND :last_sequence_number
           AND d.erased_by IS NULL
         UNION ALL
        SELECT s.sequence_number, s.body, COALESCE(s.partition_key, '') || s.properties
          FROM staged_event AS s
         WHERE s.stream_id = :stream_id AND s.partition_id = :partition_id
           AND s.sequence_number BETWEEN :first_sequence_number AND :last_sequence_number
         UNION ALL
        SELECT a.sequence_number, CAST(NULL AS varbinary(max)), COALESCE(a.error, '') || COALESCE(a.why, '')  -- sqlserver only
        SELECT a.sequence_number, CAST(NULL AS BLOB), COALESCE(a.error, '') || COALESCE(a.why, '')  -- sqlite only
          FROM dead_letter_attempt AS a
         WHERE a.stream_id = :stream_id AND a.partition_id = :partition_id
           AND a.sequence_number BETWEEN :first_sequence_number AND :last_sequence_number
           AND (a.error IS NOT NULL OR a.why IS NOT NULL)) AS x
 WHERE (:needles = '[]' OR SUBSTRING(x.body, 1, 2) IN (0xFFFE, 0xFEFF) OR EXISTS (  -- sqlserver only
 WHERE (:needles = '[]' OR SUBSTRING(x.body, 1, 2) IN (x'FFFE', x'FEFF') OR EXISTS (  -- sqlite only
       SELECT 1 FROM rows(:needles) AS n (needle varchar(200))
        WHERE CHARINDEX(n.needle, CONVERT(varchar(max), x.body) COLLATE Latin1_General_100_BIN2) > 0  -- sqlserver only
           OR CHARINDEX(n.needle, x.texts COLLATE Latin1_General_100_BIN2) > 0))  -- sqlserver only
        WHERE INSTR(x.body, CAST(n.needle AS BLOB)) > 0 OR INSTR(x.texts, n.needle) > 0))  -- sqlite only
 ORDER BY x.sequence_number
 LIMIT :most;

-- name: read_texts_to_search
-- Read the letters, staged events and attempts of some numbers of a partition, each with its kind.
-- params: stream_id int, partition_id varchar(8000), sequence_numbers nvarchar(max)
SELECT 'letter' AS kind, d.sequence_number, 0 AS attempt, d.body, d.partition_key, d.properties, d.error
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
   AND d.sequence_number IN (SELECT n.sequence_number FROM rows(:sequence_numbers) AS n (sequence_number bigint))
   AND d.erased_by IS NULL
 UNION ALL
SELECT 'staged', s.sequence_number, 0, s.body, s.partition_key, s.properties, NULL
  FROM staged_event AS s
 WHERE s.stream_id = :stream_id AND s.partition_id = :partition_id
   AND s.sequence_number IN (SELECT n.sequence_number FROM rows(:sequence_numbers) AS n (sequence_number bigint))
 UNION ALL
SELECT 'attempt', a.sequence_number, a.attempt, CONVERT(varbinary(max), NULL), a.error, a.why, NULL
  FROM dead_letter_attempt AS a
 WHERE a.stream_id = :stream_id AND a.partition_id = :partition_id
   AND a.sequence_number IN (SELECT n.sequence_number FROM rows(:sequence_numbers) AS n (sequence_number bigint));

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

-- name: read_states_to_search
-- Read the states that replays carry, also those that have ended.
-- params:
SELECT s.task_id, s.partition_id, s.state_key, s.row
  FROM replay_state AS s;

-- name: delete_state_of
-- Delete a state that a replay carries.
-- params: task_id varchar(8000), partition_id varchar(8000), state_key varchar(8000)
DELETE FROM replay_state
 WHERE task_id = :task_id AND partition_id = :partition_id AND state_key = :state_key;

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
-- Blank what letters quote of their events: only the place and the outcome stay. The cause goes too, because its hash
-- would confirm a guess of the error.
-- params: stream_id int, partition_id varchar(8000), sequence_numbers nvarchar(max), erased_by varchar(8000)
UPDATE event_hub_dead_letter AS d
   SET partition_key = NULL, properties = '{}', body_kept = 0, error_type = 'erased', error = 'erased', fingerprint = 'erased',
       cause = 'erased',
       settled_why = CASE WHEN d.settled_why IS NOT NULL THEN 'erased' END, erased_by = :erased_by,
       body = x''  -- sqlite only
       body = 0x  -- sqlserver only
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
   AND d.sequence_number IN (
       SELECT n.sequence_number FROM rows(:sequence_numbers) AS n (sequence_number bigint));

-- name: blank_attempts
-- Blank errors, and why people moved letters, of attempts in a JSON array of [sequence_number, attempt]. NULL: of all attempts.
-- params: stream_id int, partition_id varchar(8000), attempts nvarchar(max)
UPDATE dead_letter_attempt AS a
   SET error = CASE WHEN a.error IS NOT NULL THEN 'erased' END, cause = CASE WHEN a.cause IS NOT NULL THEN 'erased' END,
       why = CASE WHEN a.why IS NOT NULL THEN 'erased' END
 WHERE a.stream_id = :stream_id AND a.partition_id = :partition_id
   AND a.sequence_number IN (
       SELECT m.sequence_number FROM rows(:attempts) AS m (sequence_number bigint))
   AND EXISTS (
       SELECT 1 FROM rows(:attempts) AS n (sequence_number bigint, attempt int)
        WHERE n.sequence_number = a.sequence_number AND COALESCE(n.attempt, a.attempt) = a.attempt);

-- name: blank_reasons_of_letters
-- Blank why letters were settled, of the attempts in a JSON array of [sequence_number, attempt].
-- params: stream_id int, partition_id varchar(8000), reasons nvarchar(max)
UPDATE event_hub_dead_letter AS d
   SET settled_why = 'erased'
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id AND d.settled_why IS NOT NULL
   AND d.sequence_number IN (
       SELECT n.sequence_number FROM rows(:reasons) AS n (sequence_number bigint));

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

-- name: refuse_former_plans
-- Let no plan be committed that was made before this erasure; a commit that has begun is waited for, in every stream.
-- params:
UPDATE event_stream WITH (HOLDLOCK)
   SET erasures = erasures + 1;

-- name: forget_hashes
-- Delete the hashes of subjects by the key before, a JSON array of [subject_hash], which have new ones now.
-- params: former_hashes nvarchar(max)
DELETE FROM erased_subject
 WHERE subject_hash IN (
       SELECT n.subject_hash COLLATE Latin1_General_100_BIN2 FROM rows(:former_hashes) AS n (subject_hash varchar(64)));

-- name: renew_erased_subjects
-- Move the time of erased subjects forward, from a JSON array of [subject_hash].
-- params: hashes nvarchar(max), key_hash varchar(8000), erased_by varchar(8000), erased_at datetime2(6)
UPDATE erased_subject AS s
   SET erased_at = {erased_at}, key_hash = :key_hash, erased_by = :erased_by
 WHERE s.subject_hash IN (
       SELECT n.subject_hash COLLATE Latin1_General_100_BIN2 FROM rows(:hashes) AS n (subject_hash varchar(64)));

-- name: add_erased_subjects
-- Note erased subjects that are not known, from a JSON array of [subject_hash].
-- params: hashes nvarchar(max), key_hash varchar(8000), erased_by varchar(8000), erased_at datetime2(6)
INSERT INTO erased_subject (subject_hash, key_hash, erased_at, erased_by)
SELECT n.subject_hash, :key_hash, {erased_at}, :erased_by
  FROM rows(:hashes) AS n (subject_hash varchar(64))
 WHERE NOT EXISTS (
       SELECT 1 FROM erased_subject AS s WHERE s.subject_hash = n.subject_hash COLLATE Latin1_General_100_BIN2);

-- name: add_parts_to_erase
-- Add a part for each partition of each stream, up to its checkpoint, with its stream, and a last one for the lake. Of
-- this stream, the parts have the names of the partitions.
-- params: task_id varchar(8000), stream_id int, report nvarchar(max), lake varchar(8000)
INSERT INTO task_part
       (task_id, ordinal, part, first_sequence_number, last_sequence_number, position, step, asked, report)
SELECT :task_id, ROW_NUMBER() OVER (ORDER BY c.stream_id, LEN(c.partition_id), c.partition_id) - 1,
       CASE WHEN c.stream_id = :stream_id THEN c.partition_id
            ELSE CONVERT(varchar(11), c.stream_id) || '/' || c.partition_id END,
       0, c.sequence_number, 0, 0, CONVERT(varchar(11), c.stream_id), :report
  FROM event_hub_checkpoint AS c
 UNION ALL
SELECT :task_id, 2147483647, :lake, NULL, NULL, 0, 0, 'null', :report;

-- name: read_erased_subjects
-- Read the subjects that were erased from a time on.
-- params: since datetime2(6)
SELECT s.subject_hash, s.erased_at, s.key_hash
  FROM erased_subject AS s
 WHERE s.erased_at >= :since;

-- name: read_erasure_keys
-- Read the names of the keys of all hashes, with their number and the newest time.
-- params:
SELECT s.key_hash, COUNT(*) AS subjects, CONVERT(varchar(33), MAX(s.erased_at), 126) AS erased_at
  FROM erased_subject AS s
 GROUP BY s.key_hash;

-- name: read_unrepaired
-- Read the reports of erasures that were cancelled or failed after the last one that was done.
-- params:
SELECT p.report
  FROM task AS t
 INNER JOIN task_part AS p ON p.task_id = t.task_id
 WHERE t.kind = 'erasure' AND t.is_dry_run = 0 AND t.status IN ('cancelled', 'failed') AND p.report IS NOT NULL
   AND NOT EXISTS (
       SELECT 1 FROM task AS d
        WHERE d.kind = 'erasure' AND d.is_dry_run = 0 AND d.status = 'done' AND d.requested_at > t.requested_at);

-- name: forget_erasure_keys
-- Delete the hashes of some keys, a JSON array of [key_hash].
-- params: key_hashes nvarchar(max)
DELETE FROM erased_subject
 WHERE key_hash IN (SELECT n.key_hash COLLATE Latin1_General_100_BIN2 FROM rows(:key_hashes) AS n (key_hash varchar(16)));

-- name: read_tasks_to_search
-- Read the texts that people wrote in tasks.
-- params:
SELECT t.task_id, t.asked, t.reason, t.fault, t.history
  FROM task AS t;

-- name: read_jobs_to_search
-- Read the texts that people wrote about the jobs of aggregates.
-- params:
SELECT c.job, c.paused_why, c.ordered_why, c.history
  FROM aggregation_cut AS c;

-- name: read_stream_names
-- Read the names of all streams.
-- params:
SELECT e.stream_id, e.event_hub, e.consumer_group, e.incarnation
  FROM event_stream AS e;

-- name: read_streams_to_search
-- Read the texts that people wrote about incarnations.
-- params:
SELECT e.stream_id, e.opened_why
  FROM event_stream AS e
 WHERE e.opened_why IS NOT NULL;

-- name: read_stops_to_search
-- Read the details of all stops, which may quote an error.
-- params:
SELECT s.stream_id, s.partition_id, s.reason, s.detail
  FROM partition_stop AS s;

-- name: reword_task
-- Replace the texts that people wrote in a task, and the digests of these and of a filter.
-- params: task_id varchar(8000), asked nvarchar(max), reason nvarchar(4000), fault nvarchar(4000), history nvarchar(max)
UPDATE task
   SET asked = :asked, reason = :reason, fault = :fault, history = :history, request_digest = '',
       task_key = CASE WHEN kind = 'redrive' THEN task_id ELSE task_key END
 WHERE task_id = :task_id;

-- name: reword_job
-- Replace the texts that people wrote about a job.
-- params: job varchar(8000), paused_why nvarchar(4000), ordered_why nvarchar(4000), history nvarchar(max)
UPDATE aggregation_cut
   SET paused_why = :paused_why, ordered_why = :ordered_why, history = :history
 WHERE job = :job;

-- name: reword_stream
-- Replace the text that a person wrote about an incarnation.
-- params: stream_id int, opened_why nvarchar(4000)
UPDATE event_stream
   SET opened_why = :opened_why
 WHERE stream_id = :stream_id;

-- name: reword_stop
-- Replace the detail of a stop.
-- params: stream_id int, partition_id varchar(8000), reason varchar(8000), detail nvarchar(4000)
UPDATE partition_stop
   SET detail = :detail
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND reason = :reason;
