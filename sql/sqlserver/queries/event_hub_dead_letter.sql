-- name: add_letter
-- Events that could not become rows, kept whole. What differs by letter comes in @letters, one JSON array a letter; what
-- may be long is cut out of @letter_texts, for OPENJSON of some servers gives no more than 4000 characters of a text.
-- params: stream_id, partition_id, sequence_number, offset_token, enqueued_at, partition_key, properties, body, error_class, error_type, error, fingerprint, transform_version, status, due_at, failed_at
INSERT INTO hubledger.event_hub_dead_letter
       (stream_id, partition_id, sequence_number, offset_token, enqueued_at, partition_key, properties, body,
        error_class, error_type, error, fingerprint, transform_version, status, attempts, due_at, failed_at)
SELECT @stream_id, @partition_id, l.sequence_number,
       TRANSLATE(l.offset_token COLLATE Latin1_General_100_BIN2, @folded, @plain), l.enqueued_at,
       TRANSLATE(l.partition_key COLLATE Latin1_General_100_BIN2, @folded, @plain),
       SUBSTRING(@letter_texts, l.properties_at, l.properties_length),
       CONVERT(varbinary(max), SUBSTRING(@letter_texts, l.body_at, l.body_length), 2), l.error_class,
       TRANSLATE(l.error_type COLLATE Latin1_General_100_BIN2, @folded, @plain),
       TRANSLATE(l.error COLLATE Latin1_General_100_BIN2, @folded, @plain), l.fingerprint,
       TRANSLATE(l.transform_version COLLATE Latin1_General_100_BIN2, @folded, @plain), l.status, 1, l.due_at,
       l.failed_at
  FROM OPENJSON(@letters) WITH (
       sequence_number bigint '$[0]', offset_token nvarchar(4000) '$[1]', enqueued_at datetime2(7) '$[2]',
       partition_key nvarchar(4000) '$[3]', properties_at int '$[4]', properties_length int '$[5]', body_at int '$[6]',
       body_length int '$[7]', error_class varchar(10) '$[8]', error_type nvarchar(4000) '$[9]',
       error nvarchar(4000) '$[10]', fingerprint varchar(40) '$[11]', transform_version nvarchar(4000) '$[12]',
       status varchar(10) '$[13]', due_at datetime2(7) '$[14]', failed_at datetime2(7) '$[15]') AS l;
