-- An audit and a replay find homes by the place of the events that wrote them.

CREATE INDEX ix_home_place
    ON hubledger.home (stream_id, partition_id, sequence_number) INCLUDE (commit_number) WITH (ONLINE = ON);
