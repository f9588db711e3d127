-- name: carry_states
-- Store the states that a piece wrote, for later events to see, from a JSON array of [state_key, sequence_number, row].
-- params: task_id varchar(8000), partition_id varchar(8000), carried nvarchar(max)
INSERT INTO replay_state (task_id, partition_id, state_key, sequence_number, row)
SELECT :task_id, :partition_id, c.value ->> 0, c.value ->> 1, c.value ->> 2
  FROM json_each(:carried) AS c
 WHERE TRUE
ON CONFLICT (task_id, partition_id, state_key) DO UPDATE
   SET sequence_number = excluded.sequence_number, row = excluded.row;
-- sqlserver:
UPDATE s
   SET sequence_number = c.sequence_number, row = c.row
  FROM hubledger.replay_state AS s
 INNER JOIN OPENJSON(@carried) WITH (
       state_key varchar(64) '$[0]', sequence_number bigint '$[1]', row nvarchar(max) '$[2]') AS c
    ON c.state_key COLLATE Latin1_General_100_BIN2 = s.state_key
 WHERE s.task_id = @task_id AND s.partition_id = @partition_id;
INSERT INTO hubledger.replay_state (task_id, partition_id, state_key, sequence_number, row)
SELECT @task_id, @partition_id, c.state_key, c.sequence_number, c.row
  FROM OPENJSON(@carried) WITH (
       state_key varchar(64) '$[0]', sequence_number bigint '$[1]', row nvarchar(max) '$[2]') AS c
 WHERE NOT EXISTS (
       SELECT 1 FROM hubledger.replay_state AS s
        WHERE s.task_id = @task_id AND s.partition_id = @partition_id
          AND s.state_key = c.state_key COLLATE Latin1_General_100_BIN2);

-- name: read_carried
-- Read the states under these keys that a job carries; the keys are a JSON array of [state_key].
-- params: task_id varchar(8000), partition_id varchar(8000), keys nvarchar(max)
SELECT s.state_key, s.sequence_number, s.row
  FROM replay_state AS s
 WHERE s.task_id = :task_id AND s.partition_id = :partition_id
   AND s.state_key IN (
       SELECT k.state_key COLLATE Latin1_General_100_BIN2 FROM rows(:keys) AS k (state_key varchar(64)));

-- name: forget_states
-- Delete the first states that jobs carried which are over.
-- params: most int
DELETE FROM replay_state
 WHERE (task_id, partition_id, state_key) IN (
       SELECT s.task_id, s.partition_id, s.state_key
         FROM task AS t
        CROSS JOIN replay_state AS s ON s.task_id = t.task_id
        WHERE t.status IN ('done', 'cancelled', 'failed')
        LIMIT :most);
-- sqlserver:
DELETE TOP (@most) s
  FROM hubledger.task AS t
 INNER JOIN hubledger.replay_state AS s ON s.task_id = t.task_id
 WHERE t.status IN ('done', 'cancelled', 'failed')
OPTION (LOOP JOIN, FORCE ORDER);
