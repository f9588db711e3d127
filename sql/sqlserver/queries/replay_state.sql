-- name: carry_states
-- The states that a piece wrote, for the events behind it to see; a JSON array of [state_key, sequence_number, row];
-- on a server the place and length of each row in @carried_texts.
-- params: job_id, partition_id, carried
UPDATE s
   SET sequence_number = c.sequence_number, row = SUBSTRING(@carried_texts, c.row_at, c.row_length)
  FROM hubledger.replay_state AS s
 INNER JOIN OPENJSON(@carried) WITH (
       state_key varchar(64) '$[0]', sequence_number bigint '$[1]', row_at int '$[2]', row_length int '$[3]') AS c
    ON c.state_key COLLATE Latin1_General_100_BIN2 = s.state_key
 WHERE s.job_id = @job_id AND s.partition_id = @partition_id;
INSERT INTO hubledger.replay_state (job_id, partition_id, state_key, sequence_number, row)
SELECT @job_id, @partition_id, c.state_key, c.sequence_number, SUBSTRING(@carried_texts, c.row_at, c.row_length)
  FROM OPENJSON(@carried) WITH (
       state_key varchar(64) '$[0]', sequence_number bigint '$[1]', row_at int '$[2]', row_length int '$[3]') AS c
 WHERE NOT EXISTS (
       SELECT 1 FROM hubledger.replay_state AS s
        WHERE s.job_id = @job_id AND s.partition_id = @partition_id
          AND s.state_key = c.state_key COLLATE Latin1_General_100_BIN2);

-- name: read_carried
-- The states under these keys that a job carries along, the keys as a JSON array of [state_key].
-- params: job_id, partition_id, keys
SELECT s.state_key, s.sequence_number, s.row
  FROM hubledger.replay_state AS s
 WHERE s.job_id = @job_id AND s.partition_id = @partition_id
   AND s.state_key IN (
       SELECT k.state_key COLLATE Latin1_General_100_BIN2 FROM OPENJSON(@keys) WITH (state_key varchar(64) '$[0]') AS k);

-- name: forget_states
-- A job that has ended carries nothing along.
-- params: job_id
DELETE FROM hubledger.replay_state
 WHERE job_id = @job_id
   AND EXISTS (
       SELECT 1 FROM hubledger.replay_job AS j
        WHERE j.job_id = @job_id AND j.status IN ('done', 'cancelled', 'failed'));
