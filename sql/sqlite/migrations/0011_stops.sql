-- Partitions that were stopped on purpose: why, since when, and how often the stop was met since then.

CREATE TABLE partition_stop (
    stream_id    INTEGER NOT NULL,
    partition_id TEXT NOT NULL,
    reason       TEXT NOT NULL,
    detail       TEXT NOT NULL,
    attempts     INTEGER NOT NULL,
    stopped_at   TEXT NOT NULL,
    CONSTRAINT pk_partition_stop PRIMARY KEY (stream_id, partition_id, reason),
    CONSTRAINT fk_partition_stop_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id),
    CONSTRAINT ck_partition_stop_reason CHECK (reason IN ('incarnation', 'outage', 'held'))
) STRICT, WITHOUT ROWID;
