-- name: add_letter
-- An event that could not become rows, kept whole.
-- params: stream_id, partition_id, sequence_number, offset_token, enqueued_at, partition_key, properties, body, error_class, error_type, error, fingerprint, transform_version, status, due_at, failed_at
INSERT INTO event_hub_dead_letter
       (stream_id, partition_id, sequence_number, offset_token, enqueued_at, partition_key, properties, body,
        error_class, error_type, error, fingerprint, transform_version, status, attempts, due_at, failed_at)
VALUES (:stream_id, :partition_id, :sequence_number, :offset_token, :enqueued_at, :partition_key, :properties, :body,
        :error_class, :error_type, :error, :fingerprint, :transform_version, :status, 1, :due_at, :failed_at);
