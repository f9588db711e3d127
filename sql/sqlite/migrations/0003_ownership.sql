-- Who reads a partition, for consumers outside the Functions host; owner_id is empty when it was released.

CREATE TABLE event_hub_ownership (
    stream_id        INTEGER NOT NULL,
    partition_id     TEXT NOT NULL,
    owner_id         TEXT NOT NULL,
    etag             TEXT NOT NULL,
    last_modified_at TEXT NOT NULL,
    CONSTRAINT pk_event_hub_ownership PRIMARY KEY (stream_id, partition_id),
    CONSTRAINT fk_event_hub_ownership_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id)
) STRICT, WITHOUT ROWID;
