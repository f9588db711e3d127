-- name: resolve_letters
-- Resolve the letters of events that a replay wrote or filtered, whatever their status was: their rows exist now.
-- params: stream_id int, partition_id varchar(8000), succeeded nvarchar(max), touched_by nvarchar(4000), settled_why nvarchar(4000), transform_version nvarchar(4000), committed_at datetime2(6)
UPDATE event_hub_dead_letter
   SET status = 'resolved', due_at = NULL, claimed_by = :touched_by, claimed_until = NULL, began_at = NULL,
       lost_claims = 0, transform_version = :transform_version, settled_at = :committed_at, settled_why = :settled_why
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND status <> 'resolved'
   AND sequence_number IN (
       SELECT n.sequence_number FROM rows(:succeeded) AS n (sequence_number bigint));

-- name: reopen_letters
-- Reopen letters of a replay whose events failed again; a letter that a person discarded stays discarded.
-- params: stream_id int, partition_id varchar(8000), letters rows (sequence_number, error_class, error_type, error, fingerprint, transform_version, status, due_at, failed_at, error_at), touched_by nvarchar(4000)
UPDATE event_hub_dead_letter
   SET error_class = :error_class, error_type = :error_type, error = :error, fingerprint = :fingerprint,
       cause = SUBSTRING(:fingerprint, 1, 16), error_at = :error_at, transform_version = :transform_version, status = :status,
       attempts = CASE WHEN :status = 'held' THEN 0 ELSE 1 END, due_at = :due_at,
       failed_at = :failed_at, claimed_by = :touched_by, claimed_until = NULL, began_at = NULL, lost_claims = 0,
       settled_at = NULL, settled_why = NULL
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND sequence_number = :sequence_number
   AND status <> 'discarded';
-- sqlserver:
UPDATE d
   SET error_class = l.error_class, error_type = l.error_type,
       error = l.error, fingerprint = l.fingerprint,
       cause = SUBSTRING(l.fingerprint, 1, 16), error_at = l.error_at,
       transform_version = l.transform_version,
       status = l.status, attempts = CASE WHEN l.status = 'held' THEN 0 ELSE 1 END, due_at = l.due_at,
       failed_at = l.failed_at, claimed_by = @touched_by, claimed_until = NULL, began_at = NULL, lost_claims = 0, settled_at = NULL, settled_why = NULL
  FROM hubledger.event_hub_dead_letter AS d
 INNER JOIN OPENJSON(@letters) WITH (
       sequence_number bigint '$[0]', error_class varchar(10) '$[1]', error_type nvarchar(max) '$[2]',
       error nvarchar(max) '$[3]', fingerprint varchar(40) '$[4]', transform_version nvarchar(max) '$[5]',
       status varchar(10) '$[6]', due_at datetime2(6) '$[7]', failed_at datetime2(6) '$[8]',
       error_at nvarchar(max) '$[9]') AS l
    ON l.sequence_number = d.sequence_number
 WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id AND d.status <> 'discarded';

-- name: add_replayed_letters
-- Insert letters of a replay, for events that had none. The server gets their bodies in hexadecimal digits.
-- params: stream_id int, partition_id varchar(8000), letters_of_events rows (sequence_number, offset_token, enqueued_at, partition_key, properties, body, body_kept, error_class, error_type, error, fingerprint, transform_version, status, due_at, failed_at, error_at), touched_by nvarchar(4000), commit_number bigint
INSERT INTO event_hub_dead_letter
       (stream_id, partition_id, sequence_number, offset_token, enqueued_at, partition_key, properties, body,
        body_kept, error_class, error_type, error, fingerprint, transform_version, status, attempts, due_at, failed_at,
        claimed_by, replay_commit_number, error_at, cause)
VALUES (:stream_id, :partition_id, :sequence_number, :offset_token, :enqueued_at, :partition_key, :properties, :body,
        :body_kept, :error_class, :error_type, :error, :fingerprint, :transform_version, :status,
        CASE WHEN :status = 'held' THEN 0 ELSE 1 END, :due_at, :failed_at, :touched_by, :commit_number,
        :error_at, SUBSTRING(:fingerprint, 1, 16))
ON CONFLICT (stream_id, partition_id, sequence_number) DO NOTHING;
-- sqlserver:
INSERT INTO hubledger.event_hub_dead_letter
       (stream_id, partition_id, sequence_number, offset_token, enqueued_at, partition_key, properties, body,
        body_kept, error_class, error_type, error, fingerprint, transform_version, status, attempts, due_at, failed_at,
        claimed_by, replay_commit_number, error_at, cause)
