-- Events that the hub no longer keeps, staged for a replay out of Capture's files: each waits until it was replayed.
-- An event that is there already is left out without an error: tasks of a job run twice, and jobs at the same time.

CREATE TABLE hubledger.staged_event (
    stream_id       int NOT NULL,
    partition_id    varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number bigint NOT NULL,
    offset_token    nvarchar(200) NOT NULL,
    enqueued_at     datetime2(7) NOT NULL,
    partition_key   nvarchar(max),
    properties      nvarchar(max) NOT NULL,  -- a JSON object
    body            varbinary(max) NOT NULL,
    CONSTRAINT pk_staged_event PRIMARY KEY (stream_id, partition_id, sequence_number) WITH (IGNORE_DUP_KEY = ON)
);
