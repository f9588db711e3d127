-- The lag of each stream and its accounted numbers by minute, of one day. The watch writes a row and removes old ones.

CREATE TABLE stream_minute (
    minute_at TEXT NOT NULL,
    stream_id INTEGER NOT NULL,
    read_at   TEXT NOT NULL,
    lag       INTEGER NOT NULL,  -- events after the checkpoints
    accounted INTEGER NOT NULL,  -- numbers with an outcome, since the anchor
    CONSTRAINT pk_stream_minute PRIMARY KEY (minute_at, stream_id),
    CONSTRAINT fk_stream_minute_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id)
) WITHOUT ROWID;
