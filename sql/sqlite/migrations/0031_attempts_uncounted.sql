-- Attempts are no longer counted, and their ranges are no longer narrowed: a child process names the event that kills.

DROP TABLE batch_attempt;

CREATE TABLE batch_attempt (
    stream_id             INTEGER NOT NULL,
    partition_id          TEXT NOT NULL,
    first_sequence_number INTEGER NOT NULL,
    last_sequence_number  INTEGER NOT NULL,
    attempt_id            TEXT NOT NULL,
    begun_at              TEXT NOT NULL,
    invocation_id         TEXT NOT NULL,
    CONSTRAINT pk_batch_attempt PRIMARY KEY (stream_id, partition_id),
    CONSTRAINT fk_batch_attempt_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id),
    CONSTRAINT ck_batch_attempt_range CHECK (last_sequence_number >= first_sequence_number)
) STRICT, WITHOUT ROWID;
