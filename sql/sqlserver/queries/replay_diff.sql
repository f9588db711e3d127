-- name: add_replay_diffs
-- Insert the changes of events in a dry run, from a JSON array of [sequence_number, diff].
-- params: job_id varchar(8000), partition_id varchar(8000), diffs nvarchar(max)
INSERT INTO hubledger.replay_diff (job_id, partition_id, sequence_number, diff)
SELECT @job_id, @partition_id, d.sequence_number, d.diff
  FROM OPENJSON(@diffs) WITH (sequence_number bigint '$[0]', diff nvarchar(max) '$[1]') AS d;

-- name: read_replay_diffs
-- Read the changes of a dry run, by partition and number, from after an event.
-- params: job_id varchar(8000), partition_id varchar(8000), sequence_number bigint, most int
SELECT TOP (@most) d.partition_id, d.sequence_number, d.diff
  FROM hubledger.replay_diff AS d
 WHERE d.job_id = @job_id
   AND (LEN(d.partition_id) > LEN(@partition_id)
        OR LEN(d.partition_id) = LEN(@partition_id)
           AND (d.partition_id > @partition_id
                OR d.partition_id = @partition_id AND d.sequence_number > @sequence_number))
 ORDER BY LEN(d.partition_id), d.partition_id, d.sequence_number;
