-- Who reads a partition, for consumers outside the Functions host; owner_id is empty when it was released.

CREATE TABLE hubledger.event_hub_ownership (
    stream_id        int NOT NULL,
    partition_id     varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    owner_id         nvarchar(200) NOT NULL,
    etag             varchar(40) NOT NULL,
    last_modified_at datetime2(7) NOT NULL,
    CONSTRAINT pk_event_hub_ownership PRIMARY KEY (stream_id, partition_id),
    CONSTRAINT fk_event_hub_ownership_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id)
);