SELECT @stream_id, @partition_id, l.sequence_number, l.offset_token,
       l.enqueued_at, l.partition_key,
       l.properties,
       CONVERT(varbinary(max), l.body, 2), l.body_kept, l.error_class,
       l.error_type,
       l.error, l.fingerprint,
       l.transform_version, l.status, CASE WHEN l.status = 'held' THEN 0 ELSE 1 END, l.due_at,
       l.failed_at, @touched_by, @commit_number, l.error_at, SUBSTRING(l.fingerprint, 1, 16)
  FROM OPENJSON(@letters_of_events) WITH (
       sequence_number bigint '$[0]', offset_token nvarchar(max) '$[1]', enqueued_at datetime2(6) '$[2]',
       partition_key nvarchar(max) '$[3]', properties nvarchar(max) '$[4]', body nvarchar(max) '$[5]',
       body_kept bit '$[6]', error_class varchar(10) '$[7]', error_type nvarchar(max) '$[8]',
       error nvarchar(max) '$[9]', fingerprint varchar(40) '$[10]', transform_version nvarchar(max) '$[11]',
       status varchar(10) '$[12]', due_at datetime2(6) '$[13]', failed_at datetime2(6) '$[14]',
       error_at nvarchar(max) '$[15]') AS l
 WHERE NOT EXISTS (
       SELECT 1 FROM hubledger.event_hub_dead_letter AS d
        WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id AND d.sequence_number = l.sequence_number);

-- name: add_letter
-- Insert letters: events that could not become rows, stored whole. The server gets their bodies in hexadecimal digits.
-- params: stream_id int, partition_id varchar(8000), letters rows (sequence_number, offset_token, enqueued_at, partition_key, properties, body, body_kept, error_class, error_type, error, fingerprint, transform_version, status, due_at, failed_at, held_behind, error_at)
INSERT INTO event_hub_dead_letter
       (stream_id, partition_id, sequence_number, offset_token, enqueued_at, partition_key, properties, body,
        body_kept, error_class, error_type, error, fingerprint, transform_version, status, attempts, due_at, failed_at,
        held_behind, error_at, cause)
VALUES (:stream_id, :partition_id, :sequence_number, :offset_token, :enqueued_at, :partition_key, :properties, :body,
        :body_kept, :error_class, :error_type, :error, :fingerprint, :transform_version, :status,
        CASE WHEN :status = 'held' THEN 0 ELSE 1 END, :due_at, :failed_at, :held_behind, :error_at,
        SUBSTRING(:fingerprint, 1, 16));
-- sqlserver:
INSERT INTO hubledger.event_hub_dead_letter
       (stream_id, partition_id, sequence_number, offset_token, enqueued_at, partition_key, properties, body,
        body_kept, error_class, error_type, error, fingerprint, transform_version, status, attempts, due_at, failed_at,
        held_behind, error_at, cause)
SELECT @stream_id, @partition_id, l.sequence_number,
       l.offset_token, l.enqueued_at,
       l.partition_key,
       l.properties,
       CONVERT(varbinary(max), l.body, 2), l.body_kept, l.error_class,
       l.error_type,
       l.error, l.fingerprint,
       l.transform_version, l.status, CASE WHEN l.status = 'held' THEN 0 ELSE 1 END, l.due_at,
       l.failed_at, l.held_behind, l.error_at, SUBSTRING(l.fingerprint, 1, 16)
  FROM OPENJSON(@letters) WITH (
       sequence_number bigint '$[0]', offset_token nvarchar(max) '$[1]', enqueued_at datetime2(6) '$[2]',
       partition_key nvarchar(max) '$[3]', properties nvarchar(max) '$[4]', body nvarchar(max) '$[5]',
       body_kept bit '$[6]', error_class varchar(10) '$[7]', error_type nvarchar(max) '$[8]',
       error nvarchar(max) '$[9]', fingerprint varchar(40) '$[10]', transform_version nvarchar(max) '$[11]',
       status varchar(10) '$[12]', due_at datetime2(6) '$[13]', failed_at datetime2(6) '$[14]',
       held_behind bigint '$[15]', error_at nvarchar(max) '$[16]') AS l;

