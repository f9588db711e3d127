-- name: resolve_letters
-- Letters of events that a replay wrote or filtered, whatever their status was: their rows are there now.
-- params: stream_id, partition_id, succeeded, touched_by, settled_why, transform_version, committed_at
UPDATE hubledger.event_hub_dead_letter
   SET status = 'resolved', due_at = NULL, claimed_by = @touched_by, claimed_until = NULL, began_at = NULL,
       lost_claims = 0, transform_version = @transform_version, settled_at = @committed_at, settled_why = @settled_why
 WHERE stream_id = @stream_id AND partition_id = @partition_id AND status <> 'resolved'
   AND sequence_number IN (
       SELECT n.sequence_number FROM OPENJSON(@succeeded) WITH (sequence_number bigint '$[0]') AS n);

-- name: reopen_letters
-- Letters of a replay whose event failed again, in @letters; one that a person discarded stays discarded.
-- params: stream_id, partition_id, sequence_number, error_class, error_type, error, fingerprint, transform_version, status, due_at, failed_at, touched_by
UPDATE d
   SET error_class = l.error_class, error_type = TRANSLATE(l.error_type COLLATE Latin1_General_100_BIN2, @folded, @plain),
       error = TRANSLATE(l.error COLLATE Latin1_General_100_BIN2, @folded, @plain), fingerprint = l.fingerprint,
       transform_version = TRANSLATE(l.transform_version COLLATE Latin1_General_100_BIN2, @folded, @plain),
       status = l.status, attempts = 1, due_at = l.due_at, failed_at = l.failed_at, claimed_by = @touched_by,
       claimed_until = NULL, began_at = NULL, lost_claims = 0, settled_at = NULL, settled_why = NULL
  FROM hubledger.event_hub_dead_letter AS d
 INNER JOIN OPENJSON(@letters) WITH (
       sequence_number bigint '$[0]', error_class varchar(10) '$[1]', error_type nvarchar(4000) '$[2]',
       error nvarchar(4000) '$[3]', fingerprint varchar(40) '$[4]', transform_version nvarchar(4000) '$[5]',
       status varchar(10) '$[6]', due_at datetime2(7) '$[7]', failed_at datetime2(7) '$[8]') AS l
    ON l.sequence_number = d.sequence_number
 WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id AND d.status <> 'discarded';

-- name: add_replayed_letters
-- Letters of a replay, in @letters, of events that had none; what may be long is cut out of @letter_texts.
-- params: stream_id, partition_id, sequence_number, offset_token, enqueued_at, partition_key, properties, body, body_kept, error_class, error_type, error, fingerprint, transform_version, status, due_at, failed_at, touched_by, commit_number
INSERT INTO hubledger.event_hub_dead_letter
       (stream_id, partition_id, sequence_number, offset_token, enqueued_at, partition_key, properties, body,
        body_kept, error_class, error_type, error, fingerprint, transform_version, status, attempts, due_at, failed_at,
        claimed_by, replay_commit_number)
SELECT @stream_id, @partition_id, l.sequence_number, TRANSLATE(l.offset_token COLLATE Latin1_General_100_BIN2, @folded, @plain),
       l.enqueued_at, TRANSLATE(l.partition_key COLLATE Latin1_General_100_BIN2, @folded, @plain),
       SUBSTRING(@letter_texts, l.properties_at, l.properties_length),
       CONVERT(varbinary(max), SUBSTRING(@letter_texts, l.body_at, l.body_length), 2), l.body_kept, l.error_class,
       TRANSLATE(l.error_type COLLATE Latin1_General_100_BIN2, @folded, @plain),
       TRANSLATE(l.error COLLATE Latin1_General_100_BIN2, @folded, @plain), l.fingerprint,
       TRANSLATE(l.transform_version COLLATE Latin1_General_100_BIN2, @folded, @plain), l.status, 1, l.due_at,
       l.failed_at, @touched_by, @commit_number
  FROM OPENJSON(@letters) WITH (
       sequence_number bigint '$[0]', error_class varchar(10) '$[1]', error_type nvarchar(4000) '$[2]',
       error nvarchar(4000) '$[3]', fingerprint varchar(40) '$[4]', transform_version nvarchar(4000) '$[5]',
       status varchar(10) '$[6]', due_at datetime2(7) '$[7]', failed_at datetime2(7) '$[8]',
       offset_token nvarchar(4000) '$[9]', enqueued_at datetime2(7) '$[10]', partition_key nvarchar(4000) '$[11]',
       properties_at int '$[12]', properties_length int '$[13]', body_at int '$[14]', body_length int '$[15]',
       body_kept bit '$[16]') AS l
 WHERE NOT EXISTS (
       SELECT 1 FROM hubledger.event_hub_dead_letter AS d
        WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id AND d.sequence_number = l.sequence_number);

