-- Partitions whose trigger stands, while the app's own reader brings them further: the stop of reason 'trigger'. It has a
-- table of its own because the check of the reasons of a stop cannot be changed everywhere.

CREATE TABLE hubledger.partition_standstill (
    stream_id    int NOT NULL,
    partition_id varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    detail       nvarchar(2000) NOT NULL,
    attempts     int NOT NULL,
    stopped_at   datetime2(7) NOT NULL,
    CONSTRAINT pk_partition_standstill PRIMARY KEY (stream_id, partition_id),
    CONSTRAINT fk_partition_standstill_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id)
);
