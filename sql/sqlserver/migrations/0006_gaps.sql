-- Where each partition begins, and which of its numbers were missing once.

CREATE TABLE hubledger.partition_anchor (
    stream_id       int NOT NULL,
    partition_id    varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number bigint NOT NULL,  -- the first one that counts
    anchored_at     datetime2(7) NOT NULL,
    CONSTRAINT pk_partition_anchor PRIMARY KEY (stream_id, partition_id),
    CONSTRAINT fk_partition_anchor_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id)
);

CREATE TABLE hubledger.sequence_gap (
    stream_id             int NOT NULL,
    partition_id          varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    first_sequence_number bigint NOT NULL,
    last_sequence_number  bigint NOT NULL,
    found_at              datetime2(7) NOT NULL,
    status                varchar(10) NOT NULL,
    attempts              int NOT NULL,
    CONSTRAINT pk_sequence_gap PRIMARY KEY (stream_id, partition_id, first_sequence_number),
    CONSTRAINT fk_sequence_gap_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id),
    CONSTRAINT ck_sequence_gap_range CHECK (last_sequence_number >= first_sequence_number),
    CONSTRAINT ck_sequence_gap_status CHECK (status IN ('open', 'healed', 'absent'))
);
