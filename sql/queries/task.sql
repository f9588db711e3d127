-- part: task
-- The columns of a task and of its stream, in the order of the fields of TaskFacts.
t.task_id, t.kind, e.event_hub, e.consumer_group, t.stream_id, t.status, t.is_dry_run, t.asked, t.request_digest, t.total, t.pieces,
       t.per_second, CONVERT(varchar(33), t.next_piece_at, 126) AS next_piece_at, t.requested_by, t.reason,
       CONVERT(varchar(33), t.requested_at, 126) AS requested_at,
       CONVERT(varchar(33), t.started_at, 126) AS started_at,
       CONVERT(varchar(33), t.ended_at, 126) AS ended_at,
       CONVERT(varchar(33), t.updated_at, 126) AS updated_at, t.fault, t.history,
       t.transform_version;

-- part: without_subjects
-- The request of an erasure without the values of its subjects.
json_set(asked, '$.subjects', json('[]'))  -- sqlite only
                    JSON_MODIFY(asked, '$.subjects', JSON_QUERY('[]'))  -- sqlserver only;

-- name: add_task
-- Insert a new task, planned; touches no row when there is a task with its id, when an open task of its kind has the same key or, if it holds numbers, some
-- of the numbers of an open task that holds them, or when too many of its kind are open. The stream's row is locked, so tasks are opened one by one.
-- params: task_id varchar(8000), stream_id int, kind varchar(8000), is_dry_run bit, task_key varchar(8000), asked nvarchar(max), request_digest varchar(8000), total bigint, per_second int, requested_by nvarchar(4000), reason nvarchar(4000), requested_at datetime2(6), most_open int, holds_numbers bit, parts nvarchar(max), transform_version nvarchar(4000)
INSERT INTO task
       (task_id, stream_id, kind, status, is_dry_run, task_key, asked, request_digest, total, pieces, per_second,
        next_piece_at, requested_by, reason, requested_at, updated_at, history, transform_version)
SELECT :task_id, :stream_id, :kind, 'planned', :is_dry_run, :task_key, :asked, :request_digest, :total, 0,
       NULLIF(:per_second, 0), :requested_at,
       :requested_by, :reason, :requested_at, :requested_at, '', NULLIF(:transform_version, '')
 WHERE :most_open > (
       SELECT COUNT(*) FROM task AS o
        WHERE o.stream_id = :stream_id AND o.kind = :kind AND o.status IN ('planned', 'running', 'paused'))
   AND NOT EXISTS (
       SELECT 1 FROM task AS k
        WHERE k.stream_id = :stream_id AND k.kind = :kind AND k.task_key = :task_key
          AND k.status IN ('planned', 'running', 'paused'))
   AND NOT EXISTS (SELECT 1 FROM task AS s WHERE s.task_id = :task_id)
   AND (:holds_numbers = 0
    OR NOT EXISTS (
       SELECT 1
         FROM task AS h
        INNER JOIN task_part AS p ON p.task_id = h.task_id
        INNER JOIN rows(:parts) AS r (
              part varchar(80), first_sequence_number bigint, last_sequence_number bigint)
           ON r.part COLLATE Latin1_General_100_BIN2 = p.part
        WHERE h.stream_id = :stream_id AND h.kind IN ('replay', 'erasure') AND h.is_dry_run = 0
          AND h.status IN ('planned', 'running', 'paused')
          AND p.first_sequence_number <= r.last_sequence_number
          AND p.last_sequence_number >= r.first_sequence_number));

