-- Partitions whose trigger stands, while the app's own reader brings them further: the stop of reason 'trigger'. It has a
-- table of its own because the check of the reasons of a stop cannot be changed everywhere.

CREATE TABLE partition_standstill (
    stream_id    INTEGER NOT NULL,
    partition_id TEXT NOT NULL,
    detail       TEXT NOT NULL,
    attempts     INTEGER NOT NULL,
    stopped_at   TEXT NOT NULL,
    CONSTRAINT pk_partition_standstill PRIMARY KEY (stream_id, partition_id),
    CONSTRAINT fk_partition_standstill_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id)
) STRICT, WITHOUT ROWID;