-- name: claim_letters
-- Claim letters that are due, or whose lease has ended. The first ended lease counts as a lost claim, a later one only
-- when a lone try had begun.
-- A letter that is due after the latest, or whose lease ends after it, got the time from a clock that was ahead.
-- Leaves out letters that another transaction has locked: no keeper waits for a different one. A claim that holds
-- letters was sent before, so it takes no more.
-- params: stream_id int, claimed_by nvarchar(4000), claimed_at datetime2(6), claimed_until datetime2(6), latest datetime2(6), most int
UPDATE event_hub_dead_letter
   SET lost_claims = CASE WHEN status = 'retrying' AND (lost_claims = 0 OR began_at IS NOT NULL) THEN lost_claims + 1
                          ELSE lost_claims END,
       status = 'retrying', claimed_by = :claimed_by, claimed_until = :claimed_until, due_at = :claimed_until,
       began_at = NULL
 WHERE rowid IN (
       SELECT n.letter FROM (
              SELECT d.rowid AS letter, d.due_at FROM event_hub_dead_letter AS d
               WHERE d.stream_id = :stream_id AND d.status IN ('waiting', 'retrying') AND d.due_at <= :claimed_at
               UNION ALL
              SELECT d.rowid, d.due_at FROM event_hub_dead_letter AS d
               WHERE d.stream_id = :stream_id AND d.status IN ('waiting', 'retrying') AND d.due_at > :latest
               ORDER BY 2
               LIMIT :most) AS n)
   AND NOT EXISTS (
       SELECT 1 FROM event_hub_dead_letter AS h
        WHERE h.stream_id = :stream_id AND h.status IN ('waiting', 'retrying') AND h.due_at = :claimed_until
          AND h.status = 'retrying' AND h.claimed_by = :claimed_by);
-- sqlserver:
UPDATE TOP (@most) d
   SET lost_claims = CASE WHEN d.status = 'retrying' AND (d.lost_claims = 0 OR d.began_at IS NOT NULL)
                          THEN d.lost_claims + 1 ELSE d.lost_claims END,
       status = 'retrying', claimed_by = @claimed_by, claimed_until = @claimed_until, due_at = @claimed_until,
       began_at = NULL
  FROM hubledger.event_hub_dead_letter AS d WITH (ROWLOCK, READPAST, UPDLOCK, READCOMMITTEDLOCK)
 WHERE d.stream_id = @stream_id AND d.status IN ('waiting', 'retrying')
   AND (d.due_at <= @claimed_at OR d.due_at > @latest)
   AND NOT EXISTS (
       SELECT 1 FROM hubledger.event_hub_dead_letter AS h WITH (READPAST, READCOMMITTEDLOCK)
        WHERE h.stream_id = @stream_id AND h.status IN ('waiting', 'retrying') AND h.due_at = @claimed_until
          AND h.status = 'retrying' AND h.claimed_by = @claimed_by);

-- name: read_claimed
-- Read the letters that a claim holds and that no chunk has begun.
-- params: stream_id int, claimed_by nvarchar(4000), claimed_until datetime2(6)
SELECT d.partition_id, d.sequence_number, d.lost_claims
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.status IN ('waiting', 'retrying') AND d.due_at = :claimed_until
   AND d.claimed_by = :claimed_by AND d.status = 'retrying';

-- name: begin_chunk
-- Take over the letters that a claim still holds, and read them whole: from then on the run holds them, so a claim
-- begins only once.
-- params: stream_id int, partition_id varchar(8000), sequence_numbers nvarchar(max), claimed_by nvarchar(4000), run nvarchar(4000)
UPDATE event_hub_dead_letter
   SET claimed_by = :run
 WHERE stream_id = :stream_id AND partition_id = :partition_id
   AND sequence_number IN (SELECT n.value ->> 0 FROM json_each(:sequence_numbers) AS n)
   AND status = 'retrying' AND claimed_by IN (:claimed_by, :run)
RETURNING sequence_number, offset_token, enqueued_at, partition_key, properties, body, body_kept, attempts, lost_claims;
-- sqlserver:
UPDATE d
   SET claimed_by = @run
OUTPUT inserted.sequence_number, inserted.offset_token, inserted.enqueued_at, inserted.partition_key, inserted.properties, inserted.body, inserted.body_kept, inserted.attempts, inserted.lost_claims
  FROM OPENJSON(@sequence_numbers) WITH (sequence_number bigint '$[0]') AS n
 INNER JOIN hubledger.event_hub_dead_letter AS d ON d.sequence_number = n.sequence_number
 WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id
   AND d.status = 'retrying' AND d.claimed_by IN (@claimed_by, @run)
