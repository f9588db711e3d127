-- Partitions on which a fault of the database comes back, that should have passed: the stop of reason 'store'. It has a
-- table of its own because the check of the reasons of a stop cannot be changed everywhere.

CREATE TABLE partition_fault (
    stream_id    INTEGER NOT NULL,
    partition_id TEXT NOT NULL,
    detail       TEXT NOT NULL,
    attempts     INTEGER NOT NULL,
    stopped_at   TEXT NOT NULL,
    CONSTRAINT pk_partition_fault PRIMARY KEY (stream_id, partition_id),
    CONSTRAINT fk_partition_fault_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id)
) STRICT, WITHOUT ROWID;