-- name: add_letter
-- Events that could not become rows, kept whole. What differs by letter comes in @letters, one JSON array a letter; what
-- may be long is cut out of @letter_texts, for OPENJSON of some servers gives no more than 4000 characters of a text.
-- params: stream_id, partition_id, sequence_number, offset_token, enqueued_at, partition_key, properties, body, body_kept, error_class, error_type, error, fingerprint, transform_version, status, due_at, failed_at
INSERT INTO hubledger.event_hub_dead_letter
       (stream_id, partition_id, sequence_number, offset_token, enqueued_at, partition_key, properties, body,
        body_kept, error_class, error_type, error, fingerprint, transform_version, status, attempts, due_at, failed_at)
SELECT @stream_id, @partition_id, l.sequence_number,
       TRANSLATE(l.offset_token COLLATE Latin1_General_100_BIN2, @folded, @plain), l.enqueued_at,
       TRANSLATE(l.partition_key COLLATE Latin1_General_100_BIN2, @folded, @plain),
       SUBSTRING(@letter_texts, l.properties_at, l.properties_length),
       CONVERT(varbinary(max), SUBSTRING(@letter_texts, l.body_at, l.body_length), 2), l.body_kept, l.error_class,
       TRANSLATE(l.error_type COLLATE Latin1_General_100_BIN2, @folded, @plain),
       TRANSLATE(l.error COLLATE Latin1_General_100_BIN2, @folded, @plain), l.fingerprint,
       TRANSLATE(l.transform_version COLLATE Latin1_General_100_BIN2, @folded, @plain), l.status, 1, l.due_at,
       l.failed_at
  FROM OPENJSON(@letters) WITH (
       sequence_number bigint '$[0]', offset_token nvarchar(4000) '$[1]', enqueued_at datetime2(7) '$[2]',
       partition_key nvarchar(4000) '$[3]', properties_at int '$[4]', properties_length int '$[5]', body_at int '$[6]',
       body_length int '$[7]', body_kept bit '$[8]', error_class varchar(10) '$[9]', error_type nvarchar(4000) '$[10]',
       error nvarchar(4000) '$[11]', fingerprint varchar(40) '$[12]', transform_version nvarchar(4000) '$[13]',
       status varchar(10) '$[14]', due_at datetime2(7) '$[15]', failed_at datetime2(7) '$[16]') AS l;

-- name: claim_letters
-- Claim what waits and is due, and what its lease gives back: the holder died, which counts once its lone try had begun.
-- params: stream_id, claimed_by, claimed_at, claimed_until, most
UPDATE TOP (@most) d
   SET lost_claims = CASE WHEN d.status = 'retrying' AND (d.lost_claims = 0 OR d.began_at IS NOT NULL)
                          THEN d.lost_claims + 1 ELSE d.lost_claims END,
       status = 'retrying', claimed_by = @claimed_by, claimed_until = @claimed_until, due_at = @claimed_until,
       began_at = NULL
OUTPUT inserted.partition_id, inserted.sequence_number, inserted.lost_claims
  FROM hubledger.event_hub_dead_letter AS d
 WHERE d.stream_id = @stream_id AND d.status IN ('waiting', 'retrying') AND d.due_at <= @claimed_at;

-- name: read_claimed_letters
-- Those of these letters that the claim still holds, whole.
-- params: stream_id, partition_id, sequence_numbers, claimed_by
SELECT d.sequence_number, d.offset_token, d.enqueued_at, d.partition_key,
       d.properties, d.body, d.body_kept, d.attempts, d.lost_claims
  FROM hubledger.event_hub_dead_letter AS d
 WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id
   AND d.sequence_number IN (
       SELECT n.sequence_number FROM OPENJSON(@sequence_numbers) WITH (sequence_number bigint '$[0]') AS n)
   AND d.status = 'retrying' AND d.claimed_by = @claimed_by
 ORDER BY d.sequence_number;

