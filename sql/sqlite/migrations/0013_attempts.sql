-- Attempts at a part of a partition that were begun and are not known to have ended: the process may have died.

CREATE TABLE batch_attempt (
    stream_id             INTEGER NOT NULL,
    partition_id          TEXT NOT NULL,
    first_sequence_number INTEGER NOT NULL,
    last_sequence_number  INTEGER NOT NULL,
    suspects_end          INTEGER NOT NULL,
    attempts              INTEGER NOT NULL,
    attempt_id            TEXT NOT NULL,
    begun_at              TEXT NOT NULL,
    invocation_id         TEXT NOT NULL,
    CONSTRAINT pk_batch_attempt PRIMARY KEY (stream_id, partition_id),
    CONSTRAINT fk_batch_attempt_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id),
    CONSTRAINT ck_batch_attempt_range CHECK (last_sequence_number >= first_sequence_number),
    CONSTRAINT ck_batch_attempt_attempts CHECK (attempts >= 0)
) STRICT, WITHOUT ROWID;
