-- name: add_letter
-- Events that could not become rows, kept whole. What differs by letter comes in @letters, one JSON array a letter.
-- params: stream_id, partition_id, sequence_number, offset_token, enqueued_at, partition_key, properties, body, error_class, error_type, error, fingerprint, transform_version, status, due_at, failed_at
INSERT INTO hubledger.event_hub_dead_letter
       (stream_id, partition_id, sequence_number, offset_token, enqueued_at, partition_key, properties, body,
        error_class, error_type, error, fingerprint, transform_version, status, attempts, due_at, failed_at)
SELECT @stream_id, @partition_id, l.sequence_number, l.offset_token, l.enqueued_at, l.partition_key, l.properties,
       CONVERT(varbinary(max), l.body, 2), l.error_class, l.error_type, l.error, l.fingerprint, l.transform_version,
       l.status, 1, l.due_at, l.failed_at
  FROM OPENJSON(@letters) WITH (
       sequence_number bigint '$[0]', offset_token nvarchar(200) '$[1]', enqueued_at datetime2(7) '$[2]',
       partition_key nvarchar(max) '$[3]', properties nvarchar(max) '$[4]', body varchar(max) '$[5]',
       error_class varchar(10) '$[6]', error_type nvarchar(400) '$[7]', error nvarchar(max) '$[8]',
       fingerprint varchar(40) '$[9]', transform_version nvarchar(100) '$[10]', status varchar(10) '$[11]',
       due_at datetime2(7) '$[12]', failed_at datetime2(7) '$[13]') AS l;