-- name: find_standing
-- Find an open task that keeps a new one out: one of its kind that has the same key or, if the new one holds numbers, one
-- of the kinds that do, with some of its numbers.
-- params: stream_id int, kind varchar(8000), task_key varchar(8000), holds_numbers bit, parts nvarchar(max)
SELECT t.task_id, t.kind
  FROM task AS t
 WHERE t.stream_id = :stream_id AND t.status IN ('planned', 'running', 'paused')
   AND (t.kind = :kind AND t.task_key = :task_key
        OR :holds_numbers = 1 AND t.kind IN ('replay', 'erasure') AND t.is_dry_run = 0 AND EXISTS (
           SELECT 1
             FROM task_part AS p
            INNER JOIN rows(:parts) AS r (
                  part varchar(80), first_sequence_number bigint, last_sequence_number bigint)
               ON r.part COLLATE Latin1_General_100_BIN2 = p.part
            WHERE p.task_id = t.task_id AND p.first_sequence_number <= r.last_sequence_number
              AND p.last_sequence_number >= r.first_sequence_number))
 LIMIT 1;

-- name: add_parts
-- Insert the parts of a new task, from a JSON array of [part, first, last, position, asked, report, ordinal].
-- params: task_id varchar(8000), parts nvarchar(max)
INSERT INTO task_part
       (task_id, ordinal, part, first_sequence_number, last_sequence_number, position, step, asked, report)
SELECT :task_id, r.ordinal, r.part, r.first_sequence_number, r.last_sequence_number, r.position, 0, r.asked, r.report
  FROM rows(:parts) AS r (
       part varchar(80), first_sequence_number bigint, last_sequence_number bigint, position bigint,
       asked nvarchar(max), report nvarchar(max), ordinal int);

-- name: count_open_tasks
-- Count the tasks of a kind that are not over, dry runs included.
-- params: stream_id int, kind varchar(8000)
SELECT COUNT(*) AS tasks
  FROM task AS t
 WHERE t.stream_id = :stream_id AND t.kind = :kind AND t.status IN ('planned', 'running', 'paused');

-- name: find_task
-- Find one task of any stream.
-- params: task_id varchar(8000)
SELECT {task}
  FROM task AS t
 INNER JOIN event_stream AS e ON e.stream_id = t.stream_id
 WHERE t.task_id = :task_id;

-- name: read_tasks
-- Read tasks of a stream, the newest first, after one of them.
-- params: stream_id int, kind varchar(8000), status varchar(8000), requested_at datetime2(6), task_id varchar(8000), most int
SELECT {task}
  FROM task AS t
 INNER JOIN event_stream AS e ON e.stream_id = t.stream_id
 WHERE t.stream_id = :stream_id
   AND t.kind = :kind  -- if given
   AND t.status = :status  -- if given
   AND (t.requested_at < :requested_at OR t.requested_at = :requested_at AND t.task_id < :task_id)
 ORDER BY t.requested_at DESC, t.task_id DESC
 LIMIT :most;

-- name: read_parts
-- Read the parts of tasks, in order.
-- params: task_ids nvarchar(max)
SELECT p.task_id, p.part, p.first_sequence_number, p.last_sequence_number, p.position, p.step, p.asked, p.report,
       CONVERT(varchar(33), p.closed_at, 126) AS closed_at
  FROM rows(:task_ids) AS i (task_id varchar(36))
 INNER JOIN task_part AS p ON p.task_id = i.task_id COLLATE Latin1_General_100_BIN2
 ORDER BY p.task_id, p.ordinal
OPTION (LOOP JOIN, FORCE ORDER);  -- sqlserver only

-- name: read_open_tasks
-- Read the tasks of a stream that are not over, the oldest first.
-- params: stream_id int
SELECT t.task_id, t.kind, t.status
  FROM task AS t
 WHERE t.stream_id = :stream_id AND t.status IN ('planned', 'running', 'paused')
 ORDER BY t.requested_at;

-- name: count_tasks_held_up
-- Count the open tasks that a fault holds up, or that the app has paused for one.
-- params: stream_id int
SELECT COUNT(*) AS tasks
  FROM task AS t
 WHERE t.stream_id = :stream_id AND t.status IN ('planned', 'running', 'paused') AND t.fault IS NOT NULL;