-- name: begin_lone_try
-- These letters are about to be tried, each alone: should the process die of it, their lease gives them back.
-- params: stream_id, partition_id, sequence_numbers, claimed_by, began_at, claimed_until
UPDATE hubledger.event_hub_dead_letter
   SET began_at = @began_at, claimed_until = @claimed_until, due_at = @claimed_until
 WHERE stream_id = @stream_id AND partition_id = @partition_id
   AND sequence_number IN (
       SELECT n.sequence_number FROM OPENJSON(@sequence_numbers) WITH (sequence_number bigint '$[0]') AS n)
   AND status = 'retrying' AND claimed_by = @claimed_by;

-- name: settle_letters
-- What a retry made of letters, if its claim still holds them; without a new reason they keep the one they have.
-- params: stream_id, partition_id, claimed_by, transform_version, committed_at, sequence_number, status, attempted, due_at, error_class, error_type, error, fingerprint, why
UPDATE d
   SET status = l.status, attempts = d.attempts + l.attempted, due_at = l.due_at, claimed_until = NULL,
       began_at = NULL, lost_claims = 0, transform_version = @transform_version,
       error_class = COALESCE(l.error_class, d.error_class),
       error_type = COALESCE(TRANSLATE(l.error_type COLLATE Latin1_General_100_BIN2, @folded, @plain), d.error_type),
       error = COALESCE(TRANSLATE(l.error COLLATE Latin1_General_100_BIN2, @folded, @plain), d.error),
       fingerprint = COALESCE(l.fingerprint, d.fingerprint),
       settled_at = CASE WHEN l.status = 'waiting' THEN NULL ELSE @committed_at END,
       settled_why = TRANSLATE(l.why COLLATE Latin1_General_100_BIN2, @folded, @plain)
  FROM hubledger.event_hub_dead_letter AS d
 INNER JOIN OPENJSON(@letters) WITH (
       sequence_number bigint '$[0]', status varchar(10) '$[1]', attempted int '$[2]', due_at datetime2(7) '$[3]',
       error_class varchar(10) '$[4]', error_type nvarchar(4000) '$[5]', error nvarchar(4000) '$[6]',
       fingerprint varchar(40) '$[7]', why nvarchar(4000) '$[8]') AS l ON l.sequence_number = d.sequence_number
 WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id
   AND d.status = 'retrying' AND d.claimed_by = @claimed_by;

-- name: move_letters
-- Move letters whose status is among the sources, ",waiting,exhausted,"; an empty claim is any. Twice has no more effect.
-- params: stream_id, partition_id, sequence_numbers, sources, claimed_by, move_id, kind, status, due_at, moved_at, why
UPDATE hubledger.event_hub_dead_letter
   SET status = @status, due_at = CASE WHEN @status = 'waiting' THEN @due_at END, claimed_by = @move_id,
       claimed_until = NULL, began_at = NULL,
       attempts = CASE WHEN @kind = 'requeue' THEN 0 ELSE attempts END,
       lost_claims = CASE WHEN @kind = 'requeue' THEN 0 ELSE lost_claims END,
       settled_at = CASE WHEN @status = 'waiting' THEN NULL ELSE @moved_at END,
       settled_why = CASE WHEN @status = 'waiting' THEN NULL ELSE @why END
 WHERE stream_id = @stream_id AND partition_id = @partition_id
   AND sequence_number IN (
       SELECT n.sequence_number FROM OPENJSON(@sequence_numbers) WITH (sequence_number bigint '$[0]') AS n)
   AND CHARINDEX(',' + status + ',', @sources) > 0
   AND (@claimed_by = '' OR claimed_by = @claimed_by) AND (claimed_by IS NULL OR claimed_by <> @move_id);

-- name: find_letters
-- These letters as they stand, and what touched them last.
-- params: stream_id, partition_id, sequence_numbers
SELECT d.sequence_number, d.status, d.claimed_by
  FROM hubledger.event_hub_dead_letter AS d
 WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id
   AND d.sequence_number IN (
       SELECT n.sequence_number FROM OPENJSON(@sequence_numbers) WITH (sequence_number bigint '$[0]') AS n)
 ORDER BY d.sequence_number;

-- name: next_due_at
-- When the next letter is due, or its lease ends; NULL when none waits.
-- params: stream_id
SELECT MIN(d.due_at) AS due_at
  FROM hubledger.event_hub_dead_letter AS d
 WHERE d.stream_id = @stream_id AND d.status IN ('waiting', 'retrying');
