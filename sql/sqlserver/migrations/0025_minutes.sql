-- The lag of each stream and its accounted numbers by minute, of one day. The watch writes a row and removes old ones.

CREATE TABLE hubledger.stream_minute (
    minute_at datetime2(7) NOT NULL,
    stream_id int NOT NULL,
    read_at   datetime2(7) NOT NULL,
    lag       bigint NOT NULL,  -- events after the checkpoints
    accounted bigint NOT NULL,  -- numbers with an outcome, since the anchor
    CONSTRAINT pk_stream_minute PRIMARY KEY (minute_at, stream_id),
    CONSTRAINT fk_stream_minute_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id)
);