-- name: find_last_task
-- Find the time of the last request of a kind that was no dry run.
-- params: stream_id int, kind varchar(8000)
SELECT CONVERT(varchar(33), t.requested_at, 126) AS requested_at
  FROM task AS t
 WHERE t.stream_id = :stream_id AND t.kind = :kind AND t.is_dry_run = 0
 ORDER BY t.requested_at DESC
 LIMIT 1;

-- name: move_task
-- Compare and set: touches no row when the status is not in a list, as ",planned,running,". A version that is given is that
-- of the task from now on. An erasure that ends so forgets the values of its subjects.
-- params: task_id varchar(8000), status varchar(8000), sources varchar(8000), moved_at datetime2(6), fault nvarchar(4000), entry nvarchar(max), transform_version nvarchar(4000)
UPDATE task
   SET status = :status, updated_at = :moved_at, fault = NULLIF(:fault, ''), history = history || :entry,
       started_at = CASE WHEN :status = 'running' THEN COALESCE(started_at, :moved_at) ELSE started_at END,
       ended_at = CASE WHEN :status IN ('cancelled', 'failed') THEN :moved_at END,
       asked = CASE WHEN kind <> 'erasure' OR :status NOT IN ('cancelled', 'failed') THEN asked ELSE
                    {without_subjects}
                    END,
       transform_version = COALESCE(NULLIF(:transform_version, ''), transform_version)
 WHERE task_id = :task_id AND CHARINDEX(',' || status || ',', :sources) > 0
RETURNING task_id;  -- sqlite only
; IF @@ROWCOUNT = 1 SELECT :task_id AS task_id;  -- sqlserver only

-- name: note_task_fault
-- Store the fault that holds a task up now; an empty text for none. The fault of a paused task stays until it is resumed.
-- params: task_id varchar(8000), fault nvarchar(4000), moved_at datetime2(6)
UPDATE task
   SET fault = NULLIF(:fault, ''), updated_at = :moved_at
 WHERE task_id = :task_id AND status IN ('planned', 'running') AND COALESCE(fault, '') <> :fault;

-- name: hold_task
-- Lock the row of a task before its part advances, and count the piece; touches no row when the task does not run, when
-- a different version of the transform does it, or before the time of its next piece. A time after the latest is of a clock that was ahead, so it holds nothing up.
-- params: task_id varchar(8000), next_piece_at datetime2(6), latest datetime2(6), moved_at datetime2(6), transform_version nvarchar(4000)
UPDATE task
   SET pieces = pieces + 1, updated_at = :moved_at,
       next_piece_at = CASE WHEN per_second IS NULL THEN next_piece_at ELSE :next_piece_at END
 WHERE task_id = :task_id AND status = 'running'
   AND (per_second IS NULL OR next_piece_at <= :moved_at OR next_piece_at > :latest)
   AND COALESCE(transform_version, '') = :transform_version;

-- name: advance_part
-- Compare and set: touches no row when another driver advanced the part first. The last piece closes it.
-- params: task_id varchar(8000), part varchar(8000), expected int, position bigint, report nvarchar(max), is_last bit, moved_at datetime2(6)
UPDATE task_part
   SET position = :position, report = :report, step = step + 1,
       closed_at = CASE WHEN :is_last = 1 THEN :moved_at END
 WHERE task_id = :task_id AND part = :part AND step = :expected AND closed_at IS NULL;

-- name: end_task
-- End a task when every part of it is closed. An erasure forgets the values of its subjects.
-- params: task_id varchar(8000), moved_at datetime2(6)
UPDATE task
   SET status = 'done', ended_at = :moved_at, updated_at = :moved_at, fault = NULL,
       asked = CASE WHEN kind <> 'erasure' THEN asked ELSE
                    {without_subjects}
                    END
 WHERE task_id = :task_id AND status = 'running'
   AND NOT EXISTS (SELECT 1 FROM task_part AS p WHERE p.task_id = :task_id AND p.closed_at IS NULL);

