-- name: add_replay_diffs
-- Insert the changes of events in a dry run, from a JSON array of [sequence_number, diff].
-- params: task_id varchar(8000), partition_id varchar(8000), diffs nvarchar(max)
INSERT INTO replay_diff (task_id, partition_id, sequence_number, diff)
SELECT :task_id, :partition_id, d.sequence_number, d.diff
  FROM rows(:diffs) AS d (sequence_number bigint, diff nvarchar(max));

-- name: read_replay_diffs
-- Read the changes of a dry run, by partition and number, from after an event. The server reads of each partition as
-- many as the page has at most: the key does not order partitions by number, and a sort of all changes would read all.
-- params: task_id varchar(8000), partition_id varchar(8000), sequence_number bigint, most int
SELECT d.partition_id, d.sequence_number, d.diff
  FROM replay_diff AS d
 WHERE d.task_id = :task_id
   AND (LENGTH(d.partition_id) > LENGTH(:partition_id)
        OR LENGTH(d.partition_id) = LENGTH(:partition_id)
           AND (d.partition_id > :partition_id
                OR d.partition_id = :partition_id AND d.sequence_number > :sequence_number))
 ORDER BY LENGTH(d.partition_id), d.partition_id, d.sequence_number
 LIMIT :most;
-- sqlserver:
SELECT TOP (@most) p.partition_id, f.sequence_number, f.diff
  FROM (SELECT q.part AS partition_id, LEN(q.part) AS width,
               CASE WHEN q.part = @partition_id THEN @sequence_number ELSE -1 END AS after_number
          FROM hubledger.task_part AS q
         WHERE q.task_id = @task_id
           AND (LEN(q.part) > LEN(@partition_id)
                OR LEN(q.part) = LEN(@partition_id) AND q.part >= @partition_id)) AS p
 CROSS APPLY (
       SELECT TOP (@most) d.sequence_number, d.diff
         FROM hubledger.replay_diff AS d
        WHERE d.task_id = @task_id AND d.partition_id = p.partition_id AND d.sequence_number > p.after_number
        ORDER BY d.sequence_number) AS f
 ORDER BY p.width, p.partition_id, f.sequence_number;
