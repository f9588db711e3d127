-- Where each partition begins, and which of its numbers were missing once.

CREATE TABLE partition_anchor (
    stream_id       INTEGER NOT NULL,
    partition_id    TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,  -- the first one that counts
    anchored_at     TEXT NOT NULL,
    CONSTRAINT pk_partition_anchor PRIMARY KEY (stream_id, partition_id),
    CONSTRAINT fk_partition_anchor_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE sequence_gap (
    stream_id             INTEGER NOT NULL,
    partition_id          TEXT NOT NULL,
    first_sequence_number INTEGER NOT NULL,
    last_sequence_number  INTEGER NOT NULL,
    found_at              TEXT NOT NULL,
    status                TEXT NOT NULL,
    attempts              INTEGER NOT NULL,
    CONSTRAINT pk_sequence_gap PRIMARY KEY (stream_id, partition_id, first_sequence_number),
    CONSTRAINT fk_sequence_gap_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id),
    CONSTRAINT ck_sequence_gap_range CHECK (last_sequence_number >= first_sequence_number),
    CONSTRAINT ck_sequence_gap_status CHECK (status IN ('open', 'healed', 'absent'))
) STRICT, WITHOUT ROWID;
