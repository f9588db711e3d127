-- Events that the hub no longer keeps, staged for a replay out of Capture's files: each waits until it was replayed.

CREATE TABLE staged_event (
    stream_id       INTEGER NOT NULL,
    partition_id    TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    offset_token    TEXT NOT NULL,
    enqueued_at     TEXT NOT NULL,
    partition_key   TEXT,
    properties      TEXT NOT NULL,  -- a JSON object
    body            BLOB NOT NULL,
    CONSTRAINT pk_staged_event PRIMARY KEY (stream_id, partition_id, sequence_number)
) STRICT;