OPTION (LOOP JOIN, FORCE ORDER);

-- name: begin_lone_try
-- Mark letters that are about to be tried, each alone: if the try kills the process, the end of the lease frees them.
-- params: stream_id int, partition_id varchar(8000), sequence_numbers nvarchar(max), claimed_by nvarchar(4000), began_at datetime2(6), claimed_until datetime2(6)
UPDATE event_hub_dead_letter
   SET began_at = :began_at, claimed_until = :claimed_until, due_at = :claimed_until
 WHERE stream_id = :stream_id AND partition_id = :partition_id
   AND sequence_number IN (
       SELECT n.sequence_number FROM rows(:sequence_numbers) AS n (sequence_number bigint))
   AND status = 'retrying' AND claimed_by = :claimed_by;

-- name: settle_letters
-- Store the outcome of a retry, if its claim still holds the letter; without a new reason the letter keeps the old one.
-- params: stream_id int, partition_id varchar(8000), claimed_by nvarchar(4000), transform_version nvarchar(4000), committed_at datetime2(6), letters rows (sequence_number, status, attempted, due_at, error_class, error_type, error, fingerprint, why, error_at)
UPDATE event_hub_dead_letter
   SET status = :status, attempts = attempts + :attempted, due_at = :due_at, claimed_until = NULL, began_at = NULL,
       lost_claims = 0, transform_version = :transform_version,
       error_class = COALESCE(:error_class, error_class), error_type = COALESCE(:error_type, error_type),
       error = COALESCE(:error, error), fingerprint = COALESCE(:fingerprint, fingerprint),
       cause = SUBSTRING(COALESCE(:fingerprint, fingerprint), 1, 16),
       error_at = CASE WHEN :fingerprint IS NULL THEN error_at ELSE :error_at END,
       settled_at = CASE WHEN :status = 'waiting' THEN NULL ELSE :committed_at END, settled_why = :why
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND sequence_number = :sequence_number
   AND status = 'retrying' AND claimed_by = :claimed_by;
-- sqlserver:
UPDATE d
   SET status = l.status, attempts = d.attempts + l.attempted, due_at = l.due_at, claimed_until = NULL,
       began_at = NULL, lost_claims = 0, transform_version = @transform_version,
       error_class = COALESCE(l.error_class, d.error_class),
       error_type = COALESCE(l.error_type, d.error_type),
       error = COALESCE(l.error, d.error),
       fingerprint = COALESCE(l.fingerprint, d.fingerprint),
       cause = SUBSTRING(COALESCE(l.fingerprint, d.fingerprint), 1, 16),
       error_at = CASE WHEN l.fingerprint IS NULL THEN d.error_at ELSE l.error_at END,
       settled_at = CASE WHEN l.status = 'waiting' THEN NULL ELSE @committed_at END,
       settled_why = l.why
  FROM OPENJSON(@letters) WITH (
       sequence_number bigint '$[0]', status varchar(10) '$[1]', attempted int '$[2]', due_at datetime2(6) '$[3]',
       error_class varchar(10) '$[4]', error_type nvarchar(max) '$[5]', error nvarchar(max) '$[6]',
       fingerprint varchar(40) '$[7]', why nvarchar(max) '$[8]', error_at nvarchar(max) '$[9]') AS l
 INNER JOIN hubledger.event_hub_dead_letter AS d ON d.sequence_number = l.sequence_number
 WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id
   AND d.status = 'retrying' AND d.claimed_by = @claimed_by
OPTION (LOOP JOIN, FORCE ORDER);