-- name: carry_erasures
-- Give the open erasures of a closed stream to the next incarnation, which goes on with them: they are of every stream.
-- params: stream_id int
UPDATE task
   SET stream_id = (
       SELECT n.stream_id
         FROM event_stream AS e
        INNER JOIN event_stream AS n
           ON n.event_hub = e.event_hub AND n.consumer_group = e.consumer_group AND n.incarnation = e.incarnation + 1
        WHERE e.stream_id = :stream_id)
 WHERE stream_id = :stream_id AND kind = 'erasure' AND status IN ('planned', 'running', 'paused');

-- name: cancel_tasks_of_stream
-- Cancel the open tasks of a closed stream: its numbers mean different events in the hub now.
-- params: stream_id int, moved_at datetime2(6), fault nvarchar(4000)
UPDATE task
   SET status = 'cancelled', updated_at = :moved_at, ended_at = :moved_at, fault = :fault
 WHERE stream_id = :stream_id AND status IN ('planned', 'running', 'paused');

-- name: advance_replay
-- Advance a part as `advance_part` does, and add to its report the letters and the retracted rows of this transaction.
-- params: task_id varchar(8000), part varchar(8000), expected int, position bigint, report nvarchar(max), is_last bit, moved_at datetime2(6), letters_added bigint, letters_resolved bigint, rows_retracted bigint
UPDATE task_part
   SET position = :position, step = step + 1,
       closed_at = CASE WHEN :is_last = 1 THEN :moved_at END, report = json_set(
       :report, '$.letters_added', (:report ->> 'letters_added') + :letters_added,
       '$.letters_resolved', (:report ->> 'letters_resolved') + :letters_resolved,
       '$.rows_retracted', (:report ->> 'rows_retracted') + :rows_retracted)
 WHERE task_id = :task_id AND part = :part AND step = :expected AND closed_at IS NULL;
-- sqlserver:
UPDATE hubledger.task_part
   SET position = @position, step = step + 1,
       closed_at = CASE WHEN @is_last = 1 THEN @moved_at END, report = JSON_MODIFY(JSON_MODIFY(JSON_MODIFY(
       @report, '$.letters_added', CONVERT(bigint, JSON_VALUE(@report, '$.letters_added')) + @letters_added),
       '$.letters_resolved', CONVERT(bigint, JSON_VALUE(@report, '$.letters_resolved')) + @letters_resolved),
       '$.rows_retracted', CONVERT(bigint, JSON_VALUE(@report, '$.rows_retracted')) + @rows_retracted)
 WHERE task_id = @task_id AND part = @part AND step = @expected AND closed_at IS NULL;

-- name: advance_redrive
-- Advance a part as `advance_part` does, and add to its report the letters that this transaction moved and left.
-- params: task_id varchar(8000), part varchar(8000), expected int, position bigint, report nvarchar(max), is_last bit, moved_at datetime2(6), looked_at bigint, moved bigint
UPDATE task_part
   SET position = :position, step = step + 1,
       closed_at = CASE WHEN :is_last = 1 THEN :moved_at END, report = json_set(
       :report, '$.moved', (:report ->> 'moved') + :moved,
       '$.unmoved', (:report ->> 'unmoved') + :looked_at - :moved)
 WHERE task_id = :task_id AND part = :part AND step = :expected AND closed_at IS NULL;
-- sqlserver:
UPDATE hubledger.task_part
   SET position = @position, step = step + 1,
       closed_at = CASE WHEN @is_last = 1 THEN @moved_at END, report = JSON_MODIFY(JSON_MODIFY(
       @report, '$.moved', CONVERT(bigint, JSON_VALUE(@report, '$.moved')) + @moved),
       '$.unmoved', CONVERT(bigint, JSON_VALUE(@report, '$.unmoved')) + @looked_at - @moved)
 WHERE task_id = @task_id AND part = @part AND step = @expected AND closed_at IS NULL;
