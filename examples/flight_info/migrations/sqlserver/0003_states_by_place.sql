-- An audit and a replay find the statuses of flights by the place of the events that wrote them.

CREATE INDEX ix_flight_status_place
    ON hubledger.flight_status (stream_id, partition_id, sequence_number) INCLUDE (commit_number) WITH (ONLINE = ON);
