-- An audit and a replay find the statuses of flights by the place of the events that wrote them.

CREATE INDEX ix_flight_status_place
    ON flight_status (stream_id, partition_id, sequence_number, commit_number);
