-- Attempts at a part of a partition that were begun and are not known to have ended: the process may have died.

CREATE TABLE hubledger.batch_attempt (
    stream_id             int NOT NULL,
    partition_id          varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    first_sequence_number bigint NOT NULL,
    last_sequence_number  bigint NOT NULL,
    suspects_end          bigint NOT NULL,
    attempts              int NOT NULL,
    attempt_id            uniqueidentifier NOT NULL,
    begun_at              datetime2(7) NOT NULL,
    invocation_id         nvarchar(100) NOT NULL,
    CONSTRAINT pk_batch_attempt PRIMARY KEY (stream_id, partition_id),
    CONSTRAINT fk_batch_attempt_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id),
    CONSTRAINT ck_batch_attempt_range CHECK (last_sequence_number >= first_sequence_number),
    CONSTRAINT ck_batch_attempt_attempts CHECK (attempts >= 0)
);