-- name: move_letters
-- Move letters whose status is in a list, as ",waiting,exhausted,"; an empty claim is any. A repeat has no effect, even
-- on letters that others have touched since.
-- params: stream_id int, partition_id varchar(8000), sequence_numbers nvarchar(max), sources varchar(8000), claimed_by nvarchar(4000), move_id nvarchar(4000), kind varchar(8000), status varchar(8000), due_at datetime2(6), moved_at datetime2(6), why nvarchar(4000)
UPDATE event_hub_dead_letter AS d
   SET status = :status, due_at = CASE WHEN :status = 'waiting' THEN :due_at END, claimed_by = :move_id,
       claimed_until = NULL, began_at = NULL,
       attempts = CASE WHEN :kind = 'requeue' THEN 0 ELSE d.attempts END,
       lost_claims = CASE WHEN :kind <> 'requeue' THEN d.lost_claims WHEN d.error_class = 'crash' THEN 1 ELSE 0 END,
       settled_at = CASE WHEN :status = 'waiting' THEN NULL ELSE :moved_at END,
       settled_why = CASE WHEN :status = 'waiting' THEN NULL ELSE :why END
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
   AND d.sequence_number IN (
       SELECT n.sequence_number FROM rows(:sequence_numbers) AS n (sequence_number bigint))
   AND CHARINDEX(',' || d.status || ',', :sources) > 0
   AND (:claimed_by = '' OR d.claimed_by = :claimed_by) AND (d.claimed_by IS NULL OR d.claimed_by <> :move_id)
   AND NOT EXISTS (
       SELECT 1 FROM dead_letter_attempt AS a
        WHERE a.stream_id = d.stream_id AND a.partition_id = d.partition_id
          AND a.sequence_number = d.sequence_number AND a.touched_by = :move_id);

-- name: find_moved
-- Read the status of letters, and the claim or move that touched each last: this move, if it was made, even when others
-- have touched the letter since.
-- params: stream_id int, partition_id varchar(8000), sequence_numbers nvarchar(max), move_id nvarchar(4000)
SELECT d.sequence_number, d.status,
       CASE WHEN EXISTS (
                 SELECT 1 FROM dead_letter_attempt AS a
                  WHERE a.stream_id = d.stream_id AND a.partition_id = d.partition_id
                    AND a.sequence_number = d.sequence_number AND a.touched_by = :move_id)
            THEN :move_id ELSE d.claimed_by END AS touched_by
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
   AND d.sequence_number IN (
       SELECT n.sequence_number FROM rows(:sequence_numbers) AS n (sequence_number bigint))
 ORDER BY d.sequence_number;

-- name: find_letters
-- Read the status of letters, and the claim or move that touched each last.
-- params: stream_id int, partition_id varchar(8000), sequence_numbers nvarchar(max)
SELECT sequence_number, status, claimed_by
  FROM event_hub_dead_letter
 WHERE stream_id = :stream_id AND partition_id = :partition_id
   AND sequence_number IN (SELECT n.value ->> 0 FROM json_each(:sequence_numbers) AS n)
 ORDER BY sequence_number;
-- sqlserver:
SELECT d.sequence_number, d.status, d.claimed_by
  FROM hubledger.event_hub_dead_letter AS d
 WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id
   AND d.sequence_number IN (
       SELECT n.sequence_number FROM OPENJSON(@sequence_numbers) WITH (sequence_number bigint '$[0]') AS n)
 ORDER BY d.sequence_number;

-- name: next_due_at
-- Read when the next letter is due, or its lease ends; NULL when none waits. A letter that is due after the latest, or
-- whose lease ends after it, got the time from a clock that was ahead, so it is due now. Without an order of keys, held
-- letters are due. No row for a closed stream: a different one is open.
-- params: stream_id int, latest datetime2(6), frees_held bit
SELECT CASE WHEN EXISTS (
                 SELECT 1 FROM event_hub_dead_letter AS d
                  WHERE d.stream_id = :stream_id AND d.status IN ('waiting', 'retrying') AND d.due_at > :latest)
            THEN '0001-01-01T00:00:00.000000Z'  -- sqlite only
            THEN CONVERT(datetime2(6), '0001-01-01')  -- sqlserver only
            WHEN h.held_since < COALESCE(w.first_due_at, :latest) THEN h.held_since ELSE w.first_due_at END AS due_at
  FROM (SELECT MIN(d.due_at) AS first_due_at
          FROM event_hub_dead_letter AS d
         WHERE d.stream_id = :stream_id AND d.status IN ('waiting', 'retrying')) AS w
 CROSS JOIN (
       SELECT MIN(l.failed_at) AS held_since
         FROM event_hub_dead_letter AS l
        WHERE l.stream_id = :stream_id AND l.status = 'held' AND :frees_held = 1) AS h
 WHERE NOT EXISTS (
       SELECT 1 FROM event_stream AS e
        WHERE e.stream_id = :stream_id AND e.closed_at IS NOT NULL);
