-- Partitions that were stopped on purpose: why, since when, and how often the stop was met since then.

CREATE TABLE hubledger.partition_stop (
    stream_id    int NOT NULL,
    partition_id varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    reason       varchar(20) NOT NULL,
    detail       nvarchar(2000) NOT NULL,
    attempts     int NOT NULL,
    stopped_at   datetime2(7) NOT NULL,
    CONSTRAINT pk_partition_stop PRIMARY KEY (stream_id, partition_id, reason),
    CONSTRAINT fk_partition_stop_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id),
    CONSTRAINT ck_partition_stop_reason CHECK (reason IN ('incarnation', 'outage', 'held'))
);
